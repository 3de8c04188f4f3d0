"""Does every structure draw the noise that it accounts for, and account for all that it draws?

The paper's shares are written out here once more, by hand: bounds and variances follow from the
same laws in the library, so halved noise would look right everywhere else.
"""

import math
import warnings

import numpy as np
import pytest

from discreet import BudgetExceeded, InvalidInput, paper
from discreet.accounting import gaussian_sigma, tight
from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace
from discreet.paper import bounds, oracle
from discreet.paper.design import check_composition, compose_equal, node_noise
from discreet.paper.forest import Forest
from discreet.paper.options import Budget, Noise, replace_privacy
from discreet.paper.softmax import NodeBudgets, paper_composition
from discreet.testing import Seeded, Silent

RNG = np.random.default_rng(4)
ROWS, DIM, LEVELS = 33, 2, 6
X, W, V = RNG.random((ROWS, DIM)), RNG.uniform(-1, 1, ROWS), RNG.uniform(-1, 1, (ROWS, 3))
EPSILON, DELTA, PRIME, C = 0.8, 1e-6, 2e-6, 0.1
BUDGET = {"epsilon": EPSILON, "delta": DELTA}
SPLIT = {**BUDGET, "delta_prime": PRIME, "c": C}
BOXES = {"upper": 1.0, "weight_bound": 1.0}
ATTENTION = {"upper": 1.0, "value_bound": 1.0, "eps_s": 0.1, "p_f": 0.01, **SPLIT}

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def build(name, **changes):
    kind, data, options = {
        "tree": (paper.DPTree, (W,), {"sensitivity": 2.0, "upper": 1.0, **BUDGET}),
        "boosted": (
            paper.DPTreeBoosted,
            (W,),
            {"sensitivity": 2.0, "upper": 1.0, "delta_fail": 1e-3, **BUDGET},
        ),
        "distance": (paper.DPTreeDistance, (X[:, 0], W), {"p": 2, **BOXES, **BUDGET}),
        "high_dim": (paper.DPTreeHighDim, (X, W), {"p": 2, **BOXES, **SPLIT}),
        "high_dim_adaptive": (
            paper.DPTreeHighDimAdaptive,
            (X, W),
            {"p_f": 0.01, **BOXES, **SPLIT},
        ),
        "softmax": (paper.DPTreeSoftmax, (X, W), {"eps_s": 0.1, **BOXES, **SPLIT}),
        "softmax_adaptive": (
            paper.DPTreeSoftmaxAdaptive,
            (X, W),
            {"eps_s": 0.1, "p_f": 0.001, **BOXES, **SPLIT},
        ),
        "vector": (paper.DPCrossAttention, (X, V), ATTENTION),
        "entry": (paper.DPCrossAttention, (X, V), {**ATTENTION, "scope": "entry"}),
    }[name]
    return kind(*data, **options | changes)


PAPER = [
    "tree",
    "boosted",
    "distance",
    "high_dim",
    "high_dim_adaptive",
    "softmax",
    "softmax_adaptive",
    "vector",
    "entry",
]


@pytest.mark.parametrize("kind", list(Noise))
def test_the_law_that_is_drawn_is_the_law_that_is_accounted(kind):
    node = node_noise(kind, epsilon=0.05, delta=1e-7)
    sensitivity = 2 * node.unit
    assert node.mechanism.sensitivity == sensitivity
    expected = {
        Noise.LAPLACE: DiscreteLaplace(scale=sensitivity / 0.05),
        Noise.GAUSSIAN: RoundedGaussian(
            sigma=gaussian_sigma(epsilon=0.05, delta=1e-7, sensitivity=sensitivity)
        ),
        Noise.TRUNCATED_LAPLACE: TruncatedLaplace(
            sensitivity=sensitivity, epsilon=0.05, delta=1e-7
        ),
    }[kind]
    assert node.law == expected
    assert tight([(node.mechanism, 1)], delta=1e-7) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("name", PAPER)
