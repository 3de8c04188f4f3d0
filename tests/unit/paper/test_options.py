"""What a researcher may set: c, copies, net, degree, scale, where points begin, and the account."""

import math

import numpy as np
import pytest

from discreet import BudgetExceeded, InvalidInput, paper
from discreet.paper import oracle
from discreet.paper.options import LARGEST
from discreet.testing import Seeded, Silent

RNG = np.random.default_rng(9)
ROWS, DIM = 70, 2
X, W, V = RNG.random((ROWS, DIM)), RNG.uniform(-1, 1, ROWS), RNG.uniform(-1, 1, (ROWS, 3))
Y = RNG.random((6, DIM))
BUDGET = {"epsilon": 0.8, "delta": 1e-6}
SPLIT = {**BUDGET, "delta_prime": 2e-6}
BOXES = {"upper": 1.0, "weight_bound": 1.0}
ATTENTION = {"upper": 1.0, "value_bound": 1.0, "eps_s": 0.1, "p_f": 0.01, **SPLIT}

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

WITH_C = {
    "high_dim": lambda **o: paper.DPTreeHighDim(X, W, p=2, **BOXES, **SPLIT, **o),
    "high_dim_adaptive": lambda **o: paper.DPTreeHighDimAdaptive(
        X, W, p_f=0.01, **BOXES, **SPLIT, **o
    ),
    "softmax": lambda **o: paper.DPTreeSoftmax(X, W, eps_s=0.1, **BOXES, **SPLIT, **o),
    "softmax_adaptive": lambda **o: paper.DPTreeSoftmaxAdaptive(
        X, W, eps_s=0.1, p_f=0.01, **BOXES, **SPLIT, **o
    ),
    "vector": lambda **o: paper.DPCrossAttention(X, V, **ATTENTION, **o),
    "entry": lambda **o: paper.DPCrossAttention(X, V, scope="entry", **ATTENTION, **o),
}
ALL = {
    "tree": lambda **o: paper.DPTree(W, sensitivity=2.0, upper=1.0, **BUDGET, **o),
    "boosted": lambda **o: paper.DPTreeBoosted(
        W, sensitivity=2.0, upper=1.0, delta_fail=1e-3, **BUDGET, **o
    ),
    "distance": lambda **o: paper.DPTreeDistance(X[:, 0], W, p=2, **BOXES, **BUDGET, **o),
    **WITH_C,
}
MEDIANS = ["boosted", "high_dim_adaptive", "softmax_adaptive", "vector", "entry"]


@pytest.mark.parametrize("name", WITH_C)
def test_the_largest_c_fits_and_a_larger_one_does_not(name):
    structure = WITH_C[name](c=LARGEST)
    assert structure.c > 0.1
    assert structure.guarantee.epsilon == pytest.approx(SPLIT["epsilon"], rel=1e-9)
    assert structure.guarantee.epsilon <= SPLIT["epsilon"]
    WITH_C[name](c=structure.c)
    with pytest.raises(BudgetExceeded, match="smaller c"):
        WITH_C[name](c=structure.c * (1 + 1e-6))
    assert structure.error_bound(0.9) <= WITH_C[name](c=0.1).error_bound(0.9)
    assert WITH_C[name]().c == structure.c  # what they do by themselves
    for wrong in ("smallest", "", 0, -1.0, math.nan, None):
        with pytest.raises(InvalidInput, match="c="):
            WITH_C[name](c=wrong)


@pytest.mark.parametrize("epsilon", [0.01, 8.0, 300.0])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_there_is_a_largest_c_at_every_epsilon(epsilon, dim):
    points = RNG.random((ROWS, dim))
    split = SPLIT | {"epsilon": epsilon}
    for structure in (
        paper.DPTreeHighDim(points, W, p=1, **BOXES, **split),
        paper.DPTreeHighDimAdaptive(points, W, p_f=0.01, **BOXES, **split),
        paper.DPTreeSoftmax(points, W, eps_s=0.1, **BOXES, **split),
    ):
        assert structure.guarantee.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("name", ALL)
