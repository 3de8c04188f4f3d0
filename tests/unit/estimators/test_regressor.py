"""The private regressor: numbers, their ranges, and how far noise has moved them."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from discreet import Memory, PrivacyLeakWarning, build
from discreet.sklearn import PrivateRegressor
from discreet.testing import Seeded, Silent

# Several fits of one estimator and its clones are warned of: `test_fits.py`.
pytestmark = pytest.mark.filterwarnings("ignore:.* fits by now:discreet.PrivacyLeakWarning")

GENERATOR = np.random.default_rng(0)
HIGH = np.array([1.0, 10.0, 100.0])
X = GENERATOR.uniform(-HIGH, HIGH, (5000, 3))
TRUTH = 50 + (X / HIGH) @ [10.0, -5.0, 3.0]
Y = TRUTH + GENERATOR.normal(size=5000)
PUBLIC = {"bounds": (-HIGH, HIGH), "target_bounds": (20, 80), "rows_hint": 5000}


@pytest.mark.parametrize(("reader", "least"), [("least_squares", 0.9), ("average", 0.2)])
def test_straight_lines(reader, least):
    model = PrivateRegressor(1, 1e-5, reader=reader, entropy=Seeded(1), **PUBLIC).fit(X, Y)
    predicted = model.predict(X)
    assert predicted.shape == (5000,)
    assert model.score(X, Y) > least
    assert model.reader_ == reader
    assert isinstance(model.release_, Memory) is (reader == "average")


def test_predictions_are_within_the_public_range():
    model = PrivateRegressor(
        4, 1e-5, **{**PUBLIC, "target_bounds": (48, 52)}, entropy=Silent()
    ).fit(X, Y)
    predicted = model.predict(X)
    assert predicted.min() >= 48
    assert predicted.max() <= 52
    assert len(np.unique(predicted)) > 100


def test_several_outputs():
    both = np.stack([Y, 3 - TRUTH / 10], axis=1)
    model = PrivateRegressor(
        2, 1e-5, bounds=(-HIGH, HIGH), target_bounds=([20, -10], [80, 10]), rows_hint=5000
    ).fit(X, both)
    assert model.release_.released.layout.value_norm == pytest.approx(np.sqrt(2))
    predicted, std = model.predict(X, return_std=True)
    assert predicted.shape == std.shape == (5000, 2)
    assert model.score(X, both) > 0.5
    single = model.fit(X, both[:, :1].repeat(2, axis=1)).predict(X)
    assert single.shape == (5000, 2)
    column = PrivateRegressor(2, 1e-5, **PUBLIC).fit(X, Y[:, None]).predict(X)
    assert column.shape == (5000, 1)


@pytest.mark.parametrize("reader", ["least_squares", "average"])
def test_the_standard_error_is_that_of_the_noise(reader):
    public = {**PUBLIC, "reader": reader}
    exact = PrivateRegressor(1, 1e-5, entropy=Silent(), **public).fit(X, Y).predict(X[:100])
    ratios = []
    for seed in range(6):
        model = PrivateRegressor(1, 1e-5, entropy=Seeded(seed), **public).fit(X, Y)
        predicted, std = model.predict(X[:100], return_std=True)
        assert std.shape == (100,)
        assert std.min() > 0
        ratios.append((predicted - exact) / std)
    # Four directions in least squares: few degrees of freedom, so a wide margin around .67.
    assert 0.35 < np.median(np.abs(ratios)) < 1.3
    assert np.quantile(ratios, 0.01) > -6


def test_averages_are_as_warm_as_averages_should_be():
    model = PrivateRegressor(1, 1e-5, reader="average", **PUBLIC).fit(X, Y)
    given = {"epsilon": 1, "delta": 1e-5, "rows_hint": 5000}
    scales = [
        build(np.zeros((1, 4)), np.zeros((1, 1)), goal=goal, **given).scale
        for goal in ("average", "rank")
    ]
    assert model.release_.scale == scales[0] != scales[1]


def test_errors_have_the_units_of_targets():
    public = {"bounds": (-HIGH, HIGH), "rows_hint": 5000}
    small = PrivateRegressor(1, 1e-5, target_bounds=(2, 8), entropy=Seeded(0), **public)
    large = PrivateRegressor(1, 1e-5, target_bounds=(20, 80), entropy=Seeded(0), **public)
    _, one = small.fit(X, Y / 10).predict(X[:9], return_std=True)
    _, ten = large.fit(X, Y).predict(X[:9], return_std=True)
    np.testing.assert_allclose(ten, 10 * one, rtol=1e-3)


def test_a_target_that_is_always_the_same():
    model = PrivateRegressor(1, 1e-5, **{**PUBLIC, "target_bounds": None})
    with pytest.warns(PrivacyLeakWarning, match="target"):
        model.fit(X, np.full(len(X), 7.0))
    assert set(model.predict(X[:10])) == {7.0}


def test_whole_numbers_are_targets_too():
    model = PrivateRegressor(1, 1e-5, **PUBLIC).fit(X, np.rint(Y).astype(int))
    assert model.score(X, Y) > 0.8


def test_targets_beyond_their_range_count_as_its_ends():
    wild = np.where(np.arange(5000) % 2 == 0, Y, 1e6)
    tame = np.minimum(wild, 80)
    made = [
        PrivateRegressor(1, 1e-5, entropy=Silent(), **PUBLIC).fit(X, each).predict(X[:50])
        for each in (wild, tame)
    ]
    np.testing.assert_array_equal(*made)
