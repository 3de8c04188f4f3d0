"""What one replaced row changes in the integer states, level by level, against the claim."""

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import paper
from discreet.paper.distance import DistanceForest, moment_sums
from discreet.paper.forest import ExactTrees
from discreet.testing import Silent

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "delta_prime": 1e-6, "c": 0.1, "entropy": Silent()}
UNIT = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1))


def level_changes(trees, other):
    """L1 change of each level of each tree, shape (levels, coordinates, columns, moments)."""
    one, two = trees.forest, other.forest
    assert one.depths == two.depths
    return np.stack([np.abs(one.level(k) - two.level(k))[:, :, 0].sum(axis=1) for k in one.depths])


@st.composite
def neighbours(draw):
    """Keys and values, and the same with one row replaced, key and value both."""
    rows = draw(st.integers(1, 20))
    keys = draw(hnp.arrays(np.float64, (rows, 2), elements=UNIT))
    values = draw(hnp.arrays(np.float64, (rows, 2), elements=st.floats(-1, 1)))
    which = draw(st.integers(0, rows - 1))
    other_keys, other_values = keys.copy(), values.copy()
    other_keys[which] = draw(hnp.arrays(np.float64, 2, elements=st.floats(-1, 3)))  # clipped
    other_values[which] = draw(hnp.arrays(np.float64, 2, elements=st.floats(-3, 3)))
    return (keys, values), (other_keys, other_values)


def attention(keys, values):
    return paper.DPCrossAttention(
        keys, values, upper=1.0, value_bound=1.0, eps_s=0.1, p_f=0.01, accounting="tight", **BUDGET
    )


def exact(values, noise):
    """Trees over points that are all one."""
    ones = np.ones((len(values), 1))
    return ExactTrees(moment_sums(ones, values, 2, noise.unit), noise.law)


@settings(max_examples=40)
@given(pair=neighbours())
def test_no_level_changes_by_more_than_claimed(pair):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one, other = (attention(*side).state.sums for side in pair)
    claimed = one.trees.noise.mechanism.sensitivity
    assert claimed == 2 * one.trees.noise.unit
    assert level_changes(one.trees, other.trees).max() <= claimed
    # The s_w trees are not kept; they are built from points that are all one.
    noise = one.noise.totals
    sums = [
        DistanceForest(exact(values, noise).noisy(Silent()), noise, 2, len(values))
        for _, values in pair
    ]
    assert noise.mechanism.sensitivity == 2 * noise.unit
    assert level_changes(*sums).max() <= noise.mechanism.sensitivity


def test_the_claim_is_reached():
    """A row that moves across the whole interval with the largest weights of opposite sign."""
    x = np.array([[1.0], [0.0]])
    one, other = (
        paper.DPTreeHighDim(
            x, [weight, 1.0], p=2, upper=1.0, weight_bound=1.0, **BUDGET
        ).state.trees
        for weight in (1.0, -1.0)
    )
    changes = level_changes(one, other)
    assert changes.min() >= 0.99 * one.noise.mechanism.sensitivity


def test_two_leaves_share_the_claim():
    """A row that moves between leaves touches two nodes of a level, together within the claim."""
    options = {"p": 1, "upper": 1.0, "weight_bound": 1.0, "epsilon": 1.0, "delta": 1e-6}
    filler = np.full(15, 0.5)
    one, other = (
        paper.DPTreeDistance(
            np.append(filler, at), np.ones(16), entropy=Silent(), **options
        ).state.trees
        for at in (0.99, 0.01)
    )
    weights_moment = level_changes(one, other)[..., 0]
    assert np.all(weights_moment == 2 * one.noise.unit)
    touched = np.count_nonzero((one.forest.nodes - other.forest.nodes)[0, :, 0, 0, 0])
    assert touched == 2 * one.forest.levels


@given(
    leaves=hnp.arrays(
        np.float64,
        st.integers(1, 30),
        elements=st.one_of(st.floats(-5, 5), st.floats(-1e12, 1e12), st.floats(-1e300, 1e300)),
    ),
    data=st.data(),
)
def test_a_tree_of_real_leaves_covers_rounding_too(leaves, data):
    """Leaves may change everywhere by tiny amounts; rounding each adds at most one step."""
    change = data.draw(hnp.arrays(np.float64, len(leaves), elements=st.floats(-1, 1)))
    total = np.abs(change).sum()
    change = change / max(total, 1.0)  # L1 norm at most one
    options = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "upper": 1.0}
    one, other = (
        paper.DPTree(values, entropy=Silent(), **options) for values in (leaves, leaves + change)
    )
    claimed = one.state.covered[0][0].sensitivity
    for k in one.state.forest.depths:
        assert np.abs(one.state.forest.level(k) - other.state.forest.level(k)).sum() <= claimed


def test_rounding_adds_what_is_covered_for_it():
    """All leaves but one change by a fiftieth of a step, over a border; one by all the rest."""
    options = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "upper": 1.0}
    step = paper.DPTree(np.zeros(16), entropy=Silent(), **options).state.step
    leaves, change = np.full(16, 0.49 * step), np.full(16, 0.02 * step)
    change[0] = 1 - change[1:].sum()
    one, other = (
        paper.DPTree(values, entropy=Silent(), **options).state
        for values in (leaves, leaves + change)
    )
    moved = np.abs(one.forest.level(4) - other.forest.level(4)).sum()
    assert 1 / step + 14 <= moved <= one.covered[0][0].sensitivity


@settings(max_examples=40)
@given(pair=neighbours(), branching=st.sampled_from([2, 4, 8, 64]))
def test_trees_that_release_some_levels_stay_within_the_claim(pair, branching):
    """One node of each released level, and no more of them than are paid for."""
    one, other = (
        paper.DPTreeHighDim(
            keys,
            values[:, 0],
            p=1,
            upper=1.0,
            weight_bound=1.0,
            estimator="consistent",
            branching=branching,
            **BUDGET,
        )
        for keys, values in pair
    )
    trees = one.state.trees
    assert level_changes(trees, other.state.trees).max() <= trees.noise.mechanism.sensitivity
    assert trees.forest.nodes.shape[1] == sum(2**depth for depth in trees.forest.depths)
    [(mechanism, count)] = one.receipt.mechanisms
    assert mechanism == trees.noise.mechanism
    assert count == len(trees.forest.depths) * 2 * 2  # coordinates and moments


def test_the_claim_is_reached_in_trees_of_some_levels():
    one, other = (
        paper.DPTreeDistance(
            np.full(64, 0.7),
            np.append(np.zeros(63), weight),
            p=1,
            upper=1.0,
            weight_bound=1.0,
            epsilon=1.0,
            delta=1e-6,
            estimator="consistent",
            branching=4,
            entropy=Silent(),
        ).state.trees
        for weight in (1.0, -1.0)
    )
    assert level_changes(one, other)[..., 0].min() == one.noise.mechanism.sensitivity
