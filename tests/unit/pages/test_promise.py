"""What a guarantee means for one person: bounds that hold, and that are attained."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.accounting import gaussian_sigma
from discreet.pages.promise import Promise, rounded_up
from discreet.privacy import Guarantee


def promise(epsilon=1.0, delta=1e-6, *, mu=None):
    return Promise(Guarantee(epsilon, delta, "add_remove", unit="row", scope="the file"), mu)


def gaussian(epsilon, delta):
    return promise(epsilon, delta, mu=1 / gaussian_sigma(epsilon=epsilon, delta=delta))


def test_the_best_test_of_two_gaussians_attains_it():
    """Seen in draws: the likelihood ratio test is the best there is (Neyman and Pearson)."""
    mu, rng = 0.6, np.random.default_rng(0)
    out, inside = rng.normal(size=400_000), mu + rng.normal(size=400_000)
    for accused in (0.01, 0.1, 0.5):
        threshold = np.quantile(out, 1 - accused)
        assert promise(8.0, mu=mu).found(accused) == pytest.approx(
            np.mean(inside > threshold), abs=0.004
        )
    right = (np.mean(out < mu / 2) + np.mean(inside > mu / 2)) / 2
    assert promise(8.0, mu=mu).coin == pytest.approx(right, abs=0.003)


def test_without_more_it_is_the_definition():
    said = promise(1.0, 0.001)
    assert said.found(0.01) == pytest.approx(math.e * 0.01 + 0.001)
    assert said.found(0.9) == pytest.approx(1 - math.exp(-1) * (0.1 - 0.001))
    assert said.coin == pytest.approx((math.e + 0.001) / (math.e + 1))
    assert promise(0.0, 0.0).coin == 0.5
    assert promise(800.0, 0.0).coin == 1.0


@given(st.floats(0.05, 10), st.floats(1e-9, 0.01), st.floats(0.001, 0.999))
def test_a_gaussian_promises_no_less_than_its_epsilon_and_delta(epsilon, delta, accused):
    """And no more than noise of that size can: by symmetry, and never below chance."""
    both, plain = gaussian(epsilon, delta), promise(epsilon, delta)
    assert accused <= both.found(accused) <= plain.found(accused) <= 1
    assert 0.5 <= both.coin <= plain.coin <= 1


@given(st.floats(0.05, 8), st.floats(1e-9, 0.01))
def test_epsilon_and_delta_of_the_gaussian_are_attained_somewhere(epsilon, delta):
    """Somewhere power = e^ε·a + δ, or the noise would be too large (Balle and Wang)."""
    both = gaussian(epsilon, delta)
    at = stats.norm.sf(epsilon / both.mu + both.mu / 2)
    assert stats.norm.sf(stats.norm.isf(at) - both.mu) == pytest.approx(
        math.exp(epsilon) * at + delta, rel=1e-6
    )


def test_people_are_counted_up():
    assert rounded_up(0.5470001) == "548"
    assert rounded_up(0.5) == "500"
    assert rounded_up(1.0) == "1,000"


@given(st.floats(0.01, 3), st.integers(1, 6))
def test_several_of_one_person_are_told_apart_no_better_than_that(epsilon, count):
    """Laplace noise under a shift of several units, and Gaussian noise, for which it is exact."""
    laplace = 1 - math.exp(-count * epsilon / 2) / 2  # how often the best test is right
    assert laplace <= promise(epsilon, 0.0).of_several(count).coin + 1e-12
    mu = 1 / gaussian_sigma(epsilon=epsilon, delta=1e-5)
    several = promise(epsilon, 1e-5, mu=mu).of_several(count)
    assert several.coin == pytest.approx(stats.norm.cdf(count * mu / 2))
    assert several.coin <= promise(epsilon, 1e-5).of_several(count).coin
    assert promise(epsilon, 1e-5, mu=mu).of_several(1) == promise(epsilon, 1e-5, mu=mu)


def test_several_steps_add_up_their_deltas():
    several = promise(0.5, 1e-3).of_several(3).guarantee
    assert several.epsilon == pytest.approx(1.5)
    assert several.delta == pytest.approx(1e-3 * (1 + math.exp(0.5) + math.exp(1.0)))
    assert promise(600.0, 1e-3).of_several(10).guarantee.delta == 1.0
    assert promise(600.0, 1e-3).of_several(10).coin == 1.0
