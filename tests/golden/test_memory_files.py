"""Files of the first format version, committed once: every later version must load them.

They were written by `write` below, with noise for tests, and are never written again.
"""

import json
import pathlib

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet import NotPrivateWarning
from discreet.kernels import Fourier, Minimax, Taylor
from discreet.testing import Seeded

FILES = pathlib.Path(__file__).parent / "files"
BOUNDS = {"scale": 1.5, "key_norm": 2.0, "query_norm": 0.5}
KERNELS = {
    "fourier": Fourier(3, frequencies=12, **BOUNDS),
    "minimax": Minimax(3, degree=2, **BOUNDS),
    "taylor": Taylor(3, degree=2, **BOUNDS),
}
QUERIES = unit_rows(2, 4, 3, seed=9) * 0.45


def write(name):
    """Write one of the files and what it answers."""
    memory = discreet.build(
        unit_rows(2, 400, 3) * 1.9,
        unit_rows(2, 400, 2, seed=1) * 2.5,
        epsilon=2.0,
        delta=1e-6,
        neighbours="replace" if name == "minimax" else "add_remove",
        value_norm=2.5,
        rows_hint=400,
        kernel=KERNELS[name],
        groups=np.arange(400) // 4 if name == "taylor" else None,
        group_rows=2.0 if name == "taylor" else 1.0,
        entropy=Seeded(2026),
    )
    memory.save(FILES / f"memory-v1-{name}.safetensors")
    out, error = memory.plain.attend(QUERIES), memory.plain.noise_stderr(QUERIES)
    facts = {
        "out": out.tolist(),
        "stderr": error.tolist(),
        "state_sum": int(memory.released.state.sum()),
        "epsilon": 2.0,
        "delta": 1e-6,
    }
    (FILES / f"memory-v1-{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


@pytest.mark.parametrize("name", KERNELS)
def test_a_file_of_the_first_version_loads_and_answers_as_it_did(name):
    facts = json.loads((FILES / f"memory-v1-{name}.json").read_text())
    with pytest.warns(NotPrivateWarning):
        memory = discreet.load(FILES / f"memory-v1-{name}.safetensors")
    out, error = memory.plain.attend(QUERIES), memory.plain.noise_stderr(QUERIES)
    np.testing.assert_allclose(out, facts["out"], rtol=1e-6, atol=1e-9)
    # An answer's noise counted in its square then; now it is taken out.
    square, tau = np.square(facts["out"]), memory.released.layout.real_tau
    numerator = np.array(facts["stderr"]) / np.sqrt(1 + square / tau**2)
    true = np.maximum(square - numerator**2, 0)
    np.testing.assert_allclose(error, numerator * np.sqrt(1 + true / tau**2), rtol=1e-6)
    assert int(memory.released.state.sum()) == facts["state_sum"]
    assert (memory.guarantee.epsilon, memory.guarantee.delta) == (facts["epsilon"], facts["delta"])
    kernel = KERNELS[name]
    assert memory.kernel.describe() == kernel.describe()
    if name == "minimax":
        np.testing.assert_allclose(memory.kernel.coefficients, kernel.coefficients, rtol=1e-9)
    if name == "fourier":
        now, then = kernel.integer_frequencies, memory.kernel.integer_frequencies
        assert np.array_equal(now.values, then.values)