def test_a_node_spends_the_papers_share(name):
    structure = build(name)
    copies = getattr(structure, "copies", 1)
    parts = copies * getattr(structure.state, "structures", 1)
    if name in {"tree", "boosted"}:
        expected = [(EPSILON / LEVELS / copies, DELTA / LEVELS / copies)]
    elif name == "distance":
        expected = [(EPSILON / 3 / LEVELS, DELTA / 3 / LEVELS)]
    elif name.startswith("high_dim"):
        share = (structure.power + 1) * LEVELS
        line = C * EPSILON / copies / math.sqrt(DIM * math.log(copies / PRIME))
        expected = [(line / share, DELTA / copies / DIM / share)]
    else:
        r = structure.kernel.features
        line = C * EPSILON / parts / (3 * math.sqrt(r * math.log(2 * parts / PRIME)))
        expected = [
            (line / (3 * LEVELS), DELTA / parts / (3 * r) / (3 * LEVELS)),
            (EPSILON / parts / 3 / (3 * LEVELS), DELTA / parts / 3 / (3 * LEVELS)),
        ]
    found = [(mechanism.epsilon, mechanism.delta) for mechanism, _ in structure.state.covered]
    assert np.array(found) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("accounting", ["paper", "tight"])
@pytest.mark.parametrize("name", PAPER)
def test_every_node_that_a_row_touches_is_counted(name, accounting):
    attention = name in {"vector", "entry"}
    structure = build(name, **{"accounting": accounting} if attention else {})
    copies = getattr(structure, "copies", 1)
    counts = [count for _, count in structure.state.covered]
    if name in {"tree", "boosted"}:
        expected = [LEVELS * copies]
    elif name == "distance" or name.startswith("high_dim"):
        coordinates = 1 if name == "distance" else DIM
        expected = [LEVELS * (structure.power + 1) * coordinates * copies]
    else:
        columns = {"vector": 4, "entry": 2}.get(name, 1)
        totals = columns - 1 if attention else 1
        share = LEVELS * 3 * copies
        expected = [share * structure.kernel.features * columns, share * totals]
    assert sum(counts) == sum(expected)
    assert counts == expected


@pytest.mark.parametrize("scope", ["vector", "entry"])
def test_calibrated_noise_stays_within_the_budget(scope):
    structure = build(scope, accounting="tight")
    spent = tight(structure.state.covered, delta=DELTA + PRIME)
    assert 0.999 * EPSILON < spent <= EPSILON
    assert structure.guarantee.epsilon == pytest.approx(spent, rel=1e-3)


def better(epsilon, delta, count, prime):
    """The better of the two composition theorems, written out."""
    advanced = epsilon * math.sqrt(2 * count * math.log(1 / prime))
    advanced += count * epsilon * math.expm1(epsilon)
    if count * epsilon <= advanced:
        return count * epsilon, count * delta
    return advanced, count * delta + prime


@pytest.mark.parametrize("name", PAPER[3:])
def test_the_guarantee_is_what_the_nodes_compose_to(name):
    structure = build(name)
    copies = structure.copies
    parts = copies * getattr(structure.state, "structures", 1)
    nodes = [(mechanism.epsilon, mechanism.delta) for mechanism, _ in structure.state.covered]
    if name.startswith("high_dim"):
        share = (structure.power + 1) * LEVELS
        lines, totals = DIM, 0
        epsilon, delta = better(nodes[0][0] * share, nodes[0][1] * share, lines, PRIME / parts)
    else:
        share = 3 * LEVELS
        lines = structure.kernel.features
        totals = parts if parts == copies else parts - copies
        epsilon, delta = better(nodes[0][0] * share, nodes[0][1] * share, lines, PRIME / parts / 2)
    epsilon, delta = parts * epsilon, parts * delta
    if totals:
        epsilon += totals * share * nodes[1][0]
        delta += totals * share * nodes[1][1]
    assert structure.guarantee.epsilon == pytest.approx(epsilon)
    assert structure.guarantee.delta == pytest.approx(delta)


def test_many_features_compose_by_the_advanced_theorem_with_half_of_delta_prime():
    budgets = NodeBudgets(replace_privacy(1e-6, 1e-14), replace_privacy(1e-3, 1e-9))
    found = paper_composition(
        budgets, Budget(1.0, 1e-6, 1e-6), features=10_000, levels=4, private_total=True
    )
    epsilon, delta = better(12e-6, 12e-14, 10_000, 5e-7)
    assert delta > 5e-7  # the advanced theorem was the better one
    assert found.epsilon == pytest.approx(epsilon + 12e-3)
    assert found.delta == pytest.approx(delta + 12e-9)
    part = replace_privacy(0.001, 1e-9)
    assert compose_equal(part, 10_000, delta_prime=1e-6).delta == pytest.approx(1.1e-5)


