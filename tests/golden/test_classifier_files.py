"""Files of classifiers of the first format version: every later version must load them.

They were written by `write` below, with noise for tests, and are never written again. That the same
rows lead to the same coefficients is not asked for: steps go along eigenvectors of noisy second
moments, which may differ in a last bit on another machine, and so may all that follows.
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
    "waves": lambda: WAVES,
    "rays": lambda: Rays(3, key_norm=2.0, stretch=8.0),
    "lines_and_waves": lambda: LinesAndWaves(Linear(3, key_norm=2.0), WAVES),
    "near_landmarks": lambda: NearLandmarks(public_rows(3, 2.0), rank=8, scale=1.0, key_norm=2.0),
}
OPTIONS = {
    "waves": {"classes": [1, 2, 3]},
    "rays": {"classes": ["no", "yes"], "groups": np.arange(400) // 4, "group_rows": 2.0},
    "lines_and_waves": {"classes": ["ash", "birch", "cedar", "elm"], "neighbours": "replace"},
    "near_landmarks": {"classes": [-0.5, 0.5], "public_rows": public_rows(3, 2.0)},
}
KEYS, QUERIES = unit_rows(400, 3) * 1.9, unit_rows(2, 4, 3, seed=9) * 1.9


def made(name):
    """One classifier of each kind, under all sorts of settings."""
    classes = OPTIONS[name]["classes"]
    places = np.argmax(KEYS @ unit_rows(len(classes), 3, seed=1).T, axis=1)
    return discreet.softmax_regression(
        KEYS,
        np.array(classes)[places],
        epsilon=2.0,
        delta=1e-6,
        key_norm=2.0,
        rows_hint=400,
        features=MAPS[name](),
        entropy=Seeded(2026),
        **OPTIONS[name],
    )


def write(name):
    """Write one of the files and what it predicts."""
    fit = made(name)
    fit.save(FILES / f"softmax-regression-v1-{name}.safetensors")
    totals, error = fit.totals
    facts = {
        "logits": fit.logits(QUERIES).tolist(),
        "predicted": fit.predict(QUERIES).tolist(),
        "balanced": fit.predict(QUERIES, balanced=True).tolist(),
        "totals": totals.tolist(),
        "stderr": error,
        "sums": [int(part.sum()) for part in (fit.released.state, *fit.released.others)],
        "epsilon": 2.0,
        "delta": 1e-6,
        "neighbours": OPTIONS[name].get("neighbours", "add_remove"),
        "unit": "record" if "groups" in OPTIONS[name] else "row",
        "rows": 400 if "neighbours" in OPTIONS[name] else None,
    }
    (FILES / f"softmax-regression-v1-{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


@pytest.mark.parametrize("name", MAPS)
def test_a_file_of_the_first_version_loads_and_predicts_as_it_did(name):
    facts = json.loads((FILES / f"softmax-regression-v1-{name}.json").read_text())
    with pytest.warns(NotPrivateWarning):
        fit = discreet.load(FILES / f"softmax-regression-v1-{name}.safetensors")
    np.testing.assert_allclose(fit.logits(QUERIES), facts["logits"], rtol=1e-6, atol=1e-9)
    assert fit.predict(QUERIES).tolist() == facts["predicted"]
    assert fit.predict(QUERIES, balanced=True).tolist() == facts["balanced"]
    assert fit.classes.tolist() == OPTIONS[name]["classes"]
    totals, error = fit.totals
    assert totals.tolist() == facts["totals"]
    assert error == pytest.approx(facts["stderr"], rel=1e-9)
    parts = (fit.released.state, *fit.released.others)
    assert [int(part.sum()) for part in parts] == facts["sums"]
    guarantee = fit.guarantee
    assert (guarantee.epsilon, guarantee.delta) == (facts["epsilon"], facts["delta"])
    assert (guarantee.neighbours, guarantee.unit) == (facts["neighbours"], facts["unit"])
    assert fit.released.rows == facts["rows"]
    assert fit.receipt.guarantee(delta=1e-6).epsilon == pytest.approx(2.0, rel=1e-6)
