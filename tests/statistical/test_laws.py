"""Do the samplers draw their laws? Each test accepts the right scale and rejects a wrong one."""

import math

import goodness
import numpy as np
import pytest

from discreet.noise import DiscreteLaplace, RoundedGaussian, SystemEntropy, TruncatedLaplace
from discreet.testing import Seeded

# With seeded draws a test gives the same answer for ever; those from the system's entropy may
# fail by chance once in a hundred million runs.
ALPHA = 1e-8
DRAWS = 40_000
MANY = 1_000_000
ALPHA_OF_MANY = 1e-5

TRUNCATION = {"epsilon": 0.5, "delta": 1e-3}


def gaussian(scale, factor=1.0):
    law = RoundedGaussian(sigma=scale)
    return law, goodness.rounded_gaussian_cdf(scale * factor)


def laplace(scale, factor=1.0):
    law = DiscreteLaplace(scale=scale)
    return law, goodness.discrete_laplace_cdf(scale * factor)


def truncated_laplace(scale, factor=1.0):
    sensitivity = max(1, round(scale * TRUNCATION["epsilon"]))
    law = TruncatedLaplace(sensitivity=sensitivity, **TRUNCATION)
    scale = sensitivity / TRUNCATION["epsilon"]
    return law, goodness.discrete_laplace_cdf(scale * factor, bound=law.bound)


FAMILIES = [gaussian, laplace, truncated_laplace]
SCALES = [3.0, 77.7, 1e6, 2.0**40]


def p_values(draws, law, cdf):
    return (
        goodness.chi_square_p_value(draws, cdf, spread=math.sqrt(law.variance)),
        goodness.kolmogorov_smirnov_p_value(draws, cdf),
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_right_law_is_accepted(family, scale):
    law, cdf = family(scale)
    for seed in range(3):
        assert min(p_values(law.sample(DRAWS, entropy=Seeded(seed)), law, cdf)) > ALPHA
    assert min(p_values(law.sample(DRAWS, entropy=SystemEntropy()), law, cdf)) > ALPHA


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_wrong_scale_is_rejected_by_both_tests(family, scale, factor):
    law, cdf = family(scale, factor)
    assert max(p_values(law.sample(DRAWS, entropy=Seeded(1)), law, cdf)) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_two_percent_shows_in_a_million_draws(family):
    scale = 1e6
    law, right = family(scale)
    draws = law.sample(MANY, entropy=Seeded(7))
    assert min(p_values(draws, law, right)) > ALPHA_OF_MANY
    for factor in (0.98, 1.02):
        assert max(p_values(draws, law, family(scale, factor)[1])) < ALPHA_OF_MANY


@pytest.mark.parametrize("scale", [0.5, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_small_scales_value_by_value(family, scale):
    """At small scales every integer is its own bin, so the whole pmf is checked."""
    law, _ = family(scale)
    draws = law.sample(DRAWS * 5, entropy=Seeded(11))
    values = np.arange(-40, 41)
    expected = law.pmf(values) * len(draws)
    observed = np.array([np.count_nonzero(draws == value) for value in values])
    assert observed.sum() == len(draws)
    deviations = (observed - expected) / np.sqrt(np.maximum(expected, 1.0))
    assert np.abs(deviations).max() < 6
    assert np.all(observed[expected < 1e-6] == 0)


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e6])
@pytest.mark.parametrize("family", FAMILIES)
def test_moments(family, scale):
    law, _ = family(scale)
    draws = law.sample(5 * DRAWS, entropy=Seeded(2)).astype(np.float64)
    spread = math.sqrt(law.variance)
    assert abs(draws.mean()) < 5 * spread / math.sqrt(len(draws))
    # Five standard errors of the sample variance, from the fourth moment of the draws.
    error = math.sqrt((np.mean(draws**4) - law.variance**2) / len(draws))
    assert abs(np.mean(draws**2) - law.variance) < 5 * error
    assert error / law.variance < 0.01  # so that a variance 5% off would fail
    assert abs(np.mean(draws**3)) < 6 * math.sqrt(np.mean(draws**6) / len(draws))


@pytest.mark.parametrize("family", FAMILIES)
def test_neighbouring_draws_are_independent(family):
    draws = family(100.0)[0].sample(5 * DRAWS, entropy=Seeded(4)).astype(np.float64)
    for lag in (1, 2, 7):
        for left, right in ((draws, draws), (np.abs(draws), np.abs(draws))):
            correlation = np.corrcoef(left[:-lag], right[lag:])[0, 1]
            assert abs(correlation) < 5 / math.sqrt(len(draws))
