"""Files of regressions of the first format version: every later version must load them.

They were written by `write` below, with noise for tests, and are never written again.
"""

import json
import pathlib

import numpy as np
import pytest
from data import unit_rows
from maps import public_rows

import discreet
from discreet import NotPrivateWarning
from discreet.features.concatenation import LinearAndFourier as LinesAndWaves
from discreet.features.fourier import UnitFourier as Waves
from discreet.features.landmarks import UnitLandmarks as NearLandmarks
from discreet.features.linear import Linear
from discreet.features.linear import UnitLinear as Rays
from discreet.testing import Seeded

FILES = pathlib.Path(__file__).parent / "files"
WAVES = Waves(3, frequencies=6, scale=1.0, key_norm=2.0, query_norm=2.0)
MAPS = {
    "linear": lambda: Linear(3, key_norm=2.0),
    "rays": lambda: Rays(3, key_norm=2.0, stretch=8.0),
    "waves": lambda: WAVES,
    "lines_and_waves": lambda: LinesAndWaves(Linear(3, key_norm=2.0), WAVES),
    "near_landmarks": lambda: NearLandmarks(public_rows(3, 2.0), rank=8, scale=1.0, key_norm=2.0),
}
QUERIES = unit_rows(2, 4, 3, seed=9) * 1.9


def made(name, features):
    """One regression of each kind, under all sorts of settings."""
    return discreet.least_squares(
        unit_rows(2, 400, 3) * 1.9,
        unit_rows(2, 400, 2, seed=1) * 2.5,
        epsilon=2.0,
        delta=1e-6,
        key_norm=2.0,
        value_norm=2.5,
        neighbours="replace" if name == "linear" else "add_remove",
        rows_hint=400,
        features=features,
        public_rows=public_rows(3, 2.0) if name == "near_landmarks" else None,
        share=0.0 if name == "waves" else None,
        centred=name not in ("rays", "waves"),
        groups=np.arange(400) // 4 if name == "rays" else None,
        group_rows=2.0 if name == "rays" else 1.0,
        entropy=Seeded(2026),
    )


def write(name):
    """Write one of the files and what it predicts."""
    fit = made(name, MAPS[name]())
    fit.save(FILES / f"least-squares-v1-{name}.safetensors")
    predicted, error = fit.predict(QUERIES, stderr=True)
    parts = (fit.released.state, *fit.released.others)
    facts = {
        "predicted": predicted.tolist(),
        "stderr": error.tolist(),
        "sums": [int(part.sum()) for part in parts],
        "epsilon": 2.0,
        "delta": 1e-6,
    }
    (FILES / f"least-squares-v1-{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


@pytest.mark.parametrize("name", MAPS)
def test_a_file_of_the_first_version_loads_and_predicts_as_it_did(name):
    facts = json.loads((FILES / f"least-squares-v1-{name}.json").read_text())
    with pytest.warns(NotPrivateWarning):
        fit = discreet.load(FILES / f"least-squares-v1-{name}.safetensors")
    predicted, error = fit.predict(QUERIES, stderr=True)
    np.testing.assert_allclose(predicted, facts["predicted"], rtol=1e-6, atol=1e-9)
    # The ± of that version was a formula, and often too wide: what it estimates is the same.
    assert 1 / 3 < np.sqrt(np.mean(error**2) / np.mean(np.square(facts["stderr"]))) < 3
    parts = (fit.released.state, *fit.released.others)
    assert [int(part.sum()) for part in parts] == facts["sums"]
    assert (fit.guarantee.epsilon, fit.guarantee.delta) == (facts["epsilon"], facts["delta"])


@pytest.mark.parametrize("name", MAPS)
def test_the_same_rows_have_the_same_sums_as_then(name):
    facts = json.loads((FILES / f"least-squares-v1-{name}.json").read_text())
    with pytest.warns(NotPrivateWarning):
        features = discreet.load(FILES / f"least-squares-v1-{name}.safetensors").features
    fit = made(name, features)
    parts = (fit.released.state, *fit.released.others)
    assert [int(part.sum()) for part in parts] == facts["sums"]
