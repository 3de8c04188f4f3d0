"""What answers distances beside the trees: right without noise, and as noisy as it claims."""

import math

import numpy as np
import pytest

from discreet_benchmarks.paper import distance_methods as methods
from discreet_benchmarks.paper.attention import sigma
from discreet_benchmarks.paper.distance_methods import Distances

pytestmark = pytest.mark.docs


def distances(power=1, dim=1, rows=300, epsilon=1.0):
    rng = np.random.default_rng(5)
    return Distances(
        rng.random((rows, dim)),
        rng.uniform(-1, 1, rows),
        rng.random((40, dim)),
        power=power,
        epsilon=epsilon,
    )


def silenced(monkeypatch):
    monkeypatch.setattr(Distances, "gaussian", lambda self, change, shape, seed: np.zeros(shape))


@pytest.mark.parametrize("power", [1, 2, 3, 4, 5])
def test_the_series_is_that_of_the_power(power):
    t = np.linspace(-1, 1, 401)
    series = methods.cosine_series(power)
    found = np.cos(math.pi * t[:, None] * np.arange(len(series))) @ series
    np.testing.assert_allclose(found, np.abs(t) ** power, atol=0.002 * power)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_without_noise_the_answers_are_right(monkeypatch, power, dim):
    silenced(monkeypatch)
    data = distances(power, dim)
    found = {"cosines": methods.cosines(data, 0), "cells": methods.histogram(5000)(data, 0)}
    if power % 2 == 0:
        found["moments"] = methods.moments(data, 0)
    for name, answers in found.items():
        scale = 1e-9 if name == "moments" else 2e-3
        np.testing.assert_allclose(answers, data.truth, atol=scale * 300 * dim, err_msg=name)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("method", [methods.cosines, methods.moments, methods.histogram(8)])
def test_replacing_a_row_changes_what_is_released_by_at_most_what_is_claimed(
    monkeypatch, method, dim
):
    """The noise's own arguments tell the claim; the answers' coefficients what was released."""
    claims = []

    def noted(self, change, shape, seed):
        claims.append(change)
        return np.zeros(shape)

    monkeypatch.setattr(Distances, "gaussian", noted)
    rng = np.random.default_rng(3)
    largest = 0.0
    for trial in range(60):
        points = rng.random((2, 1, dim)).round(0 if trial % 2 else 9)
        weights = np.sign(rng.uniform(-1, 1, (2, 1)))
        sums = [
            released(method, Distances(x, w, np.zeros((1, dim)), 2))
            for x, w in zip(points, weights, strict=True)
        ]
        largest = max(largest, float(np.linalg.norm(sums[0] - sums[1])))
        method(Distances(points[0], weights[0], np.zeros((1, dim)), 2), 0)
    assert len(set(claims)) == 1
    assert 0.95 * claims[0] < largest <= claims[0] * (1 + 1e-9)


def released(method, data):
    """Return the numbers to which a method adds noise, by how answers move with each of them."""
    if method is methods.cosines:
        scale = np.sqrt(np.abs(methods.cosine_series(data.power)))
        first = [math.sqrt(data.dim) * scale[0] * data.weights.sum()]
        return np.concatenate([first, *((scale[1:] * wave).ravel() for wave in data.waves)])
    if method is methods.moments:
        u = data.points - 0.5
        powers = [data.weights @ u**q for q in range(1, data.power + 1)]
        return np.concatenate([[data.weights.sum()], *powers])
    cells = np.minimum((data.points * 8).astype(int), 7)
    return np.concatenate([np.bincount(cells[:, j], data.weights, 8) for j in range(data.dim)])


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("power", [1, 2])
def test_cosine_sums_have_the_noise_of_one_query(power, dim):
    data = distances(power, dim)
    silent = data.truth
    errors = [methods.cosines(data, seed) - silent for seed in range(300)]
    measured = math.sqrt(np.mean(np.square(errors)))
    expected = 2 * dim * sigma(1.0, 1e-6)
    assert measured == pytest.approx(expected, rel=0.15)
    assert not 0.85 < measured / (2 / 3 * expected) < 1.15
    assert not 0.85 < measured / (3 / 2 * expected) < 1.15


def test_one_by_one_costs_more_the_more_is_asked():
    rng = np.random.default_rng(0)
    few, many = (
        Distances(rng.random((10, 1)), np.ones(10), rng.random((m, 1))) for m in (10, 1000)
    )
    noise = [
        np.std([methods.one_by_one(data, seed) - data.truth for seed in range(50)])
        for data in (few, many)
    ]
    assert noise[1] / noise[0] == pytest.approx(10, rel=0.2)


@pytest.mark.parametrize("dim", [1, 2])
def test_trees_are_the_papers(dim):
    data = distances(1, dim, rows=32)
    tree = methods.tree(data, 1, accounting="tight")
    assert type(tree).__name__ == ("DPTreeDistance" if dim == 1 else "DPTreeHighDim")
    assert tree.guarantee.epsilon <= data.epsilon
    assert tree.guarantee.delta <= data.delta * (1 + 1e-12)
    answers = methods.trees(accounting="tight")(data, 1)
    assert answers.shape == data.truth.shape
