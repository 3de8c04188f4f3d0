"""Which reader and which features: by public numbers."""

import numpy as np
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from discreet.memory import build
from discreet.regression import Linear
from discreet.sklearn import readers
from discreet.sklearn.averaging import Average, _beyond, _shares
from discreet.sklearn.columns import Columns, Embeddings
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.solving import Solve
from discreet.sklearn.sphere import on_sphere
from discreet.testing import Seeded, Silent


def situation(**change):
    given = {"reader": "auto", "given": "auto", "features": "waves", "epsilon": 1.0, "classes": 10}
    return readers.Situation(**{**given, **change})


@pytest.mark.parametrize(
    ("rows", "change", "name"),
    [
        (1500, {}, "average"),
        (1501, {}, "least_squares"),
        (3000, {"epsilon": 0.5}, "average"),
        (450, {"classes": 3}, "average"),
        (100, {"features": "linear"}, "least_squares"),
        (100, {"given": "waves"}, "least_squares"),
        (100, {"classes": 2}, "least_squares"),
        (100, {"classes": None}, "least_squares"),
    ],
)
def test_the_rule(rows, change, name):
    assert situation(**change).choose(rows).name == name
    for named in ("average", "least_squares"):
        assert situation(**{**change, "reader": named}).choose(rows).name == named


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        ({}, True),
        ({"features": "linear"}, False),
        ({"given": "waves"}, False),
        ({"classes": 2}, False),
        ({"classes": None}, False),
        ({"classes": None, "features": "auto"}, True),
        ({"reader": "least_squares"}, False),
        ({"reader": "least_squares", "features": "auto"}, True),
        ({"reader": "average", "features": "linear", "classes": None}, True),
    ],
)
def test_a_number_of_rows_is_asked_for_only_where_it_is_used(change, needed):
    assert situation(**change).needs_rows is needed


def test_features_follow_the_columns():
    own = Columns(Ranges.of("bounds", ([0, 0], [1, 2]), 2))
    alike = Columns(Ranges.of("bounds", (0, 1), 2))
    found = [
        readers.features_for("auto", columns, has_public_rows=False)
        for columns in (own, alike, Embeddings(1.0))
    ]
    assert found == ["linear", "waves", "auto"]
    for columns in (own, alike, Embeddings(1.0)):
        assert readers.features_for("auto", columns, has_public_rows=True) == "near_landmarks"
        assert readers.features_for("waves", columns, has_public_rows=True) == "waves"
    given = Linear(2)
    assert readers.features_for(given, own, has_public_rows=False) is given


def test_what_there_is_not_is_refused():
    with pytest.raises(InvalidInput, match=r"reader='rank'.*average.*least_squares"):
        readers.check("rank", "auto")
    with pytest.raises(InvalidInput, match=r"features='linear'.*'auto'"):
        readers.check("average", "linear")
    readers.check("least_squares", "linear")
    readers.check("auto", Linear(2))


def test_a_release_of_another_reader_is_refused():
    memory = build(
        np.zeros((3, 2)), np.zeros((3, 1)), epsilon=1, delta=1e-5, scale=1.0, entropy=Silent()
    )
    with pytest.raises(TypeError, match="Memory"):
        Solve().numbers(memory, np.zeros((1, 2)))
    with pytest.raises(TypeError, match="str"):
        Average().numbers("memory", np.zeros((1, 2)))


def memory_of(shares, count=2000, **options):
    generator = np.random.default_rng(0)
    classes = generator.choice(len(shares), p=shares, size=count)
    keys = on_sphere(generator.normal(scale=0.1, size=(count, 4)), 1.0)
    values = np.eye(len(shares))[classes] - 1 / len(shares)
    given = {"epsilon": 1, "delta": 1e-5, "rows_hint": count, "entropy": Seeded(0)}
    return build(keys, values, **{**given, **options}), np.mean(values, axis=0)


def test_shares_of_classes_come_from_the_sums():
    memory, shares = memory_of([0.7, 0.2, 0.1])
    np.testing.assert_allclose(_shares(memory), shares, atol=0.06)
    # Rows that are all over the sphere weigh the same at the origin only.
    keys = np.random.default_rng(1).normal(size=(2000, 5))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    classes = (keys[:, -1] > 0.5).astype(int)
    values = np.eye(2)[classes] - 1 / 2
    wide = build(keys, values, epsilon=4, delta=1e-5, scale=3.0, entropy=Seeded(0))
    np.testing.assert_allclose(_shares(wide), values.mean(0), atol=0.06)
    at_the_pole = np.average(values, axis=0, weights=np.exp(3 * keys[:, -1]))
    assert np.abs(at_the_pole - values.mean(0)).max() > 0.2


def test_shares_that_are_noise_are_taken_for_equal():
    keys = np.tile([[0.6, 0.8]], (400, 1))
    values = np.tile(np.eye(4) - 1 / 4, (100, 1))
    for seed in range(5):
        memory = build(keys, values, epsilon=1, delta=1e-5, scale=3.0, entropy=Seeded(seed))
        assert not np.any(_shares(memory))
    noise = np.random.default_rng(0).normal(size=(2000, 10))
    assert np.mean([_beyond(shares, np.ones(10)) for shares in noise]) < 0.02
    assert np.mean([_beyond(shares, np.full(10, 0.4)) for shares in noise]) > 0.9
