"""What counts tell of ε: bounds that hold as often as they say, and are not far below."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from discreet.accounting import gaussian_epsilon
from discreet.accounting.gaussian import LARGEST_EPSILON
from discreet.audit import bounds
from discreet.audit.bounds import (
    Guesses,
    Rates,
    at_least,
    at_most,
    epsilon_of_mu,
    interval,
    mu_of_gap,
)

DELTA = 1e-5


@given(st.integers(1, 400), st.floats(0, 1), st.floats(1e-6, 0.4))
def test_clopper_pearson_is_where_the_binomial_law_puts_it(trials, share, doubt):
    count = round(share * trials)
    low, high = at_least(count, trials, doubt=doubt), at_most(count, trials, doubt=doubt)
    assert 0 <= low <= count / trials <= high <= 1
    if count:
        assert stats.binom.sf(count - 1, trials, low) == pytest.approx(doubt, rel=1e-6)
    if count < trials:
        assert stats.binom.cdf(count, trials, high) == pytest.approx(doubt, rel=1e-6)


def test_an_interval_is_scipys():
    found = stats.binomtest(7, 90).proportion_ci(0.9)
    assert interval(7, 90, confidence=0.9) == pytest.approx((found.low, found.high))


def test_rates_of_a_gaussian_give_its_mu_and_never_more_than_its_epsilon():
    mu = 0.7
    for alarms in (1e-4, 0.01, 0.3, 0.9):
        rates = Rates(alarms, float(special.ndtr(special.ndtri(alarms) + mu)))
        assert rates.mu == pytest.approx(mu)
        assert rates.epsilon(DELTA) <= gaussian_epsilon(sigma=1, sensitivity=mu, delta=DELTA)


@given(st.floats(1e-3, 20), st.floats(-14, -0.3))
def test_epsilon_of_a_gaussian_is_that_of_the_account(mu, digits):
    delta = 10**digits
    account = gaussian_epsilon(sigma=1.0, delta=delta, sensitivity=mu)
    assert bounds.epsilon_of_mu(mu, delta) == pytest.approx(account, rel=1e-8, abs=1e-9)


def test_epsilon_of_no_shift_is_none_and_of_a_large_one_what_accounts_hold():
    assert bounds.epsilon_of_mu(0.0, 1e-5) == bounds.epsilon_of_mu(1e-9, 1e-5) == 0
    assert bounds.epsilon_of_mu(1e3, 1e-5) == LARGEST_EPSILON


def test_rates_of_randomised_response_give_its_epsilon_both_ways():
    for epsilon in (0.1, 1.0, 4.0):
        lie = 1 / (1 + math.exp(epsilon))
        assert Rates(lie, 1 - lie).epsilon(0.0) == pytest.approx(epsilon)
        # One that is only seen where the unit is not said to be there.
        rare = Rates(1 - 0.1 * math.exp(epsilon) / 60, 1 - 0.1 / 60)
        assert rare.epsilon(0.0) == pytest.approx(epsilon)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_guess_tells_nothing(alarms, found):
    low, high = sorted((alarms, found))
    assert Rates(high, low).mu == 0
    assert Rates(low, low).epsilon(DELTA) == 0
    assert Rates(low, high).epsilon(1.0) == 0


def test_impossible_outputs_are_more_epsilon_than_an_account_holds():
    assert Rates(0.0, 0.5).epsilon(DELTA) == 500
    assert math.isfinite(epsilon_of_mu(Rates(0.0, 1.0).mu, DELTA))
    assert epsilon_of_mu(0.0, DELTA) == 0


def share_wrong(bound, truth, seeds):
    return np.mean([bound(np.random.default_rng(seed)) > truth for seed in range(seeds)])


def test_bounds_are_wrong_as_rarely_as_they_say_and_not_never():
    """At 20% of doubt: a bound that is always right would be too low, and one in two too high."""
    mu, count = 0.5, 400

    def by_test(rng):
        alarms = int(np.sum(rng.normal(-mu / 2, 1, count) > 0))
        hits = int(np.sum(rng.normal(mu / 2, 1, count) > 0))
        return bounds.Test(alarms, count, hits, count).surely(0.2).mu

    def by_overlap(rng):
        inside = int(np.sum(np.abs(rng.normal(size=count)) <= mu / 2))
        return mu_of_gap(bounds.at_least(inside, count, doubt=0.2))

    assert share_wrong(by_test, mu, 400) <= 0.2
    assert share_wrong(by_test, 0.75 * mu, 400) > 0.01
    assert 0.1 < share_wrong(by_overlap, mu, 400) < 0.27


def drawn(mu, canaries, share, seed):
    """Guesses of somebody who sees each canary with normal noise."""
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, canaries)
    seen = rng.normal(mu * (coins - 0.5))
    clearest = np.argsort(-np.abs(seen))[: round(share * canaries)]
    right = int(np.sum((seen[clearest] > 0) == coins[clearest]))
    return Guesses(canaries, len(clearest), right)


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_many_canaries_tell_less_than_the_truth_and_more_than_a_third_of_it(mu, share):
    truth = epsilon_of_mu(mu, DELTA)
    found = [drawn(mu, 2_000, share, seed) for seed in range(6)]
    assert all(each.epsilon(DELTA, doubt=0.01) <= truth for each in found)
    assert all(each.mu(doubt=0.01) <= mu for each in found)
    if share < 1:
        assert all(each.mu(doubt=0.01) > mu / 3 for each in found)


def test_guesses_by_chance_tell_nothing():
    assert Guesses(1_000, 500, 250).epsilon(DELTA, doubt=0.01) == 0
    assert Guesses(1_000, 500, 250).mu(doubt=0.01) == 0


def test_with_no_delta_guesses_are_binomial():
    epsilon = 1.3
    canaries, right = 300, 260
    found = Guesses(canaries, canaries, right).epsilon(0.0, doubt=0.05)
    chance = stats.binom.sf(right - 1, canaries, special.expit(found))
    assert chance == pytest.approx(0.05, rel=0.01)
    assert found > epsilon


def test_delta_lets_more_guesses_be_right():
    few = Guesses(1_000, 20, 20)
    assert few.epsilon(1e-3, doubt=0.05) < few.epsilon(0.0, doubt=0.05)


@pytest.mark.slow
def test_the_auditor_of_jax_privacy_agrees():
    auditing = pytest.importorskip("jax_privacy.auditing", reason="needs jax-privacy")
    rng = np.random.default_rng(0)
    mu, count = 0.8, 2_000
    without, with_unit = rng.normal(-mu / 2, 1, count), rng.normal(mu / 2, 1, count)
    theirs = auditing.CanaryScoreAuditor(with_unit, without)
    at_zero = auditing.Explicit(0.0)
    alarms, hits = int(np.sum(without >= 0)), int(np.sum(with_unit >= 0))
    ours = bounds.Test(alarms, count, hits, count)
    given = {"significance": 0.01, "delta": DELTA, "threshold_strategy": at_zero}
    two_sided = theirs.epsilon_clopper_pearson(one_sided=False, **given)
    assert ours.surely(0.01).epsilon(DELTA) == pytest.approx(two_sided, rel=1e-9)
    guesses = Guesses(2 * count, alarms + hits, hits)
    one = theirs.epsilon_one_run(**given)
    assert guesses.epsilon(DELTA, doubt=0.01) == pytest.approx(one, abs=5e-4)
    by_curve = theirs.epsilon_one_run_fdp(**given)
    mine = epsilon_of_mu(guesses.mu(doubt=0.01), DELTA)
    assert mine == pytest.approx(by_curve, abs=2e-3)
