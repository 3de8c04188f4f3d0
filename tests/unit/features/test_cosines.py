"""Cosine features of distances: the series, the integers and their bounds, queries like rows."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import InvalidInput
from discreet.features.base import FEATURE_RADIUS
from discreet.features.cosines import Cosines, cosine_series, left_out
from discreet.features.registry import DISTANCES

POWERS = [0.5, 1, 1.5, 2, 3, 7.25]


def box(power=1.0, terms=64, low=(0.0, -2.0), high=(1.0, 3.0)):
    return Cosines(low=low, high=high, power=power, terms=terms)


@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_the_series_is_the_one_that_integrals_give(power):
    """By parts, twice, as in the report of the paper."""
    k = np.arange(1, 300)
    signs, squares = (-1.0) ** k, (k * np.pi) ** 2
    integral = (signs - 1) / squares if power % 2 else np.zeros(len(k))
    for p in range(power % 2 + 2, power + 1, 2):
        integral = (p * signs - p * (p - 1) * integral) / squares
    truth = np.concatenate([[1 / (power + 1)], 2 * integral])
    np.testing.assert_allclose(cosine_series(power)[:300], truth, atol=1e-9)


@pytest.mark.parametrize("power", POWERS)
def test_what_is_left_out_is_within_its_bound_and_reaches_it_about(power):
    t = np.linspace(-1, 1, 20_001)
    for terms in (16, 128):
        kept = np.cos(np.outer(t, np.arange(terms)) * np.pi) @ cosine_series(power)[:terms]
        worst = np.max(np.abs(kept - np.abs(t) ** power))
        assert 0.2 * left_out(power, terms) < worst <= left_out(power, terms) * (1 + 1e-3) + 1e-6


@given(
    st.sampled_from(POWERS),
    st.integers(16, 200),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_no_row_is_longer_than_the_radius_and_nearly_all_of_it_is_used(power, terms, dim, seed):
    rng = np.random.default_rng(seed)
    low = rng.normal(size=dim) * 10
    kernel = Cosines(
        low=tuple(low), high=tuple(low + rng.exponential(size=dim) + 1e-3), power=power, terms=terms
    )
    points = rng.uniform(kernel.low, kernel.high, size=(40, dim))
    points[:4] = [kernel.low, kernel.high, low - 1e9, low + 1e9]
    features = kernel.key_features(points).features
    assert np.array_equal(features, np.rint(features))
    squared = np.sum(features.astype(object) ** 2, axis=1)
    assert max(squared) <= FEATURE_RADIUS**2
    assert min(squared) > 0.99 * FEATURE_RADIUS**2
    assert np.max(np.abs(features)) <= kernel.entry_bound
    inner = features @ features.T
    assert np.min(inner) >= kernel.least_inner


@pytest.mark.parametrize("power", POWERS)
def test_the_least_inner_product_is_nearly_reached(power):
    kernel = Cosines(low=(0.0,), high=(1.0,), power=power, terms=64)
    grid = np.linspace(0, 1, 1025)[:, None]
    features = kernel.key_features(grid).features
    least = np.min(features @ features.T)
    assert kernel.least_inner <= least <= kernel.least_inner + 0.01 * FEATURE_RADIUS**2


def test_a_row_has_the_same_features_wherever_it_stands():
    kernel = box(terms=97)
    points = np.random.default_rng(1).uniform(-3, 4, size=(301, 2))
    whole = kernel.key_features(points).features.copy()
    order = np.random.default_rng(2).permutation(301)
    assert np.array_equal(kernel.key_features(points[order]).features, whole[order])
    for at in (0, 7, 300):
        assert np.array_equal(kernel.key_features(points[at : at + 1]).features[0], whole[at])
    memory = np.full(10**6, np.nan)
    assert np.array_equal(kernel.key_features(points, out=memory).features, whole)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("library", [np, torch])
def test_products_of_rows_and_queries_are_distances(power, library):
    kernel = box(power, terms=2_000)
    rng = np.random.default_rng(3)
    x, y = (rng.uniform(kernel.low, kernel.high, size=(50, 2)) for _ in range(2))
    arrays = {name: library.asarray(each) for name, each in kernel.query_arrays().items()}
    queries = np.asarray(kernel.query_features(library.asarray(y)[None], arrays))[0]
    rows = kernel.key_features(x).features / kernel.unit
    found = kernel.total_width * rows @ queries.T
    truth = np.sum(np.abs(x[:, None] - y[None]) ** power, axis=2)
    slack = kernel.total_width * (left_out(power, 2_000) + 2e-4)
    assert np.max(np.abs(found - truth)) < slack
    lengths = np.sum(queries**2, axis=1)
    np.testing.assert_allclose(lengths, kernel.length, rtol=2e-4)


def test_files_and_pickles_bring_the_same_map_back():
    kernel = box(1.5, terms=33)
    again = DISTANCES.restore(kernel.parameters(), kernel.arrays())
    points = np.random.default_rng(4).uniform(-3, 4, size=(20, 2))
    features = kernel.key_features(points).features
    for other in (again, pickle.loads(pickle.dumps(kernel))):
        assert other == kernel
        assert np.array_equal(other.key_features(points).features, features)


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": (0.0,), "high": (0.0,)},
        {"low": (1.0,), "high": (0.0,)},
        {"low": (), "high": ()},
        {"low": (0.0,), "high": (1.0, 2.0)},
        {"low": (0.0,), "high": (np.inf,)},
        {"low": (0.0,), "high": (np.nan,)},
        {"power": 0},
        {"power": -1},
        {"power": 17},
        {"terms": 1},
        {"low": (-1e30,), "high": (1e30,), "power": 16},
    ],
)
def test_what_is_no_box_is_refused(wrong):
    with pytest.raises(InvalidInput):
        Cosines(**{"low": (0.0,), "high": (1.0,), "power": 1, "terms": 64} | wrong)
