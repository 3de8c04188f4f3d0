"""Levels of noise: no smaller than chance makes them, and odd noise is told from noise."""

import numpy as np
import pytest

from discreet.audit.levels import grain, keeps, levels, normal_levels, oddities, stacked
from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace
from discreet.testing import Seeded

LAWS = (
    RoundedGaussian(sigma=0.5),
    RoundedGaussian(sigma=30.0),
    RoundedGaussian(sigma=2.0**40),
    DiscreteLaplace(scale=0.5),
    DiscreteLaplace(scale=12.0),
    TruncatedLaplace(sensitivity=6, epsilon=0.5, delta=1e-3),
)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_level_is_how_probable_noise_as_small_is(law):
    sizes = np.array([0, 1, 2, 7, 40])
    if law.variance < 1e6:
        expected = [law.pmf(np.arange(-size, size + 1)).sum() for size in sizes]
        assert levels(law, sizes.astype(float))[0] == pytest.approx(expected, rel=1e-5)
    noise = law.sample(4_000, entropy=Seeded(3)).astype(float)
    found, signs = levels(law, noise)
    assert np.array_equal(signs, np.sign(noise))
    for most in (0.01, 0.1, 0.5, 0.9):
        below = np.count_nonzero(found <= most)
        assert below <= 4_000 * most + 5 * np.sqrt(4_000 * most * (1 - most))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("releases", "numbers"), [(20, 300), (400, 1), (400, 12), (60, 3_000)])
def test_nothing_is_said_of_noise_as_it_should_be(law, releases, numbers):
    noise = law.sample(releases * numbers, entropy=Seeded(5)).astype(float)
    rows = list(noise.reshape(releases, numbers))
    found = [levels(law, row) for row in rows]
    assert oddities(stacked(found), [grain([row], 0.0) for row in rows], doubt=1e-6) == ()


def test_one_pair_of_thousands_that_goes_together_may_be_missed_and_many_are_not():
    law = RoundedGaussian(sigma=30.0)
    noise = law.sample(200 * 3_000, entropy=Seeded(1)).astype(float).reshape(200, 3_000)
    noise[:, 1_500:] = noise[:, :1_500]
    found = [levels(law, row) for row in noise]
    assert any(
        "pairs of numbers" in said for said in oddities(stacked(found), [1] * 200, doubt=1e-6)
    )


def test_what_all_noise_is_a_multiple_of():
    assert grain([np.array([6.0, -9.0]), np.array([0.0, 3.0])], 10.0) == 3
    assert grain([np.array([4.5])], 10.0) == 1  # no integers: sums of draws
    assert grain([np.array([8.0])], 2.0**60) == 1  # the last bits are lost
    assert grain([np.zeros(3)], 10.0) == 0
    assert oddities(np.ones((2, 2, 3), dtype=np.float32), [8, 16], doubt=1e-6) == ()  # by chance


def test_of_many_numbers_few_releases_are_kept():
    assert keeps(400_000, 10)
    assert keeps(15, 10**9)
    assert not keeps(16, 10**9)


def test_releases_of_several_sizes_say_nothing():
    short, long = (np.zeros((2, size), dtype=np.float32) for size in (30, 40))
    assert oddities(stacked([short, long]), [1, 1], doubt=1e-6) == ()
    assert oddities(stacked([]), [], doubt=1e-6) == ()


def test_levels_of_normal_numbers():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(2_000, 5))
    assert normal_levels(noise).shape == (2, 2_000, 5)
    assert oddities(normal_levels(noise), doubt=1e-6) == ()
    noise[:, 2] *= 0.7
    [said] = oddities(normal_levels(noise), doubt=1e-6)
    assert said == "the noise of 1 of 5 numbers is too small"
