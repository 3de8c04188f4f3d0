import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.accounting import gaussian_epsilon, loss, tight
from discreet.accounting.concentrated import concentrated_epsilon

ONE = {"neighbours": "replace"}
DELTAS = st.floats(-11, -0.5).map(lambda power: 10**power)


def kinds(spread, count):
    """The four laws with one and the same spread; truncated tails of 1e-13 together."""
    return {
        "gaussian": accounting.Gaussian(sigma=1 / spread, sensitivity=1.0, **ONE),
        "laplace": accounting.Laplace(scale=1 / spread, sensitivity=1.0, **ONE),
        "discrete": accounting.DiscreteLaplace(scale=1000 / spread, sensitivity=1000, **ONE),
        "truncated": accounting.TruncatedLaplace(
            sensitivity=1000, epsilon=spread, delta=1e-13 / count, **ONE
        ),
    }


@pytest.mark.parametrize("kind", kinds(1.0, 1))
@settings(max_examples=40, deadline=None)
@given(
    spread=st.floats(-4, 1).map(lambda power: 10**power), count=st.integers(1, 3000), delta=DELTAS
)
def test_it_is_never_below_the_truth(kind, spread, count, delta):
    """The truth: exact for one and for Gaussians, else from the grid, less what that may add."""
    mechanism = kinds(spread, count)[kind]
    bound = concentrated_epsilon([(mechanism, count)], delta)
    assert concentrated_epsilon([(mechanism, 1)], delta) >= mechanism.epsilon_at(delta)
    if kind == "gaussian" and spread * math.sqrt(count) <= 1000:
        truth = gaussian_epsilon(sigma=1 / (spread * math.sqrt(count)), delta=delta)
        assert bound >= truth
    else:
        on_grid = loss._epsilon_on_grid([(mechanism, count)], delta)
        assert bound >= on_grid * (1 - 2e-3) - 1e-6


@pytest.mark.parametrize("kind", ["laplace", "discrete", "truncated"])
def test_many_small_losses_cost_a_few_percent_more_than_tight(kind):
    pairs = [(kinds(1e-3, 10**6)[kind], 10**6)]
    assert 1 < concentrated_epsilon(pairs, 1e-6) / tight(pairs, delta=1e-6) < 1.08


def test_it_is_the_formula_at_its_best_order():
    """Against 40 digits, with the order found by a fine search of its own."""
    rho, delta = 0.5, 1e-6
    with mpmath.workdps(40):

        def at(theta):
            theta = mpmath.mpf(theta)
            constant = theta * mpmath.log(theta) - (1 + theta) * mpmath.log(1 + theta)
            return (1 + theta) * rho + (mpmath.log(1 / mpmath.mpf(delta)) + constant) / theta

        best = float(min(at(1 + i / 1000) for i in range(10_000)))
    found = concentrated_epsilon([(kinds(1e-3, 10**6)["laplace"], 10**6)], delta)
    assert found == pytest.approx(best, rel=1e-5)
    assert found >= best * (1 - 1e-9)


def test_truncated_tails_are_charged_and_decide():
    mechanism = accounting.TruncatedLaplace(sensitivity=1000, epsilon=1e-3, delta=1e-9, **ONE)
    tails = -math.expm1(500 * math.log1p(-mechanism.infinite_loss))
    assert concentrated_epsilon([(mechanism, 500)], tails) == math.inf
    assert concentrated_epsilon([(mechanism, 500)], tails / 2) == math.inf
    laplace = accounting.Laplace(scale=1e3, sensitivity=1.0, **ONE)
    assert concentrated_epsilon([(mechanism, 500)], 1e-6) == pytest.approx(
        concentrated_epsilon([(laplace, 500)], 1e-6 - tails), rel=1e-9
    )


def test_bounded_losses_never_cost_more_than_their_sum():
    laplace = accounting.Laplace(scale=0.1, sensitivity=1.0, **ONE)
    assert concentrated_epsilon([(laplace, 3)], 1e-6) == 30.0
    gaussian = accounting.Gaussian(sigma=0.1, sensitivity=1.0, **ONE)
    mixed = concentrated_epsilon([(laplace, 3), (gaussian, 1)], 1e-6)
    assert mixed > 30.0 + 50.0  # no such cap where a loss has no bound


@given(spread=st.floats(1e-6, 10), count=st.integers(1, 10**15), delta=DELTAS)
def test_one_more_is_never_cheaper_and_a_larger_delta_never_dearer(spread, count, delta):
    laplace = accounting.Laplace(scale=1 / spread, sensitivity=1.0, **ONE)
    here = concentrated_epsilon([(laplace, count)], delta)
    assert here <= concentrated_epsilon([(laplace, count + 1)], delta)
    assert here <= concentrated_epsilon([(laplace, count)], delta / 2)