def test_tight_accounts_spend_what_was_asked_for_and_need_less_noise(name):
    loose, tight = (ALL[name](accounting=how) for how in paper.Accounting)
    total = sum(SPLIT[part] for part in ("delta", "delta_prime")) if name in WITH_C else 1e-6
    assert tight.accounting is paper.Accounting.TIGHT
    assert tight.guarantee.delta == pytest.approx(total)
    assert tight.guarantee.epsilon == pytest.approx(SPLIT["epsilon"], rel=1e-4)
    assert tight.tight_guarantee.epsilon == pytest.approx(tight.guarantee.epsilon)
    assert tight.copies == 1 if name != "distance" else True
    bounds = [
        each.sums_error_bound(0.99)[1]
        if hasattr(each, "sums_error_bound")
        else each.error_bound(0.99)
        for each in (tight, loose)
    ]
    assert bounds[0] < bounds[1]
    assert getattr(tight, "c", None) is None
    with pytest.raises(InvalidInput, match="accounting='loose'"):
        ALL[name](accounting="loose")


@pytest.mark.parametrize("name", MEDIANS)
def test_copies_can_be_chosen(name):
    few, many = ALL[name](copies=3), ALL[name](copies=9)
    assert (few.copies, many.copies) == (3, 9)
    assert many.nbytes == pytest.approx(3 * few.nbytes, rel=0.01)
    assert few.guarantee.epsilon <= SPLIT["epsilon"]
    assert ALL[name](copies=3, accounting="tight").copies == 3
    for wrong in (0, 1.5, "many"):
        with pytest.raises(InvalidInput, match="copies="):
            ALL[name](copies=wrong)


@pytest.mark.parametrize("name", ["softmax_adaptive", "vector"])
def test_the_net_can_be_chosen(name):
    wide, narrow = ALL[name](eps_0=0.25), ALL[name](eps_0=0.01)
    assert wide.net.cells == 2
    assert narrow.net.cells == 50
    assert narrow.copies > wide.copies
    assert narrow.relative_error < wide.relative_error


@pytest.mark.parametrize("name", ["softmax", "softmax_adaptive", "vector"])
def test_a_degree_may_stand_for_an_error(name):
    kinds = {
        "softmax": lambda **o: paper.DPTreeSoftmax(X, W, **BOXES, **SPLIT, **o),
        "softmax_adaptive": lambda **o: paper.DPTreeSoftmaxAdaptive(
            X, W, p_f=0.01, **BOXES, **SPLIT, **o
        ),
        "vector": lambda **o: paper.DPCrossAttention(X, V, **(ATTENTION | {"eps_s": None}), **o),
    }
    structure = kinds[name](degree=5, **({} if name == "softmax" else {"eps_0": 0.05}))
    assert structure.kernel.degree == 5
    assert structure.kernel.features == math.comb(DIM + 5, 5)
    for wrong in ({"degree": 2, "eps_s": 0.1}, {}):
        if name == "vector" and "eps_s" in wrong:
            continue
        with pytest.raises(InvalidInput, match="degree, eps_s"):
            kinds[name](**wrong)


def test_a_degree_that_is_too_small_still_has_a_net_and_a_bound():
    options = {**ATTENTION, "eps_s": None, "upper": 3.0, "accounting": "tight"}
    coarse = paper.DPCrossAttention(X, V, degree=1, scale=0.5, **options)
    assert coarse.net.cells > 10  # not one answer for all
    assert coarse.error_bound(0.9) == 2 * coarse.value_bound
    assert paper.DPCrossAttention(X, V, degree=2, eps_0=1e3, **options).relative_error == math.inf


def test_features_that_vanish_are_refused():
    for options in ({"upper": 1e-80, "degree": 5}, {"upper": 1.0, "scale": 1e-200, "degree": 4}):
        with pytest.raises(InvalidInput, match="degree="):
            paper.DPTreeSoftmax(X, W, weight_bound=1.0, **SPLIT, **options)


def test_an_entry_of_a_whole_without_a_guarantee_is_refused():
    options = ATTENTION | {"delta": 0.05, "delta_prime": 0.05, "scope": "entry"}
    with pytest.raises(BudgetExceeded, match="smaller delta"):
        paper.DPCrossAttention(X, RNG.uniform(-1, 1, (ROWS, 40)), accounting="tight", **options)


@pytest.mark.parametrize("rows", [1000, 2**18, 2**20])
def test_large_leaves_of_wide_trees_are_not_clipped(rows):
    leaves = np.zeros(rows)
    leaves[5] = 3e4
    tree = paper.DPTree(
        leaves, sensitivity=1.0, epsilon=20.0, delta=1e-6, upper=1.0, entropy=Silent()
    )
    left, _ = tree.query([0.9])
    assert left[0] == pytest.approx(3e4, abs=tree.deterministic_error)


