"""Files of other kinds, committed once: every later version must open them.

A bundle of memories, sealed sums, pickled estimators. They were written by `write` below, with
noise for tests, and are never written again; sums of the second version by `seal`.
"""

import json
import pathlib
import pickle

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet import NotPrivateWarning
from discreet.kernels import Fourier
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.options import Options
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.sums.partial import Partial
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import Table
from discreet.testing import Seeded

FILES = pathlib.Path(__file__).parent / "files"
PRIVACY = {"epsilon": 2.0, "delta": 1e-6}
KERNEL = Fourier(3, frequencies=8, scale=1.5, key_norm=1.0, query_norm=1.0)
QUERIES = unit_rows(4, 3, seed=9)
KEY = bytes(range(32))
X = unit_rows(60, 3)
SEALED = {"numbers": np.arange(60) // 3, "texts": np.array([f"p{i // 3}" for i in range(60)])}
KNOWN = {"norm": 1.0, "rows_hint": 60}
ESTIMATORS = {
    "classifier": (PrivateClassifier, {**KNOWN, "classes": ["a", "b"]}),
    "classifier-average": (
        PrivateClassifier,
        {"bounds": (-1, 1), "classes": [0, 1], "rows_hint": 60, "reader": "average"},
    ),
    "classifier-leaky": (PrivateClassifier, {"rows_hint": 60, "reader": "least_squares"}),
    "regressor": (PrivateRegressor, {"bounds": (-1, 1), "target_bounds": (0, 1), "rows_hint": 60}),
    "regressor-average": (
        PrivateRegressor,
        {**KNOWN, "target_bounds": (0, 1), "reader": "average"},
    ),
}


def settings():
    options = Options(**PRIVACY, kernel=KERNEL, group_rows=2.0)
    return ATTENTION.resolve([Shape(heads=(), key_dim=3, value_dim=2)], options, unit=Unit.RECORD)


def sums(groups):
    table = Table(unit_rows(60, 3), unit_rows(60, 2, seed=1))
    return Partial.of([table], settings(), groups=groups, shard="one")


def targets(name):
    if "regressor" in name:
        return np.clip(X[:, 0], 0, 1)
    return np.where(X[:, 0] > 0, *((1, 0) if name == "classifier-average" else ("a", "b")))


def predicted(name, model):
    if "regressor" in name:
        return model.predict(QUERIES).tolist()
    return model.predict_proba(QUERIES).tolist()


def seal(*, version):
    """Write sealed sums, as this version seals them."""
    for name, groups in SEALED.items():
        (FILES / f"partial-v{version}-{name}.sealed").write_bytes(sums(groups).seal(KEY))


def write():
    """Write the files, and what they answer."""
    layers = [(unit_rows(60, 3, seed=i), unit_rows(60, 2, seed=i + 5)) for i in range(2)]
    members = discreet.build_many(layers, **PRIVACY, kernel=KERNEL, entropy=Seeded(2026))
    notes, arrays = {"context": "made up"}, {"extra": np.arange(3)}
    Memories(tuple(members), notes, arrays).save(FILES / "memories-v1.safetensors")
    facts = {"memories": [each.plain.attend(QUERIES).tolist() for each in members]}
    seal(version=1)
    facts["sums"] = [each.tolist() for each in sums(SEALED["numbers"]).sums]
    for name, (kind, options) in ESTIMATORS.items():
        model = kind(2.0, 1e-5, **options, entropy=Seeded(2026)).fit(X, targets(name))
        (FILES / f"estimator-v1-{name}.pickle").write_bytes(pickle.dumps(model))
        facts[name] = predicted(name, model)
    (FILES / "others-v1.json").write_text(json.dumps(facts, indent=1) + "\n")


FACTS = json.loads((FILES / "others-v1.json").read_text())


def test_a_bundle_loads_and_answers_as_it_did():
    with pytest.warns(NotPrivateWarning):
        bundle = discreet.load(FILES / "memories-v1.safetensors")
    assert (bundle.notes, list(bundle.arrays)) == ({"context": "made up"}, ["extra"])
    for memory, answers in zip(bundle, FACTS["memories"], strict=True):
        np.testing.assert_allclose(memory.plain.attend(QUERIES), answers, rtol=1e-10)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", SEALED)
def test_sealed_sums_open_and_know_their_records(name, version):
    data = (FILES / f"partial-v{version}-{name}.sealed").read_bytes()
    opened = Partial.unseal(data, KEY, settings())
    for mine, then in zip(opened.sums, FACTS["sums"], strict=True):
        np.testing.assert_array_equal(mine, then)
    assert (opened.rows, opened.shards) == (60, frozenset({"one"}))
    again = sums(SEALED[name])
    assert opened.ids == again.ids
    for mine, now in zip(opened.sums, again.sums, strict=True):
        np.testing.assert_array_equal(mine, now)
    other = Partial.of(
        [Table(unit_rows(60, 3), unit_rows(60, 2))], settings(), groups=SEALED[name], shard="two"
    )
    with pytest.raises(discreet.InvalidInput):  # the same records
        opened.merge(other)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_pickled_estimator_predicts_as_it_did(name):
    with pytest.warns(NotPrivateWarning):
        model = pickle.loads((FILES / f"estimator-v1-{name}.pickle").read_bytes())
    np.testing.assert_allclose(predicted(name, model), FACTS[name], rtol=1e-8)
    leaks = ("bounds", "classes") if name == "classifier-leaky" else ()
    assert model.leaks_ == model.release_.receipt.leaks == leaks
    assert model.guarantee_.epsilon == 2.0
