"""Bounds against the singular values of small matrices; variances against least squares itself."""

import numpy as np
import pytest

from discreet_benchmarks.paper import trees

pytestmark = pytest.mark.docs

DEPTHS = [(1, 2, 3, 4), (2, 4), (4,), (1, 3, 4), (3, 4)]


def singular_sum(matrix):
    return np.linalg.svd(matrix, compute_uv=False).sum()


def all_ranges(leaves):
    ends = [(i, j) for i in range(leaves) for j in range(i + 1, leaves + 1)]
    leaf = np.arange(leaves)
    return np.array([(leaf >= i) & (leaf < j) for i, j in ends], dtype=float)


@pytest.mark.parametrize("leaves", [2, 7, 24])
def test_bounds_are_those_of_the_matrices(leaves):
    ranges = all_ranges(leaves)
    expected = singular_sum(ranges) / np.sqrt(ranges.size)
    assert trees.range_bound(leaves) == pytest.approx(expected)
    prefixes = np.tri(leaves)
    assert trees.prefix_bound(leaves) == pytest.approx(singular_sum(prefixes) / leaves)
    middles = (np.arange(leaves) + 0.5) / leaves
    apart = np.abs(middles[:, None] - middles)
    assert trees.distance_bound(leaves) == pytest.approx(singular_sum(apart) / leaves)


def test_no_factorisation_that_is_at_hand_beats_the_bound():
    ranges = all_ranges(16)
    tree = np.concatenate([np.kron(np.eye(16 >> k), np.ones(1 << k)) for k in range(4)])
    for strategy in (np.eye(16), tree, np.tri(16)):
        spread = np.linalg.norm(strategy, axis=0).max()
        error = spread * np.linalg.norm(ranges @ np.linalg.pinv(strategy)) / np.sqrt(len(ranges))
        assert error >= trees.range_bound(16)


def released(depths):
    """Return which leaves each released node adds up."""
    levels = depths[-1]
    return np.concatenate([np.kron(np.eye(1 << d), np.ones(1 << (levels - d))) for d in depths])


@pytest.mark.parametrize("depths", DEPTHS)
def test_range_variances_are_those_of_least_squares(depths):
    inverse = np.linalg.inv(released(depths).T @ released(depths))
    start, stop = np.array([(i, j) for i in range(16) for j in range(i + 1, 17)]).T
    ranges = all_ranges(16)
    expected = np.einsum("ri,ij,rj->r", ranges, inverse, ranges)
    found = trees.least_squares_range_variance(start, stop, depths)
    np.testing.assert_allclose(found, expected)


def test_binary_range_variances_count_the_nodes_that_differ():
    def prefix(leaf):
        nodes = set()
        for depth in range(1, 5):
            at = leaf >> (4 - depth)
            if at % 2:
                nodes.add((depth, at - 1))
        return nodes

    start, stop = np.array([(i, j) for i in range(15) for j in range(i + 1, 16)]).T
    expected = [len(prefix(i) ^ prefix(j)) for i, j in zip(start, stop, strict=True)]
    np.testing.assert_array_equal(trees.binary_range_variance(start, stop, 4), expected)