@pytest.mark.parametrize("scale", [0.1, 2.0])
def test_another_scale_of_logits(scale):
    sums = paper.DPTreeSoftmax(
        X, W, degree=12, scale=scale, entropy=Silent(), **BOXES, **SPLIT
    ).query(Y)
    np.testing.assert_allclose(sums, np.exp(scale * Y @ X.T) @ W, atol=0.02 * ROWS)
    attention = paper.DPCrossAttention(
        X, V, scale=scale, entropy=Silent(), **(ATTENTION | {"eps_s": 0.01})
    )
    snapped = attention.net.snap(Y)
    weights = np.exp(scale * snapped @ X.T)
    exact = weights @ V / weights.sum(axis=1, keepdims=True)
    assert np.abs(attention.query(Y) - exact).max() < 0.05
    # Snapping moves a logit by as much at every scale.
    assert attention.relative_error == pytest.approx(
        (1 + attention.kernel.error) * math.exp(0.01) - 1
    )
    assert attention.kernel.largest_logit == pytest.approx(scale * DIM)


def test_signed_keys_are_shifted_and_softmax_does_not_see_it():
    keys = RNG.uniform(-1, 1, (ROWS, DIM))
    options = ATTENTION | {"eps_s": 0.01}
    attention = paper.DPCrossAttention(keys, V, lower=-1.0, entropy=Silent(), **options)
    snapped = attention.net.snap(Y)
    assert np.abs(attention.query(Y) - oracle.attention(snapped, keys, V)).max() < 0.06
    for answer, exact in zip(
        attention.sums(Y), oracle.attention_sums(snapped, keys, V), strict=True
    ):
        assert np.abs(answer - exact).max() < 0.05 * ROWS
    # Without a lower end they are clipped to zero, as documented.
    clipped = paper.DPCrossAttention(keys, V, entropy=Silent(), **options)
    exact = oracle.attention(snapped, np.clip(keys, 0, 1), V)
    assert np.abs(clipped.query(Y) - exact).max() < 0.06
    sums = paper.DPTreeSoftmax(keys, W, lower=-1.0, degree=8, entropy=Silent(), **BOXES, **SPLIT)
    exact = oracle.softmax_sum(keys, W, Y)
    assert np.abs(sums.query(Y) - exact).max() < min(0.05 * ROWS, sums.deterministic_error)
    with pytest.raises(InvalidInput, match="lower="):
        paper.DPCrossAttention(keys, V, lower=0.5, **options)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_distances_may_begin_anywhere(p):
    low, high = -3.0, -1.0
    points, at = RNG.uniform(low, high, (ROWS, DIM)), RNG.uniform(low, high, (5, DIM))
    options = {"lower": low, "upper": high, "weight_bound": 1.0, "entropy": Silent()}
    line = paper.DPTreeDistance(points[:, 0], W, p=p, **options, **BUDGET)
    exact = oracle.distance(points[:, 0], W, at[:, 0], p)
    assert np.abs(line.query(at[:, 0]) - exact).max() <= line.deterministic_error
    space = paper.DPTreeHighDim(points, W, p=p, **options, **SPLIT)
    exact = oracle.high_dim_distance(points, W, at, p)
    assert np.abs(space.query(at) - exact).max() <= space.deterministic_error
    with pytest.raises(InvalidInput, match="upper="):
        paper.DPTreeDistance(points[:, 0], W, p=p, **(options | {"upper": -3.0}), **BUDGET)


def test_the_adaptive_form_may_begin_anywhere():
    points = X - 5
    options = {"lower": -5.0, "upper": -4.0, "weight_bound": 1.0, "p_f": 0.01, **SPLIT}
    structure = paper.DPTreeHighDimAdaptive(points, W, entropy=Silent(), **options)
    exact = oracle.high_dim_distance(points, W, Y - 5, 1)
    assert np.abs(structure.query(Y - 5) - exact).max() <= structure.deterministic_error


@pytest.mark.parametrize("lower", [0.0, -0.5])
def test_the_variance_of_attention_is_that_of_its_sums(lower):
    options = ATTENTION | {"accounting": "tight", "lower": lower}
    structures = [
        paper.DPCrossAttention(X, V, entropy=Seeded(seed), **options) for seed in range(80)
    ]
    measured = [
        np.var([structure.sums(Y)[part] for structure in structures], axis=0) for part in (0, 1)
    ]
    predicted = structures[0].variance(Y)
    for found, said in zip(measured, predicted, strict=True):
        assert found.shape == said.shape
        ratio = float(np.mean(found / said))
        assert 0.8 < ratio < 1.25  # 2/3 and 3/2 would be seen
