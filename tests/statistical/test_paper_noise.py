"""With noise: are the errors what the structures say they are, neither more nor much less?"""

import warnings

import numpy as np
import pytest

from discreet import paper
from discreet.kernels import Taylor
from discreet.paper import oracle
from discreet.paper.design import node_noise
from discreet.paper.distance import DistanceForest, moment_sums
from discreet.paper.forest import ExactTrees
from discreet.paper.options import Budget, Noise
from discreet.paper.softmax import SoftmaxDesign, paper_budgets
from discreet.testing import Seeded

BUILDS = 250
RNG = np.random.default_rng(17)
ROWS, DIM = 60, 2
X = RNG.random((ROWS, DIM))
W = RNG.uniform(-1, 1, ROWS)
Y = np.array([[0.3, 0.8], [1.0, 1.0], [0.0, 0.1]])
BOXES = {"upper": 1.0, "weight_bound": 1.0}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SPLIT = {"delta_prime": 1e-6, "c": 0.1}

# name → (build with an entropy source, answers, truth)
SINGLE = {
    "tree": (
        lambda e: paper.DPTree(W, sensitivity=2.0, upper=1.0, entropy=e, **BUDGET),
        lambda s: s.query(Y[:, 0])[0],
        oracle.tree_sums(W, Y[:, 0], 1.0)[0],
    ),
    "distance": (
        lambda e: paper.DPTreeDistance(X[:, 0], W, p=2, entropy=e, **BOXES, **BUDGET),
        lambda s: s.query(Y[:, 0]),
        oracle.distance(X[:, 0], W, Y[:, 0], 2),
    ),
    "high_dim": (
        lambda e: paper.DPTreeHighDim(X, W, p=1, entropy=e, **BOXES, **BUDGET, **SPLIT),
        lambda s: s.query(Y),
        oracle.high_dim_distance(X, W, Y, 1),
    ),
    "softmax": (
        lambda e: paper.DPTreeSoftmax(X, W, eps_s=0.1, entropy=e, **BOXES, **BUDGET, **SPLIT),
        lambda s: s.query(Y),
        oracle.softmax_sum(X, W, Y),
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_copies_keep_their_bound_and_it_is_not_loose(name):
    build, answer, truth = SINGLE[name]
    structures = [build(Seeded(seed)) for seed in range(BUILDS)]
    errors = np.abs([answer(structure) - truth for structure in structures])
    bound = structures[0].error_bound(0.99)
    within = np.mean(errors <= bound, axis=0)
    assert within.min() >= 0.99
    assert bound <= 20 * np.quantile(errors, 0.99, axis=0).max()
    # A smaller confidence is a smaller bound, and it too holds as often as it says.
    half = structures[0].error_bound(0.5)
    assert half < bound
    assert np.mean(errors <= half, axis=0).min() >= 0.5


ADAPTIVE = {
    "boosted": (
        lambda e: paper.DPTreeBoosted(
            W, delta_fail=1e-3, sensitivity=2.0, upper=1.0, entropy=e, **BUDGET
        ),
        lambda s: s.query(Y[:, 0])[1],
        oracle.tree_sums(W, Y[:, 0], 1.0)[1],
    ),
    "high_dim": (
        lambda e: paper.DPTreeHighDimAdaptive(
            X, W, p_f=0.01, entropy=e, **BOXES, **BUDGET, **SPLIT
        ),
        lambda s: s.query(Y),
        oracle.high_dim_distance(X, W, Y, 1),
    ),
    "softmax": (
        lambda e: paper.DPTreeSoftmaxAdaptive(
            X, W, eps_s=0.1, p_f=0.01, entropy=e, **BOXES, **BUDGET, **SPLIT
        ),
        lambda s: s.query(Y),
        oracle.softmax_sum(X, W, Y),
    ),
}


@pytest.mark.parametrize("name", ADAPTIVE)
def test_medians_keep_their_bound(name):
    build, answer, truth = ADAPTIVE[name]
    structures = [build(Seeded(seed)) for seed in range(200)]
    errors = np.abs([answer(structure) - truth for structure in structures])
    assert np.mean(np.all(errors <= structures[0].error_bound(0.99), axis=1)) >= 0.99
    assert structures[0].error_bound(0.99) <= 100 * np.quantile(errors, 0.99)


@pytest.mark.parametrize("accounting", ["paper", "tight"])
@pytest.mark.parametrize("builds", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_attention_sums_keep_their_bounds(accounting, builds):
    values = np.random.default_rng(3).uniform(-1, 1, (ROWS, 2))
    numerator, denominator = oracle.attention_sums(Y, X, values)
    absolute, _ = oracle.attention_sums(Y, X, np.abs(values))
    kept = []
    for seed in range(builds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            structure = paper.DPCrossAttention(
                X,
                values,
                upper=1.0,
                value_bound=1.0,
                eps_s=0.1,
                p_f=0.01,
                accounting=accounting,
                entropy=Seeded(seed),
                **BUDGET,
                **SPLIT,
            )
        noisy, normaliser = structure.sums(Y)
        for_values, for_normaliser = structure.sums_error_bound(0.99)
        relative = structure.relative_error
        kept.append(
            np.all(np.abs(noisy - numerator) <= relative * absolute + for_values)
            and np.all(np.abs(normaliser - denominator) <= relative * denominator + for_normaliser)
        )
        assert np.all(np.abs(structure.query(Y)) <= 1.0)
    assert np.mean(kept) >= 0.99


COPIES = 8000  # the standard error of a variance is then 1.6%


@pytest.mark.parametrize("kind", list(Noise))
@pytest.mark.parametrize("power", [1, 2, 3])
def test_distance_variance_is_the_predicted_one(kind, power):
    node = node_noise(kind, epsilon=0.05, delta=1e-7)
    exact = ExactTrees(moment_sums(X[:8, :1], W[:8, None], power, node.unit), node.law, COPIES)
    trees = DistanceForest(exact.noisy(Seeded(5)), node, power, 8)
    at = np.array([[0.0], [0.37], [0.9], [1.0]])
    measured = trees.query(at)[:, 0, :, 0].var(axis=1)
    ratio = measured / trees.variance(at)[:, 0]
    assert np.abs(ratio - 1).max() < 0.05


def test_softmax_variance_is_the_predicted_one():
    kernel = Taylor.on_box(DIM, upper=1.0, eps_s=0.1)
    whole = Budget(1.0, 1e-6, 1e-6)
    budgets = paper_budgets(whole, c=0.1, features=kernel.features, levels=4)
    noise, weights = budgets.noise(Noise.TRUNCATED_LAPLACE), np.stack([W[:16], np.ones(16)], axis=1)
    design = SoftmaxDesign(kernel, 1.0, bounds=(1.0, 1.0), private=1, rows=16, copies=COPIES)
    source = Seeded(6)
    noisy = [each.noisy(source) for each in design.exact(X[:16], weights, noise)]
    sums = design.released(noisy, noise)
    at = np.array([[0.02, 0.01], [0.3, 0.8], [0.6, 0.1], [1.0, 1.0], [0.0, 0.0]])
    ratio = sums.query(at).var(axis=1) / sums.variance(at)
    assert np.abs(ratio - 1).max() < 0.05


@pytest.mark.parametrize(
    ("builds", "tolerance"), [(800, 0.2), pytest.param(8000, 0.05, marks=pytest.mark.slow)]
)
def test_tree_variance_is_the_predicted_one(builds, tolerance):
    tree_queries = np.array([0.05, 0.4, 0.99])
    draws = np.array(
        [
            paper.DPTree(W[:8], sensitivity=2.0, upper=1.0, entropy=Seeded(seed), **BUDGET).query(
                tree_queries
            )
            for seed in range(builds)
        ]
    )
    structure = paper.DPTree(W[:8], sensitivity=2.0, upper=1.0, **BUDGET)
    for side, predicted in enumerate(structure.variance(tree_queries)):
        measured = draws[:, side].var(axis=0)
        reads = predicted > 0
        assert np.abs(measured[reads] / predicted[reads] - 1).max() < tolerance
        assert np.all(measured[~reads] == 0)


def test_an_adaptive_attacker_gains_nothing():
    """Hill-climbing on the answers themselves, away from the truth as the attacker knows it."""
    structure = paper.DPTreeSoftmaxAdaptive(
        X, W, eps_s=0.1, p_f=0.01, entropy=Seeded(42), **BOXES, **BUDGET, **SPLIT
    )
    bound = structure.error_bound(0.99)
    generator = np.random.default_rng(8)
    best, at = -np.inf, generator.random(DIM)
    worst = 0.0
    for step in range(1000):
        width = 0.5 * 0.997**step
        candidate = np.clip(at + generator.normal(0, width, DIM), 0, 1)
        # The attacker sees answers only; the error is measured by us.
        answer = structure.query(candidate[None])[0]
        error = abs(answer - oracle.softmax_sum(X, W, candidate[None])[0])
        worst = max(worst, error)
        if error > best:  # the most favourable attacker: one who even knows the error
            best, at = error, candidate
    assert 0 < worst <= bound
