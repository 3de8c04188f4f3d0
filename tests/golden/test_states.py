"""Exact states of explicit kernels and settings, as hashes: no later version may change a bit.

They were written by `write` below, under `Silent`, before the builder was one, and are never
written again.
"""

import hashlib
import json
import pathlib

import numpy as np
import pytest

import discreet
from discreet.kernels import Fourier, Minimax, Taylor
from discreet.testing import Silent

FILE = pathlib.Path(__file__).parent / "files" / "states.json"
BOUNDS = {"scale": 1.5, "key_norm": 2.0, "query_norm": 0.5}
KERNELS = {
    "fourier": Fourier(5, frequencies=40, **BOUNDS),
    "minimax": Minimax(5, degree=3, **BOUNDS),
    "taylor": Taylor(5, degree=2, **BOUNDS),
}
ROWS = 700


def rows(*shape, seed):
    """Rows of all lengths, some of them longer than the bounds."""
    return np.random.default_rng(seed).standard_normal(shape) * 0.8


def sizes():
    """Records of one row, of some, of more than a Gram matrix takes, in no order."""
    sized = np.repeat(np.arange(60), np.random.default_rng(5).integers(1, 12, 60))
    return np.random.default_rng(6).permutation(np.append(sized, np.full(ROWS, 60))[:ROWS])


OPTIONS = {
    "rows": {},
    "replaced": {"neighbours": "replace"},
    "with a hint": {"rows_hint": 2**28, "tau": 0.7, "value_norm": 3.0},
    "records": {"groups": sizes(), "group_rows": 2.5},
    "records replaced": {"groups": sizes(), "neighbours": "replace"},
    "records by name": {"groups": [f"record {each}" for each in sizes()]},
}


def states(kernel, options):
    """The state of one head, and those of three layers with heads."""
    options = {"epsilon": 2.0, "delta": 1e-9, "kernel": kernel, "entropy": Silent()} | options
    one = discreet.build(rows(ROWS, 5, seed=0), rows(ROWS, 2, seed=1), **options)
    layers = [
        (rows(2, ROWS, 5, seed=2), rows(2, ROWS, 3, seed=3).astype(np.float32)),
        (rows(ROWS, 5, seed=0), rows(ROWS, 2, seed=1)),
        (rows(2, 2, ROWS, 5, seed=4), rows(2, 2, ROWS, 1, seed=5)),
    ]
    return [each.released for each in (one, *discreet.build_many(layers, **options))]


def facts(name, case):
    """What must not change: every bit of the states, and the noise that belongs to them."""
    made = states(KERNELS[name], OPTIONS[case])
    return [
        {"state": hashlib.sha256(each.state.tobytes()).hexdigest(), "sigma": each.sigma}
        for each in made
    ]


def write():
    """Write the hashes."""
    found = {f"{name}, {case}": facts(name, case) for name in KERNELS for case in OPTIONS}
    FILE.write_text(json.dumps(found, indent=1) + "\n")


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("name", KERNELS)
def test_states_are_what_they_always_were(name, case):
    then = json.loads(FILE.read_text())[f"{name}, {case}"]
    now = facts(name, case)
    assert [each["state"] for each in now] == [each["state"] for each in then]
    assert [each["sigma"] for each in now] == pytest.approx([each["sigma"] for each in then])
