"""What a threshold costs beside noise: composition against other ways to compute it."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.accounting import (
    Disclosure,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    Receipt,
    calibrate,
    combine,
    gaussian_beside,
    gaussian_epsilon,
    gaussian_sigma,
    tight,
)
from discreet.accounting.compose import covers
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.privacy import Neighbours, Privacy
from discreet.testing import Silent

ADD = "add_remove"


def disclosure(probability, neighbours=ADD):
    return Disclosure(probability=probability, neighbours=neighbours)


def gaussian(sigma):
    return Gaussian(sigma=sigma, sensitivity=1.0, neighbours=ADD)


# --- by itself ------------------------------------------------------------------------------------


@given(probability=st.floats(1e-12, 0.9), epsilon=st.floats(-8, 8))
def test_its_trade_off_is_that_of_a_pair_with_one_infinite_loss(probability, epsilon):
    """P tells all with p, Q tells all the other way; else both are the same."""
    first = np.array([probability, 1 - probability, 0.0])
    second = np.array([0.0, 1 - probability, probability])
    for one, other in ((first, second), (second, first)):
        true = np.maximum(one - math.exp(epsilon) * other, 0).sum()
        found = disclosure(probability).hockey_stick(np.array([epsilon]))[0]
        assert found == pytest.approx(true, abs=1e-12)


def test_its_cost_is_its_probability_at_any_epsilon():
    one = disclosure(1e-7)
    assert one.infinite_loss == one.truncation == 1e-7
    assert (one.epsilon_at(1e-7), one.epsilon_at(9.9e-8)) == (0.0, math.inf)
    assert tight([(one, 1)], delta=1e-6) == 0.0
    assert tight([(one, 1)], delta=9.9e-8) == math.inf
    assert tight([(one, 10)], delta=1e-6) in {0.0, math.inf}  # to a rounding error
    assert tight([(one, 11)], delta=1e-6) == math.inf
    assert one.with_noise_times(7.0) == one


def test_a_file_brings_it_back_and_wrong_ones_are_refused():
    one = disclosure(1e-7)
    assert Mechanism.from_dict(one.to_dict()) == one
    for wrong in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match="probability"):
            disclosure(wrong)


def test_there_is_no_noise_of_it_to_calibrate():
    target = Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE)
    assert calibrate([(disclosure(1e-7), 2)], target=target) == [(disclosure(1e-7), 2)]
    with pytest.raises(BudgetExceeded, match="truncated tails"):
        calibrate([(disclosure(1e-6), 1)], target=target)
    both = [(disclosure(1e-7), 1), (gaussian(1.0), 1)]
    found = dict(calibrate(both, target=target))
    [noisy] = [each for each in found if isinstance(each, Gaussian)]
    left = (1e-6 - 1e-7) / (1 - 1e-7)
    assert noisy.sigma == pytest.approx(gaussian_sigma(epsilon=1.0, delta=left), rel=1e-5)


# --- with others ----------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [1e-8, 1e-7, 9e-7])
@pytest.mark.parametrize("sigma", [0.7, 4.0, 30.0])
def test_beside_a_gaussian_it_leaves_what_the_proof_says(probability, sigma):
    """δ(ε) = p + (1 - p)·δ_G(ε), by the closed form of δ_G."""
    epsilon = tight([(gaussian(sigma), 1), (disclosure(probability), 1)], delta=1e-6)
    mu = 1 / sigma
    own = stats.norm.cdf(mu / 2 - epsilon / mu)
    own -= math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    assert probability + (1 - probability) * own == pytest.approx(1e-6, rel=1e-6)
    left = (1e-6 - probability) / (1 - probability)
    assert epsilon == pytest.approx(gaussian_epsilon(sigma=sigma, delta=left), rel=1e-9)


def by_pmf(probability, scale, mu, delta):
    """ε of a disclosure, Laplace noise and Gaussian noise, by sums over losses, on a fine grid."""
    # Losses of Laplace noise of sensitivity one under its first law: ±1/scale, and between.
    x = np.linspace(-60 * scale, 60 * scale + 1, 60_001)
    width = x[1] - x[0]
    density = np.exp(-np.abs(x) / scale) / (2 * scale) * width
    losses = (np.abs(x - 1) - np.abs(x)) / scale

    def excess(epsilon):
        # E over the Laplace loss of δ_G(ε - loss).
        at = epsilon - losses
        own = stats.norm.cdf(mu / 2 - at / mu) - np.exp(at) * stats.norm.cdf(-mu / 2 - at / mu)
        return probability + (1 - probability) * float(density @ own) - delta

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
    return high


@pytest.mark.parametrize("probability", [1e-4, 5e-4])
@pytest.mark.parametrize(("scale", "sigma"), [(2.0, 6.0), (1.0, 1.5)])
def test_beside_laplace_and_gaussian_noise_it_is_what_a_sum_over_losses_gives(
    probability, scale, sigma
):
    laplace = Laplace(scale=scale, sensitivity=1.0, neighbours=ADD)
    found = tight([(laplace, 1), (gaussian(sigma), 1), (disclosure(probability), 1)], delta=1e-3)
    assert found == pytest.approx(by_pmf(probability, scale, 1 / sigma, 1e-3), rel=2e-3)


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 3, 2)])
def test_it_is_what_dp_accounting_makes_of_a_law_with_infinite_losses(counts):
    """Each disclosure as a pair of laws that are never seen together with probability p."""
    p, scale, sigma, delta = 2e-7, 2.0, 5.0, 1e-5
    of_disclosure, of_laplace, of_gaussian = counts
    lower = {"told": math.log(p), "not": math.log1p(-p)}
    upper = {"not": math.log1p(-p), "told otherwise": math.log(p)}
    theirs = pld.from_two_probability_mass_functions(
        lower, upper, value_discretization_interval=1e-4
    ).self_compose(of_disclosure)
    for made, times in (
        (pld.from_discrete_laplace_mechanism(1 / scale, 1), of_laplace),
        (pld.from_gaussian_mechanism(sigma), of_gaussian),
    ):
        theirs = theirs.compose(made.self_compose(times))
    ours = tight(
        [
            (disclosure(p), of_disclosure),
            (DiscreteLaplace(scale=scale, sensitivity=1, neighbours=ADD), of_laplace),
            (gaussian(sigma), of_gaussian),
        ],
        delta=delta,
    )
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-3)


# --- what is left for a Gaussian ------------------------------------------------------------------

OTHERS = {
    "a disclosure": [(disclosure(1e-7), 1)],
    "half of ε": [(DiscreteLaplace(scale=2.0, sensitivity=1, neighbours=ADD), 1)],
    "cells, counts and a disclosure": [
        (DiscreteLaplace(scale=2 / 0.7, sensitivity=1, neighbours=ADD), 1),
        (DiscreteLaplace(scale=2 / 0.3, sensitivity=1, neighbours=ADD), 1),
        (disclosure(1e-7), 1),
    ],
}


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("others", OTHERS)
def test_the_gaussian_beside_others_spends_all_that_they_leave_and_no_more(others, epsilon):
    target = Privacy(epsilon, 1e-6, Neighbours.ADD_REMOVE)
    sigma = gaussian_beside(OTHERS[others], target=target)

    def spent(sigma):
        return tight([*OTHERS[others], (gaussian(sigma), 1)], delta=1e-6)

    assert spent(sigma) <= epsilon
    assert spent(sigma / 1.001) > epsilon
    assert covers(target, [*OTHERS[others], (gaussian(sigma), 1)])
    assert not covers(target, [*OTHERS[others], (gaussian(sigma / 1.05), 1)])
    assert gaussian_beside(OTHERS[others], target=target, sensitivity=3.0) == pytest.approx(
        3 * sigma, rel=2e-4
    )


def test_others_that_leave_nothing_are_refused():
    target = Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE)
    for others in (
        [(disclosure(1e-6), 1)],
        [(DiscreteLaplace(scale=0.9, sensitivity=1, neighbours=ADD), 1)],
    ):
        with pytest.raises(BudgetExceeded, match="room for a Gaussian"):
            gaussian_beside(others, target=target)


def test_a_claim_beside_disclosures_is_checked_by_its_closed_form():
    """A part in a thousand less noise, which a grid might let pass, is too little."""
    target = Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE)
    left = (1e-6 - 1e-7) / (1 - 1e-7)
    sigma = gaussian_sigma(epsilon=1.0, delta=left)
    assert covers(target, [(disclosure(1e-7), 1), (gaussian(sigma * (1 + 1e-9)), 1)])
    assert not covers(target, [(disclosure(1e-7), 1), (gaussian(sigma * (1 - 1e-4)), 1)])
    assert not covers(target, [(disclosure(1.1e-7), 1), (gaussian(sigma), 1)])
    assert covers(Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE), [(disclosure(1e-6), 1)])
    assert not covers(Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE), [(disclosure(1.1e-6), 1)])


def test_two_releases_with_disclosures_add_up():
    receipts = [
        Receipt.issue(
            mechanisms=[(disclosure(1e-7), 1), (gaussian(5.0), 1)],
            neighbours=Neighbours.ADD_REMOVE,
            unit="row",
            scope="a test",
            entropy=Silent(),
        )
        for _ in range(2)
    ]
    joint = combine(receipts, delta=1e-6)
    none = (1 - 1e-7) ** 2
    left = (1e-6 - (1 - none)) / none
    assert joint.epsilon == pytest.approx(
        gaussian_epsilon(sigma=5 / math.sqrt(2), delta=left), rel=1e-9
    )
    with pytest.raises(InvalidInput, match="truncated tails"):
        combine(receipts, delta=1.5e-7)