@pytest.mark.parametrize("composed", [(1.001, 1e-6), (1.0, 1.001e-6)])
def test_a_little_too_much_is_too_much(composed):
    requested = replace_privacy(1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        check_composition(replace_privacy(*composed), requested)
    assert check_composition(requested, requested) == requested


def test_data_out_of_range_count_as_clipped():
    far, heavy = X * 4 - 1.5, W * 3
    for name, forest in (
        ("distance", lambda s: s.state.trees.forest),
        ("high_dim", lambda s: s.state.trees.forest),
        ("softmax", lambda s: s.state.sums.trees.forest),
    ):
        kind = type(build(name))
        options = {"entropy": Silent(), **BOXES, **(BUDGET if name == "distance" else SPLIT)}
        options |= {"eps_s": 0.1} if name == "softmax" else {"p": 2}
        nodes = []
        for points, weights in ((far, heavy), (np.clip(far, 0, 1), np.clip(heavy, -1, 1))):
            rows = points[:, 0] if name == "distance" else points
            nodes.append(forest(kind(rows, weights, **options)).nodes)
        assert np.array_equal(*nodes)


def test_no_two_trees_share_their_noise():
    forest = Forest.grow(
        np.zeros((2, 64, 2, 2), dtype=np.int64), DiscreteLaplace(scale=1e3), 2, None
    )
    lanes = forest.nodes.transpose(0, 2, 3, 4, 1).reshape(16, -1)
    assert np.abs(np.corrcoef(lanes) - np.eye(16)).max() < 0.5


def test_the_noisy_sum_of_weights_is_noisy():
    many = [build("softmax", entropy=Seeded(seed)).state.sums for seed in range(300)]
    totals = np.array([sums.totals[0, 0] for sums in many])
    assert totals.var() == pytest.approx(many[0].totals_variance[0], rel=0.35)
    exact = build("softmax", entropy=Silent()).state.sums.totals[0, 0]
    assert exact == pytest.approx(W.sum(), abs=1e-3)
    assert np.all(totals != exact)


@pytest.mark.parametrize("name", ["high_dim_adaptive", "softmax_adaptive"])
def test_adaptive_bounds_hold_for_the_whole_net(name):
    structure = build(name)
    queries = np.array([[0.31, 0.77], [0.02, 0.99]])
    assert np.array_equal(structure.query(queries), structure.query(structure.net.snap(queries)))
    points = structure.net.cells**DIM
    p_f = 0.001 if name == "softmax_adaptive" else 0.01
    assert structure.copies == bounds.copies_needed(p_f / points)
    single = bounds.single_failure_for(structure.copies, 0.01 / points)
    trees = structure.state.trees if name[0] == "h" else None
    sums = (
        (trees.noise_sum(structure.state.scale, DIM)[0],)
        if trees is not None
        else structure.state.sums.noise_sums(0)
    )
    expected = bounds.tail_bound(sums, single) + structure.deterministic_error
    assert structure.error_bound(0.99) == pytest.approx(expected)


def test_snapping_is_in_the_errors():
    softmax = build("softmax_adaptive")
    assert softmax.relative_error == pytest.approx((1 + softmax.kernel.error) * math.exp(0.1) - 1)
    wide, narrow = (build("high_dim_adaptive", eps_0=radius) for radius in (1 / 16, 1 / 32))
    difference = wide.deterministic_error - narrow.deterministic_error
    assert difference == pytest.approx(ROWS * DIM / 32, rel=1e-3)


@pytest.mark.parametrize("name", ["distance", "high_dim"])
def test_other_units_scale_variances_and_bounds(name):
    one, other = build(name), build(name, upper=3.0, weight_bound=5.0)
    at = np.array([0.4]) if name == "distance" else np.full((1, DIM), 0.4)
    factor = 5 * 3.0**2
    assert other.variance(3 * at) == pytest.approx(factor**2 * one.variance(at))
    assert other.error_bound(0.9) == pytest.approx(factor * one.error_bound(0.9), rel=1e-4)


def test_softmax_in_other_units_agrees_with_its_variance():
    at = np.array([[1.2, 0.3], [1.5, 1.5]])
    many = [
        build("softmax", upper=1.5, weight_bound=3.0, entropy=Seeded(seed)).query(at)
        for seed in range(400)
    ]
    predicted = build("softmax", upper=1.5, weight_bound=3.0).variance(at)
    truth = oracle.softmax_sum(X, W, at)
    assert np.mean((many - truth) ** 2, axis=0) == pytest.approx(predicted, rel=0.3)


def test_the_bound_of_a_gaussian_sum_is_chernoffs():
    part = bounds.NoiseSum(RoundedGaussian(sigma=1e4), (1.0,), (1,))
    expected = 1e4 * math.sqrt(2 * math.log(2e6))
    assert bounds.tail_bound((part,), 1e-6) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("scope", ["vector", "entry"])
@pytest.mark.parametrize("accounting", ["paper", "tight"])
def test_attention_bounds_follow_their_formulas(scope, accounting):
    structure = build(scope, accounting=accounting, epsilon=400.0)
    structures = 4 if scope == "vector" else 2
    at_point = 0.01 / structures / structure.net.cells**DIM
    single = bounds.single_failure_for(structure.copies, at_point)
    sums = structure.state.sums
    expected = [
        bounds.tail_bound(sums.noise_sums(column), single) + sums.tree_error(column)
        for column in (0, 3)
    ]
    assert structure.sums_error_bound(0.99) == pytest.approx(expected)
    for_values, for_normaliser = expected
    relative = structure.relative_error
    left = (1 - relative) * ROWS - for_normaliser
    whole = (2 * relative * ROWS + for_values + for_normaliser) / left if left > 0 else 2.0
    assert structure.error_bound(0.99) == pytest.approx(min(whole, 2.0))


def test_the_worst_query_has_the_largest_variance():
    for name in ("softmax", "vector"):
        sums = build(name).state.sums
        corner = sums.variance(np.ones((1, DIM)))[0]
        spread = [sum(part.variance for part in sums.noise_sums(c)) for c in range(len(corner))]
        assert spread == pytest.approx(corner)
        others = sums.variance(np.random.default_rng(0).random((200, DIM)))
        assert np.all(others <= corner * (1 + 1e-12))


@pytest.mark.parametrize("name", ["boosted", "high_dim_adaptive", "softmax_adaptive", "vector"])
def test_one_copy_gone_wild_does_not_move_the_median(name):
    structure = build(name, entropy=Silent())
    at = np.array([0.3, 0.6]) if name == "boosted" else np.array([[0.3, 0.6]])
    before = structure.query(at)
    forest = {
        "boosted": lambda s: s.state.forest,
        "high_dim_adaptive": lambda s: s.state.trees.forest,
        "softmax_adaptive": lambda s: s.state.sums.trees.forest,
        "vector": lambda s: s.state.sums.trees.forest,
    }[name](structure)
    assert structure.copies >= 3
    forest.nodes.flags.writeable = True
    forest.nodes[:, :, 0] += 2**40
    np.testing.assert_allclose(structure.query(at), before, rtol=1e-9, atol=1e-9)


def test_clamps_are_public_ranges(monkeypatch):
    structure = build("vector", entropy=Silent())
    huge = np.array([[50.0, 50.0, 50.0, 1e9]])
    query = np.zeros((1, DIM))
    monkeypatch.setattr(structure, "_shifted_sums", lambda _: huge)
    expected = 50.0 / (ROWS * math.exp(structure.kernel.largest_logit))
    assert structure.query(query)[0] == pytest.approx([expected] * 3)
    negative = np.array([[50.0, 50.0, 50.0, -7.0]])
    monkeypatch.setattr(structure, "_shifted_sums", lambda _: negative)
    assert structure.query(query)[0] == pytest.approx([1.0] * 3)


def test_rounding_errors_follow_their_formula():
    trees = build("distance").state.trees
    assert trees.rounding_error == pytest.approx(ROWS * 4 / (2 * trees.noise.unit))
    assert trees.same_leaf_error == pytest.approx(ROWS / 64**2)


def test_warnings_are_for_builders_of_noise_only():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build("softmax")
        with pytest.raises(UserWarning, match="are noise"):
            build("vector")


def test_an_epsilon_that_is_too_small_for_the_lattice_is_not_made_smaller():
    with pytest.raises(InvalidInput, match=r"got 1\.235e-10: use a larger epsilon"):
        node_noise(Noise.TRUNCATED_LAPLACE, epsilon=1.2341e-10, delta=1e-6)
