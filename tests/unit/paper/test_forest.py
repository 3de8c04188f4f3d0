import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.noise import DiscreteLaplace
from discreet.paper.forest import Forest, all_depths, leaf_of, levels_for, node_count, scatter
from discreet.testing import Silent

LAW = DiscreteLaplace(scale=5.0)


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
