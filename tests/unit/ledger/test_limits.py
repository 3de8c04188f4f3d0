"""The arithmetic of the limit: exact for Gaussians, and sound for whoever chooses after looking."""

import math
import random

import numpy as np
import pytest
from ledgers import gaussian
from scipy import integrate, stats

from discreet.accounting import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    TruncatedLaplace,
    gaussian_epsilon,
    tight,
)
from discreet.ledger.limits import Charge, Filter, largest_fitting
from discreet.privacy import Neighbours, Privacy

REPLACE = Neighbours.REPLACE


def limit(epsilon=1.0, delta=1e-5, neighbours=Neighbours.ADD_REMOVE):
    return Filter(limit=Privacy(epsilon, delta, neighbours))


def laplace(epsilon):
    return Laplace(scale=1 / epsilon, sensitivity=1.0, neighbours=REPLACE)


def normal(ratio):
    return Gaussian(sigma=1 / ratio, sensitivity=1.0, neighbours=REPLACE)


def truncated(epsilon, delta):
    return TruncatedLaplace(sensitivity=2**10, epsilon=epsilon, delta=delta, neighbours=REPLACE)


def test_gaussians_count_exactly():
    mechanisms = [gaussian(random.Random(i).uniform(0.01, 0.2)) for i in range(50)]
    filled = limit(30.0)
    for each in mechanisms:
        filled = filled.plus([(each, 1)])
    exact = tight([(each, 1) for each in mechanisms], delta=1e-5)
    assert filled.epsilon == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0, 60.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
def test_the_whole_limit_can_be_asked_for_at_once_and_not_more(epsilon, delta):
    whole = gaussian(epsilon, delta=delta)
    assert limit(epsilon, delta).plus([(whole, 1)]).fits
    assert not limit(epsilon, delta).plus([(whole.with_noise_times(1 - 1e-9), 1)]).fits


def test_the_first_release_counts_exactly_whatever_it_is():
    mechanisms = [(truncated(0.1, 1e-8), 10), (laplace(0.2), 3)]
    first = limit(2.0, neighbours=REPLACE).plus(mechanisms)
    assert first.epsilon == pytest.approx(tight(mechanisms, delta=1e-5 - first.kept), rel=1e-9)
    assert 0 < first.kept < 1e-5 / 2
    exactly = tight(mechanisms, delta=1e-5)
    assert limit(exactly, neighbours=REPLACE).plus(mechanisms).fits
    assert not limit(exactly * 0.999, neighbours=REPLACE).plus(mechanisms).fits


def test_bounded_losses_may_simply_be_added_up_as_long_as_there_is_no_gaussian():
    quarter = [(truncated(0.25, 1e-8), 1)]
    filled = limit(1.0, neighbours=REPLACE)
    for _ in range(4):
        filled = filled.plus(quarter)
        assert filled.fits
    assert filled.epsilon <= 1.0 + 1e-12
    assert not filled.plus(quarter).fits
    gaussian_too = filled.plus([(gaussian(0.01, neighbours=REPLACE), 1)])
    assert not gaussian_too.fits


def test_tails_after_a_first_release_without_any_are_refused():
    begun = limit(8.0, neighbours=REPLACE).plus([(gaussian(0.1, neighbours=REPLACE), 1)])
    assert begun.plus([(laplace(0.1), 1)]).fits
    assert not begun.plus([(truncated(0.1, 1e-12), 1)]).fits
    assert largest_fitting([begun], [(truncated(0.1, 1e-12), 1)]) is None


def test_later_tails_come_out_of_what_the_first_release_has_left_for_them():
    begun = limit(50.0, neighbours=REPLACE).plus([(truncated(0.1, 1e-7), 1)])
    assert begun.kept == pytest.approx((1e-5 - 1e-7) / 2, rel=1e-2)
    assert begun.plus([(truncated(0.1, 1e-7), 45)]).fits
    assert not begun.plus([(truncated(0.1, 1e-7), 55)]).fits
    # Voiding the first does not change what later ones were promised.
    assert begun.without_first().kept == begun.kept
    assert begun.without_first().epsilon == 0


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 0.9, 1.1, 5.0, 40.0, 400.0])
@pytest.mark.parametrize("kind", ["laplace", "discrete", "response"])
def test_the_gaussian_covers_the_law_at_every_epsilon(epsilon, kind):
    law = {
        "laplace": laplace(epsilon),
        "discrete": DiscreteLaplace(scale=64 / epsilon, sensitivity=64, neighbours=REPLACE)
        if epsilon < 100
        else laplace(epsilon),
        "response": laplace(epsilon),
    }[kind]
    square = Charge.of([(law, 1)]).square
    cover = normal(math.sqrt(square))
    at = np.linspace(0, epsilon, 301)
    own = (
        np.maximum(
            (1 - np.exp(at - epsilon)) / (1 + np.exp(-epsilon)), 0
        )  # says the truth so often
        if kind == "response"
        else law.hockey_stick(at)
    )
    assert np.all(cover.hockey_stick(at) >= own * (1 - 1e-9))
    if kind == "response" and epsilon <= 5:  # and no smaller Gaussian does
        less = normal(math.sqrt(square) / 1.001)
        assert np.any(less.hockey_stick(at) < own)


def test_plain_composition_would_not_survive_somebody_who_chooses_after_looking():
    """The filter's reason: choose between two releases by the loss of a first, and beat δ."""
    first, epsilon, delta = 0.25, 1.0, 1e-5
    given = [(normal(first), 1)]

    def choices(fits):
        """The largest Gaussian and the largest Laplace that a rule lets through."""

        def largest(kind):
            low, high = 1e-3, 1.0
            while high - low > 1e-6:
                middle = (low + high) / 2
                low, high = (middle, high) if fits(kind(middle)) else (low, middle)
            return kind(low)

        return [largest(normal), largest(laplace)]

    def gained(options):
        """δ(ε) if, at each loss of the first, the better of the options is taken."""

        def integrand(loss):
            best = np.max([each.hockey_stick(epsilon - loss) for each in options], axis=0)
            return stats.norm.pdf(loss, first**2 / 2, first) * best

        losses = np.linspace(-2, 4, 600_001)
        return integrate.trapezoid(integrand(losses), losses)

    naive = choices(lambda each: tight([*given, (each, 1)], delta=delta) <= epsilon)
    assert gained(naive) > delta * 1.01
    begun = limit(epsilon, delta, REPLACE).plus(given)
    sound = choices(lambda each: begun.plus([(each, 1)]).fits)
    assert delta / 2 < gained(sound) <= delta * (1 + 1e-4)


def test_the_largest_that_fits_fits_and_is_the_largest():
    begun = limit(2.0).plus([(gaussian(1.0), 1)])
    [(found, _)] = largest_fitting([begun], [(gaussian(3.0), 1)])
    assert begun.plus([(found, 1)]).fits
    assert not begun.plus([(found.with_noise_times(1 - 1e-5), 1)]).fits
    small = [(gaussian(0.1), 1)]
    assert largest_fitting([begun], small) is small
    full = limit(1.0, 1e-6).plus([(gaussian(1.0), 1)])
    [(next_to_nothing, _)] = largest_fitting([full], small)  # what rounding leaves
    assert gaussian_epsilon(sigma=next_to_nothing.sigma, delta=1e-9) < 1e-6
