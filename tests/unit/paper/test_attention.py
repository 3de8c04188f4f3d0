import math
import re
import warnings

import numpy as np
import pytest

from discreet import InvalidInput, paper
from discreet.accounting import gaussian_sigma, tight
from discreet.paper import oracle
from discreet.paper.attention import attention_needs
from discreet.testing import Silent

RNG = np.random.default_rng(9)
ROWS, DIM, COLUMNS = 64, 2, 3
K, V, Q = RNG.random((ROWS, DIM)), RNG.uniform(-1, 1, (ROWS, COLUMNS)), RNG.random((20, DIM))
OPTIONS = {
    "upper": 1.0,
    "value_bound": 1.0,
    "epsilon": 1.0,
    "delta": 1e-6,
    "delta_prime": 1e-6,
    "c": 0.1,
    "eps_s": 0.1,
    "p_f": 0.01,
}


def build(**changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return paper.DPCrossAttention(K, V, **OPTIONS | changes)


def test_useless_answers_are_announced_with_their_numbers():
    with pytest.warns(UserWarning, match=rf"error bound, .* exceeds the number of rows, {ROWS}"):
        paper.DPCrossAttention(K, V, **OPTIONS)


def test_useful_answers_are_not_announced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        structure = paper.DPCrossAttention(
            np.tile(K, (400, 1)),
            np.tile(V, (400, 1)),
            **OPTIONS | {"epsilon": 400.0},
            accounting="tight",
        )
    assert structure.error_bound(0.99) < 1.0
    truth = oracle.attention(Q, K, V)
    assert np.abs(structure.query(Q) - truth).max() <= structure.error_bound(0.99)


def test_an_entry_is_said_to_be_one_entry_everywhere():
    entry, vector = build(scope="entry"), build(scope="vector")
    for guarantee in (entry.guarantee, entry.tight_guarantee):
        assert "one fixed entry" in str(guarantee)
        assert "not the whole structure, which is (ε = " in str(guarantee)
    assert "entry" not in str(vector.guarantee)


@pytest.mark.parametrize("accounting", ["paper", "tight"])
def test_what_an_entry_says_of_the_whole_covers_all_its_nodes(accounting):
    """The columns cost more than the denominator, so (d + 1)/2 times the entry is not enough."""
    entry = build(scope="entry", accounting=accounting)
    said = re.search(r"which is \(ε = ([\d.e-]+), δ = ([\d.e-]+)\)", entry.guarantee.scope)
    epsilon, delta = (float(part) for part in said.groups())
    assert entry.receipt.guarantee(delta=delta).epsilon <= epsilon
    assert epsilon <= (COLUMNS + 1) / 2 * OPTIONS["epsilon"] * 1.001
    assert epsilon > entry.guarantee.epsilon
    assert entry.whole_guarantee.epsilon > entry.tight_guarantee.epsilon
    assert entry.whole_guarantee == entry.receipt.guarantee(delta=entry.whole_guarantee.delta)
    vector = build(scope="vector", accounting=accounting)
    assert vector.whole_guarantee == vector.guarantee


@pytest.mark.parametrize("accounting", ["paper", "tight"])
def test_the_receipt_of_an_entry_lists_all_columns(accounting):
    entry = build(scope="entry", accounting=accounting)
    share = entry.state.sums.trees.forest.levels * 3 * entry.copies
    features, totals = (
        entry.state.sums.trees.noise.mechanism,
        entry.state.sums.noise.totals.mechanism,
    )
    expected = {features: share * 6 * (COLUMNS + 1)}
    expected[totals] = expected.get(totals, 0) + share * COLUMNS
    assert dict(entry.receipt.mechanisms) == expected
    assert entry.receipt.scope == "the whole structure, with all columns of its answers,"
    covered = [(features, share * 6 * 2), (totals, share)]
    assert entry.tight_guarantee.epsilon == tight(covered, delta=2e-6)


def test_a_vector_costs_more_noise_than_an_entry():
    for accounting in ("paper", "tight"):
        entry, vector = (build(scope=scope, accounting=accounting) for scope in ("entry", "vector"))
        assert entry.sums_error_bound(0.99)[1] < vector.sums_error_bound(0.99)[1]


def test_tight_accounting_spends_the_whole_budget_and_paper_accounting_does_not():
    assert build(accounting="tight").tight_guarantee.epsilon == pytest.approx(1.0, rel=1e-4)
    assert build(accounting="paper").tight_guarantee.epsilon < 0.1


def test_tight_accounting_needs_far_less_noise():
    loose, exact = (build(accounting=accounting) for accounting in ("paper", "tight"))
    assert loose.copies > 1
    assert exact.copies == 1
    assert exact.sums_error_bound(0.99)[1] < loose.sums_error_bound(0.99)[1] / 100


def test_the_denominator_spends_nothing_on_its_public_sum():
    structure = build()
    assert np.all(structure.state.sums.totals[:, -1] == ROWS)
    assert structure.state.sums.totals_variance[-1] == 0
    assert structure.state.sums.totals_variance[0] > 0
    by_count = dict(structure.state.covered)
    share = structure.state.sums.trees.forest.levels * 3 * structure.copies
    assert by_count[structure.state.sums.noise.totals.mechanism] == share * COLUMNS
    assert by_count[structure.state.sums.trees.noise.mechanism] == share * 6 * (COLUMNS + 1)


def test_answers_stay_in_their_public_ranges():
    structure = build()  # almost pure noise
    numerator, denominator = structure.sums(Q)
    assert np.abs(numerator).max() > 100
    assert denominator.min() < ROWS or denominator.max() > ROWS * math.e
    assert np.abs(structure.query(Q)).max() <= 1.0


def test_queries_are_snapped_to_the_net():
    structure = build(entropy=Silent())
    cells = structure.net.cells
    assert cells == 5  # ⌈1/(2·0.1)⌉
    near = (np.array([[2, 3]]) + 0.5) / cells
    assert np.array_equal(structure.query(near), structure.query(near + 0.09 / cells))
    assert np.abs(structure.net.snap(Q) - Q).max() <= structure.net.radius + 1e-12


def test_copies_come_from_the_exact_binomial_tail():
    # p_f/2 over 25 net points: 3 copies fail too often, 5 do not.
    assert build(scope="entry").copies == 5
    # The constants of the paper's proof: (5R/ε_0)^d points, each failing with exp(-0.1²·0.99·l/2).
    proof = math.log((5 * 1.0 / 0.1) ** DIM / (0.01 / 2)) * 2 / (0.1**2 * 0.99)
    assert math.ceil(proof) == 2651


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 1e4},
        {"epsilon": 0.01, "delta": 1e-30, "delta_prime": 1e-30},
        {"epsilon": 1e-3},
        {"noise": "gaussian", "epsilon": 1e-2},
        {"noise": "laplace", "epsilon": 300.0},
    ],
)
def test_tight_accounting_over_a_wide_range(changes):
    structure = build(accounting="tight", **changes)
    epsilon = changes["epsilon"]
    assert 0.999 * epsilon < structure.tight_guarantee.epsilon <= epsilon


