"""Without noise every structure equals its oracle up to the error that it states."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import paper
from discreet.paper import oracle
from discreet.testing import Silent

UPPER, BOUND = 1.5, 2.0
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "entropy": Silent()}
SPLIT = {"delta_prime": 1e-6, "c": 0.1}
BOXES = {"upper": UPPER, "weight_bound": BOUND}


def numbers(low, high):
    """Numbers in an interval, with its ends, its middle and repetitions made likely."""
    special = st.sampled_from([low, high, (low + high) / 2, high / 4, low + (high - low) / 8])
    return st.one_of(special, st.floats(low, high))


def data(columns):
    """(points, weights, queries): one row, duplicates, all equal, ends, any number of rows."""

    @st.composite
    def draw(draw):
        rows = draw(st.one_of(st.integers(1, 5), st.integers(1, 40)))
        shape = (rows, columns)
        points = draw(hnp.arrays(np.float64, shape, elements=numbers(0.0, UPPER)))
        if draw(st.booleans()):
            points = np.repeat(points[:1], rows, axis=0)
        weights = draw(hnp.arrays(np.float64, rows, elements=numbers(-BOUND, BOUND)))
        queries = draw(hnp.arrays(np.float64, (4, columns), elements=numbers(0.0, UPPER)))
        return points, weights, np.concatenate([queries, points[:2]])

    return draw()


def assert_close(answer, truth, bound):
    assert np.abs(answer - truth).max() <= bound * (1 + 1e-9) + 1e-9


@given(
    leaves=hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-3, 3)),
    y=hnp.arrays(np.float64, 6, elements=numbers(0.0, UPPER)),
    boosted=st.booleans(),
)
def test_tree(leaves, y, boosted):
    options = {"sensitivity": 2.0, "upper": UPPER, **BUDGET}
    if boosted:
        tree = paper.DPTreeBoosted(leaves, delta_fail=1e-3, **options)
    else:
        tree = paper.DPTree(leaves, **options)
    for answer, truth in zip(tree.query(y), oracle.tree_sums(leaves, y, UPPER), strict=True):
        assert_close(answer, truth, tree.deterministic_error)
    assert tree.deterministic_error < 0.01


@given(drawn=data(1), p=st.sampled_from([1, 2, 3, 4]))
def test_distance(drawn, p):
    points, weights, queries = drawn
    structure = paper.DPTreeDistance(points[:, 0], weights, p=p, **BOXES, **BUDGET)
    truth = oracle.distance(points[:, 0], weights, queries[:, 0], p)
    assert_close(structure.query(queries[:, 0]), truth, structure.deterministic_error)


@given(drawn=data(3), p=st.sampled_from([1, 2, 3, 4]))
def test_high_dim(drawn, p):
    points, weights, queries = drawn
    structure = paper.DPTreeHighDim(points, weights, p=p, **BOXES, **BUDGET, **SPLIT)
    truth = oracle.high_dim_distance(points, weights, queries, p)
    assert_close(structure.query(queries), truth, structure.deterministic_error)


@settings(max_examples=40)
@given(drawn=data(2))
def test_high_dim_adaptive(drawn):
    points, weights, queries = drawn
    structure = paper.DPTreeHighDimAdaptive(points, weights, p_f=0.01, **BOXES, **BUDGET, **SPLIT)
    truth = oracle.high_dim_distance(points, weights, queries, 1)
    assert_close(structure.query(queries), truth, structure.deterministic_error)


@settings(max_examples=40)
@given(drawn=data(2), adaptive=st.booleans())
def test_softmax(drawn, adaptive):
    points, weights, queries = drawn
    options = {"eps_s": 0.05, **BOXES, **BUDGET, **SPLIT}
    if adaptive:
        structure = paper.DPTreeSoftmaxAdaptive(points, weights, p_f=0.01, **options)
    else:
        structure = paper.DPTreeSoftmax(points, weights, **options)
    truth = oracle.softmax_sum(points, weights, queries)
    # The kernel's error is relative to |w|ᵀexp(Xy/d), not to the sum itself, which may cancel.
    relative = structure.relative_error * oracle.softmax_sum(points, np.abs(weights), queries)
    answers = structure.query(queries)
    assert np.all(np.abs(answers - truth) <= relative + structure.state.sums.tree_error(0) + 1e-9)
    assert_close(answers, truth, structure.deterministic_error)


@settings(max_examples=30)
@given(
    drawn=data(2),
    columns=st.integers(1, 3),
    scope=st.sampled_from(["vector", "entry"]),
    accounting=st.sampled_from(["paper", "tight"]),
    seed=st.integers(0, 99),
)
def test_cross_attention(drawn, columns, scope, accounting, seed):
    keys, _, queries = drawn
    values = np.random.default_rng(seed).uniform(-BOUND, BOUND, (len(keys), columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # so few rows: the answers would be noise
        structure = paper.DPCrossAttention(
            keys,
            values,
            upper=UPPER,
            value_bound=BOUND,
            eps_s=0.05,
            p_f=0.01,
            scope=scope,
            accounting=accounting,
            **BUDGET,
            **SPLIT,
        )
    numerator, denominator = structure.sums(queries)
    true_numerator, true_denominator = oracle.attention_sums(queries, keys, values)
    absolute, _ = oracle.attention_sums(queries, keys, np.abs(values))
    relative = structure.relative_error
    for column in range(columns):
        slack = structure.state.sums.tree_error(column) + 1e-9
        error = np.abs(numerator - true_numerator)[:, column]
        assert np.all(error <= relative * absolute[:, column] + slack)
    slack = structure.state.sums.tree_error(columns) + 1e-9
    assert np.all(np.abs(denominator - true_denominator) <= relative * true_denominator + slack)
    # The output: 2ε'/(1 - ε') relative to D⁻¹A|V|, and the trees' error on top.
    truth = oracle.attention(queries, keys, values)
    allowed = 2 * relative / (1 - relative) * absolute / true_denominator[:, None]
    assert np.all(np.abs(structure.query(queries) - truth) <= allowed + 0.01)


def test_the_worked_figure():
    x = np.array([0.1, 0.3, 0.3, 0.3, 0.4, 0.6, 0.7, 0.9, 0.9])
    weights = np.array([2.2, 3.1, -2, -3, 2, 6, 0.5, -1, 1])
    structure = paper.DPTreeDistance(
        x, weights, p=1, upper=1.0, weight_bound=6.0, epsilon=1.0, delta=1e-6, entropy=Silent()
    )
    assert structure.query([0.0])[0] == pytest.approx(4.4, abs=1e-5)
    assert oracle.distance(x, weights, np.array([0.0]), 1)[0] == pytest.approx(4.4)
