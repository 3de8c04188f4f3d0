"""What is seen of a release: its numbers, and how likely they are on either side."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.accounting import Gaussian
from discreet.audit.looking import (
    fresh_draws,
    kurtosis,
    log_ratio,
    mechanisms,
    seen,
    squared_distance,
)
from discreet.errors import InvalidInput
from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace
from discreet.noise.correlated import Participation, Reading, chosen
from discreet.noise.exact import SMALLEST_SCALE
from discreet.privacy import Neighbours
from discreet.testing import Seeded, Silent

LAWS = (
    RoundedGaussian(sigma=30.0),
    DiscreteLaplace(scale=12.0),
    TruncatedLaplace(sensitivity=6, epsilon=0.5, delta=1e-3),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@given(shift=st.lists(st.integers(-6, 6), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_the_log_ratio_is_that_of_the_laws_own_probabilities(law, shift, seed):
    shift = np.array(shift)
    noise = law.sample(len(shift), entropy=Seeded(seed))
    masses = [law.pmf(noise), law.pmf(noise - shift)]
    found = log_ratio(law, noise.astype(float), shift.astype(float))
    if np.all(masses[1] > 0):
        expected = math.fsum(np.log(masses[1]) - np.log(masses[0]))
        assert found == pytest.approx(expected, rel=0.01, abs=0.01)
    else:
        assert found < -1e5


def test_what_only_the_other_side_can_make_is_certain():
    law = LAWS[2]
    edge = np.array([float(law.bound + 3)])
    assert log_ratio(law, edge, np.array([6.0])) > 1e5


def test_distances_are_in_standard_deviations():
    assert squared_distance(RoundedGaussian(sigma=2.0), np.array([6.0, 8.0])) == pytest.approx(25)
    law = DiscreteLaplace(scale=100.0)
    apart = squared_distance(law, np.array([math.sqrt(law.variance)]))
    assert apart == pytest.approx(1)


@pytest.mark.parametrize("law", [*LAWS, DiscreteLaplace(scale=0.5)], ids=str)
def test_fourth_powers_of_noise_are_no_larger_than_said(law):
    numbers = np.arange(-600, 601)
    mass = law.pmf(numbers)
    found = np.sum(mass * numbers**4.0) / np.sum(mass * numbers**2.0) ** 2
    assert found == pytest.approx(kurtosis(law), rel=0.02 if law.variance > 1 else 1e-6) or (
        isinstance(law, TruncatedLaplace) and found < kurtosis(law)
    )


@pytest.mark.parametrize("law", [RoundedGaussian(sigma=0.5), DiscreteLaplace(scale=0.5)], ids=str)
def test_noise_that_no_account_can_hold_counts_as_the_least_that_one_can(law):
    [(found, count)] = mechanisms(law, np.array([0.0, 2.0]), 0.4, Neighbours.ADD_REMOVE)
    assert count == 1
    assert found.sensitivity == 2
    assert (found.sigma if isinstance(found, Gaussian) else found.scale) == SMALLEST_SCALE


def memory(entropy, **options):
    return discreet.build(
        np.eye(2), np.ones((2, 1)), epsilon=1, delta=1e-5, scale=1.0, entropy=entropy, **options
    )


def test_sums_are_seen_with_the_noise_on_them():
    made = memory(Seeded(1), kernel="minimax", eps_s=0.5)
    [part] = seen(made).parts
    assert np.array_equal(part.values, made.released.state.ravel())
    assert part.law == RoundedGaussian(sigma=made.released.sigma)
    assert seen(made).additive
    assert seen(made).guarantee == made.guarantee


def test_what_was_made_in_rounds_is_no_sum_and_noise():
    made = discreet.softmax_regression(
        np.eye(2),
        np.array(["a", "b"]),
        classes=("a", "b"),
        features="linear",
        epsilon=1,
        delta=1e-5,
        entropy=Silent(),
    )
    assert not seen(made).additive


def test_several_releases_of_one_build_are_seen_together():
    layers = [(np.eye(2), np.ones((2, 1))), (np.eye(2), np.ones((2, 3)))]
    several = discreet.build_many(
        layers, epsilon=1, delta=1e-5, scale=1.0, kernel="minimax", eps_s=0.5, entropy=Silent()
    )
    found = seen(list(several))
    assert len(found.parts) == 2
    assert len(found.vector) == sum(each.released.state.size for each in several)


def test_a_view_has_no_known_noise():
    found = seen(memory(Silent()), view=lambda made: made.attend(np.eye(2)))
    assert not found.additive
    assert found.vector.shape == (2,)


def test_what_has_no_guarantee_is_refused():
    with pytest.raises(InvalidInput, match="guarantee"):
        seen(np.ones(3))


def test_states_of_a_stream_are_fresh_draws_and_what_rows_add():
    """Whatever the rows: the noise of all states is the draws of their steps again."""
    steps, rng = 12, np.random.default_rng(0)
    strategy = chosen(Reading(), Participation(), steps=steps)
    buffers, total, totals = strategy.begin(3), np.zeros(3, dtype=np.int64), []
    drawn = rng.integers(-(2**30), 2**30, (steps, 3))
    for fresh in drawn:
        noise, buffers = strategy.follow(buffers, fresh)
        total = total + noise
        totals.append(total)
    found = fresh_draws(totals, strategy)
    assert np.abs(found - drawn).max() < strategy.rounding
    moved = fresh_draws([each + 1_000 for each in totals], strategy) - found
    assert moved[:, 0] == pytest.approx(1_000 * strategy.coefficients(steps), abs=1e-3)