def test_bad_choices_are_named():
    with pytest.raises(InvalidInput, match="scope="):
        build(scope="matrix")
    with pytest.raises(InvalidInput, match="accounting="):
        build(accounting="loose")
    with pytest.raises(InvalidInput, match="shape of K and V"):
        paper.DPCrossAttention(K, V[:-1], **OPTIONS)
    with pytest.raises(InvalidInput, match="features"):
        paper.DPCrossAttention(np.ones((4, 64)), np.ones((4, 64)), **OPTIONS | {"upper": 3.0})


def test_a_size_that_would_not_fit_names_its_driver():
    with pytest.raises(InvalidInput, match="mostly because of the nodes"):
        paper.DPCrossAttention(
            np.zeros((100_000, 2)), np.zeros((100_000, 2)), **OPTIONS | {"memory_limit": 2**20}
        )


def test_the_law_of_cosines_loses_to_one_gaussian_query():
    """Why the memory exists: the same sums with the error of a single query are far better."""
    structure = build(accounting="tight")
    single = math.e * math.sqrt(2) * 2 * gaussian_sigma(epsilon=1.0, delta=2e-6)
    spread = math.sqrt(sum(part.variance for part in structure.state.sums.noise_sums(0)))
    assert spread > 10 * single


def test_needs_of_data_that_can_be_built_are_those_of_the_structure():
    rng = np.random.default_rng(0)
    keys, values = rng.uniform(0, 1, (300, 2)), rng.uniform(-1, 1, (300, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        built = paper.DPCrossAttention(
            keys,
            values,
            upper=1.0,
            value_bound=1.0,
            epsilon=1.0,
            delta=5e-7,
            delta_prime=5e-7,
            c=0.1,
            eps_s=0.05,
            p_f=0.1,
        )
    needs = attention_needs(
        rows=300, key_dim=2, value_dim=3, largest_logit=1.0, epsilon=1.0, delta=1e-6
    )
    assert needs.state_bytes == pytest.approx(built.nbytes, rel=0.01)
    spread = float(np.sqrt(built.state.sums.variance(np.ones((1, 2)))[0, -1]))
    # Rows are doubled until the noise is clear; it grows with the depth of the trees only.
    assert 5 * spread < needs.rows < 60 * spread


def test_wide_sharp_data_needs_what_nobody_has():
    needs = attention_needs(
        rows=1347, key_dim=64, value_dim=10, largest_logit=6.0, epsilon=1.0, delta=1e-6
    )
    assert needs.state_bytes > 1e18
    assert needs.rows > 1e12


def test_bad_logits_are_named():
    with pytest.raises(InvalidInput, match="largest_logit"):
        attention_needs(rows=10, key_dim=2, value_dim=1, largest_logit=0.0, epsilon=1.0, delta=1e-6)
