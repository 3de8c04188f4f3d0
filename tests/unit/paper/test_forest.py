"""Noisy trees as the paper reads them, and least squares over all levels against dense algebra."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import InvalidInput, paper
from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace
from discreet.paper.forest import (
    ConsistentForest,
    Forest,
    all_depths,
    even_depths,
    leaf_of,
    least_squares_variance,
    levels_for,
    node_count,
    scatter,
)
from discreet.testing import Seeded, Silent

LAW, WIDE = DiscreteLaplace(scale=5.0), DiscreteLaplace(scale=50.0)
OPTIONS = {"sensitivity": 2.0, "upper": 1.0, "epsilon": 1.0, "delta": 1e-6}
# Weights of what lies left and right of a leaf.
SIDES = [(1.0, 0.0), (0.0, 1.0), (1.0, -1.0), (1.0, 1.0)]


@pytest.mark.parametrize(
    ("rows", "levels"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (4096, 12)]
)
def test_leaves_are_a_power_of_two_and_at_least_two(rows, levels):
    assert levels_for(rows) == levels
    assert node_count(all_depths(levels)) == 2 * 2**levels - 2


def test_the_last_leaf_is_closed_on_the_right():
    at = np.array([0.0, 0.2499, 0.25, 0.5, 0.9999, 1.0])
    assert leaf_of(at, 2).tolist() == [0, 0, 1, 2, 3, 3]


@given(levels=st.integers(1, 6), seed=st.integers(0, 99))
def test_a_query_reads_one_node_of_each_level(levels, seed):
    """Left plus own leaf plus right is everything; and exactly L nodes are read."""
    rng = np.random.default_rng(seed)
    leaves = rng.integers(-50, 50, (3, 2**levels, 2, 2))
    forest = Forest.grow(leaves, LAW, 1, Silent())
    at = rng.random((5, 3))
    left, right = forest.query(at)
    for m in range(5):
        for c in range(3):
            own = leaf_of(at[m, c], levels)
            assert np.array_equal(left[m, c, 0], leaves[c, :own].sum(axis=0))
            assert np.array_equal(right[m, c, 0], leaves[c, own + 1 :].sum(axis=0))
    ones = Forest(np.ones_like(forest.nodes), levels, all_depths(levels))
    assert np.all(sum(ones.query(at)) == levels)


def test_copies_share_sums_and_differ_in_noise():
    leaves = np.arange(8).reshape(1, 8, 1, 1)
    forest = Forest.grow(leaves, LAW, 400, None)
    exact = Forest.grow(leaves, LAW, 1, Silent())
    noise = forest.nodes - exact.nodes
    assert noise.shape == (1, 14, 400, 1, 1)
    correlation = np.corrcoef(noise[0, :, :, 0, 0])
    assert np.abs(correlation - np.eye(14)).max() < 0.3
    assert noise.std() == pytest.approx(LAW.variance**0.5, rel=0.1)


def test_many_queries_are_answered_in_parts_alike(monkeypatch):
    from discreet.paper import forest as module

    rng = np.random.default_rng(0)
    forest = Forest.grow(rng.integers(0, 9, (2, 16, 1, 3)), LAW, 2, None)
    at = rng.random((101, 2))
    asked = []

    def left(positions):
        asked.append(len(positions))
        return forest.query(positions)[0]

    whole = forest.in_parts(left, at)
    monkeypatch.setattr(module, "_GATHER_BYTES", 10_000)
    assert np.array_equal(forest.in_parts(left, at), whole)
    assert asked[0] == 101
    assert len(asked) > 3
    assert sum(asked[1:]) == 101
    assert forest.in_parts(left, at[:0]).shape == (0, 2, 2, 1, 3)


def test_scatter_adds_what_it_is_given():
    rng = np.random.default_rng(3)
    own, values = rng.integers(0, 4, (50, 2)), rng.integers(-9, 9, (50, 2, 1, 3))
    leaves = np.zeros((2, 4, 1, 3), dtype=np.int64)
    scatter(leaves, own, values)
    expected = np.zeros_like(leaves)
    for row in range(50):
        for c in range(2):
            expected[c, own[row, c]] += values[row, c]
    assert np.array_equal(leaves, expected)


@st.composite
def some_depths(draw):
    """Some levels of a tree, that of its leaves among them."""
    levels = draw(st.integers(1, 6))
    above = draw(st.sets(st.integers(1, levels), max_size=levels))
    return tuple(sorted(above | {levels}))


def incidence(depths):
    """Which leaves each released node adds up: a dense matrix, node by leaf."""
    levels = depths[-1]
    leaves = np.arange(1 << levels)
    blocks = [leaves >> (levels - depth) == np.arange(1 << depth)[:, None] for depth in depths]
    return np.concatenate(blocks).astype(float)


def weights_of(leaf, depths, left, right):
    """How much each node weighs in left·(sum left of a leaf) + right·(sum right of it)."""
    matrix = incidence(depths)
    place = np.arange(matrix.shape[1])
    wanted = left * (place < leaf) + right * (place > leaf)
    return matrix @ np.linalg.solve(matrix.T @ matrix, wanted)


@settings(max_examples=60)
@given(depths=some_depths(), seed=st.integers(0, 10**6))
def test_answers_are_those_of_dense_least_squares(depths, seed):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(-90, 90, (2, 1 << depths[-1], 1, 2))
    forest = ConsistentForest.grow(leaves, WIDE, 2, Seeded(seed), depths)
    assert forest.nodes.shape == (2, sum(2**depth for depth in depths), 2, 1, 2)
    at = rng.random((7, 2))
    left, right = forest.query(at)
    matrix = incidence(depths)
    for coordinate in range(2):
        for copy in range(2):
            noisy = forest.nodes[coordinate, :, copy, 0]
            estimate = np.linalg.lstsq(matrix, noisy.astype(float), rcond=None)[0]
            for m, leaf in enumerate((at[:, coordinate] * (1 << depths[-1])).astype(int)):
                np.testing.assert_allclose(
                    left[m, coordinate, copy, 0], estimate[:leaf].sum(axis=0), atol=1e-6
                )
                np.testing.assert_allclose(
                    right[m, coordinate, copy, 0], estimate[leaf + 1 :].sum(axis=0), atol=1e-6
                )


@settings(max_examples=60)
@given(depths=some_depths(), sides=st.sampled_from(SIDES))
def test_the_variance_is_exact_and_no_node_weighs_more_than_is_said(depths, sides):
    left, right = sides
    leaves = np.arange(1 << depths[-1])
    found = least_squares_variance(leaves, depths, left=left, right=right)
    weights = np.array([weights_of(leaf, depths, left, right) for leaf in leaves])
    np.testing.assert_allclose(found, np.sum(weights**2, axis=1), atol=1e-9)
    nodes = np.zeros((1, weights.shape[1], 1, 1, 1), dtype=np.int64)
    worst = ConsistentForest(nodes, depths[-1], depths).worst(left=left, right=right)
    assert np.abs(weights).max() <= worst.weight + 1e-9
    assert found.max() <= worst.weight**2 * worst.count + 1e-9
    # What a Chernoff bound needs: log moments of every answer are below those that it uses.
    for law in (
        WIDE,
        TruncatedLaplace(sensitivity=50, epsilon=1.0, delta=1e-3),
        RoundedGaussian(sigma=30.0),
    ):
        for part in (0.1, 0.5, 0.95):
            tilt = part * min(law.largest_tilt, 1.0) / worst.weight
            answers = [math.fsum(law.log_moment(tilt * abs(w)) for w in row) for row in weights]
            bound = worst.count * law.log_moment(tilt * worst.weight) + tilt * worst.rounding
            assert max(answers) <= bound * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("levels", [1, 5, 12])
def test_levels_are_spaced_evenly_and_end_with_the_leaves(levels):
    assert even_depths(levels, levels) == all_depths(levels)
    for height in range(1, levels + 1):
        depths = even_depths(levels, height)
        steps = np.diff([0, *depths])
        assert depths[-1] == levels
        assert len(depths) == height
        assert steps.max() - steps.min() <= 1


def test_it_is_never_worse_than_adding_siblings_up():
    at = (np.arange(64) + 0.5) / 64
    nodes = np.zeros((1, 126, 1, 1, 1), dtype=np.int64)
    plain, best = (kind(nodes, 6, all_depths(6)) for kind in (Forest, ConsistentForest))
    for left, right in SIDES:
        variances = [each.variance(at, left=left, right=right) for each in (plain, best)]
        assert np.all(variances[1] <= variances[0] + 1e-12)
        assert variances[1].mean() < 0.6 * variances[0].mean()


def test_without_noise_both_estimators_agree():
    rng = np.random.default_rng(5)
    leaves, y = rng.normal(size=100), rng.random(50)
    for branching in (None, 2, 8, 128):
        one, other = (
            paper.DPTree(leaves, entropy=Silent(), estimator=how, branching=children, **OPTIONS)
            for how, children in (("paper", None), ("consistent", branching))
        )
        np.testing.assert_allclose(other.query(y), one.query(y), atol=1e-3)
        assert other.estimator is paper.Estimator.CONSISTENT
        assert one.estimator is paper.Estimator.PAPER


@pytest.mark.parametrize("accounting", list(paper.Accounting))
@pytest.mark.parametrize("rows", [100, 4096])
def test_the_design_has_the_least_predicted_variance(accounting, rows):
    leaves, y = np.zeros(rows), (np.arange(rows) + 0.5) / rows
    options = {**OPTIONS, "accounting": accounting, "estimator": "consistent"}

    def mean_variance(**choice):
        return float(np.mean(paper.DPTree(leaves, **options, **choice).variance(y)))

    best = mean_variance()
    others = {
        (kind, children): mean_variance(noise=kind, branching=children)
        for kind in ("gaussian", "truncated_laplace")
        for children in (2, 4, 16, 64)
    }
    # Not all leaves of a last level are there if rows are no power of two: means differ a little.
    assert best <= min(others.values()) * (1 if rows == 4096 else 1.1)
    paper_tree = paper.DPTree(leaves, **{**options, "estimator": "paper"})
    assert best < 0.36 * np.mean(paper_tree.variance(y))


def test_fewer_levels_are_released_and_paid_for():
    tree = paper.DPTree(np.zeros(4096), estimator="consistent", branching=16, **OPTIONS)
    [(mechanism, count)] = tree.receipt.mechanisms
    assert count == 3
    assert mechanism.epsilon == pytest.approx(OPTIONS["epsilon"] / 3)
    assert tree.nbytes == 8 * (16 + 256 + 4096)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"estimator": "consistent", "branching": 3}, "branching=3 to be a power of two"),
        ({"estimator": "consistent", "branching": 1}, "branching=1"),
        ({"branching": 4}, "branching=4 to be 2 or None"),
        ({"estimator": "mean"}, "estimator='mean'"),
    ],
)
def test_what_makes_no_tree_is_refused(options, said):
    with pytest.raises(InvalidInput, match=said):
        paper.DPTree(np.zeros(8), **OPTIONS, **options)


def test_noise_that_fits_no_lattice_is_refused():
    options = {**OPTIONS, "epsilon": 1e-11, "estimator": "consistent"}
    with pytest.raises(InvalidInput, match="fits the lattice"):
        paper.DPTree(np.zeros(8), noise="truncated_laplace", **options)
    # A Gaussian may also spend δ, and is taken.
    [(mechanism, _)] = paper.DPTree(np.zeros(8), **options).receipt.mechanisms
    assert type(mechanism).__name__ == "Gaussian"
