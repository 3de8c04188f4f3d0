import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay import Replay

from discreet import InvalidInput
from discreet.noise import DiscreteLaplace, TruncatedLaplace
from discreet.noise.laplace import Geometric
from discreet.testing import Seeded

BAD_REALS = [0, -1, float("nan"), float("inf"), "1", None]


def truncated(sensitivity=5, epsilon=0.5, delta=1e-3):
    return TruncatedLaplace(sensitivity=sensitivity, epsilon=epsilon, delta=delta)


def exact_pmf(rate, bound):
    """Pr[Z = z] for |z| ≤ bound by plain summation, to 60 digits: the oracle."""
    with mpmath.workdps(60):
        rate = mpmath.mpf(rate.numerator) / rate.denominator
        weights = {z: mpmath.exp(-rate * abs(z)) for z in range(-bound, bound + 1)}
        total = mpmath.fsum(weights.values())
        return {z: weight / total for z, weight in weights.items()}


def hockey_stick(pmf, shift, epsilon):
    """Σ (P(z) - e^ε·P(z - shift))₊ by plain summation."""
    growth = mpmath.exp(mpmath.mpf(epsilon))
    return mpmath.fsum(max(p - growth * pmf.get(z - shift, 0), 0) for z, p in pmf.items())


@pytest.mark.parametrize("scale", [*BAD_REALS, 0.49, 2.0**41])
def test_a_bad_scale_is_named(scale):
    with pytest.raises(InvalidInput, match="scale="):
        DiscreteLaplace(scale=scale)


@pytest.mark.parametrize("value", BAD_REALS)
@pytest.mark.parametrize("name", ["sensitivity", "epsilon", "delta"])
def test_a_bad_truncated_parameter_is_named(name, value):
    with pytest.raises(InvalidInput, match=f"{name}="):
        truncated(**{name: value})


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"delta": 0.5}, "delta="),
        ({"sensitivity": 1.5}, "sensitivity="),
        ({"sensitivity": 1, "epsilon": 2.5}, "sensitivity/epsilon='1/2.5'"),
        ({"sensitivity": 2**41, "epsilon": 1.0}, "sensitivity/epsilon="),
    ],
)
def test_truncated_parameters_out_of_range(parameters, name):
    with pytest.raises(InvalidInput, match=name):
        truncated(**parameters)


PARAMETERS = {
    "sensitivity": st.integers(1, 6),
    "epsilon": st.floats(0.05, 2.0),
    "delta": st.floats(1e-6, 0.499),
}


@given(**PARAMETERS)
def test_the_bound_is_the_smallest_that_keeps_delta(sensitivity, epsilon, delta):
    law = truncated(sensitivity, epsilon, delta)
    rate = Fraction(epsilon) / sensitivity
    with mpmath.workdps(60):
        kept = hockey_stick(exact_pmf(rate, law.bound), sensitivity, epsilon)
        smaller = hockey_stick(exact_pmf(rate, law.bound - 1), sensitivity, epsilon)
        assert kept <= delta < smaller
        # What it reports is what it has, rounded up and never above what was asked for.
        assert kept <= law.exact_delta <= delta
        assert law.exact_delta == pytest.approx(float(kept), rel=1e-14)


@given(**PARAMETERS, shift=st.integers(1, 6))
def test_a_smaller_change_never_costs_more(sensitivity, epsilon, delta, shift):
    sensitivity = max(sensitivity, shift)
    law = truncated(sensitivity, epsilon, delta)
    pmf = exact_pmf(Fraction(epsilon) / sensitivity, law.bound)
    with mpmath.workdps(60):
        assert hockey_stick(pmf, shift, epsilon) <= mpmath.mpf(law.exact_delta)
        assert hockey_stick(pmf, -shift, epsilon) <= mpmath.mpf(law.exact_delta)


def test_flooring_the_continuous_formula_would_break_delta_in_half_of_the_cases():
    broken = 0
    cases = [(s, e, d) for s in (1, 3, 10) for e in (0.1, 0.5, 1.0) for d in (1e-2, 1e-4, 1e-6)]
    for sensitivity, epsilon, delta in cases:
        continuous = sensitivity / epsilon * math.log1p(math.expm1(epsilon) / (2 * delta))
        broken += math.floor(continuous) < truncated(sensitivity, epsilon, delta).bound
    assert len(cases) / 4 < broken < len(cases)


@given(**PARAMETERS)
def test_truncated_pmf_and_variance_agree_with_plain_sums(sensitivity, epsilon, delta):
    law = truncated(sensitivity, epsilon, delta)
    pmf = exact_pmf(Fraction(epsilon) / sensitivity, law.bound)
    values = np.arange(-law.bound - 3, law.bound + 4)
    expected = [float(pmf.get(int(z), 0)) for z in values]
    np.testing.assert_allclose(law.pmf(values), expected, rtol=1e-11)
    assert law.variance == pytest.approx(float(sum(p * z * z for z, p in pmf.items())), rel=1e-13)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9])
def test_variance_tends_to_the_papers_fact(epsilon, delta):
    sensitivity = 2**30
    log = math.log1p(math.expm1(epsilon) / (2 * delta))
    fact = 2 * (sensitivity / epsilon) ** 2
    fact *= 1 - delta * (log**2 + 2 * log) / math.expm1(epsilon)
    assert truncated(sensitivity, epsilon, delta).variance == pytest.approx(fact, rel=1e-6)


@pytest.mark.parametrize("scale", [0.5, 1.0, 7.3, 40.0])
def test_discrete_pmf_and_variance_agree_with_plain_sums(scale):
    law = DiscreteLaplace(scale=scale)
    values = np.arange(-3000, 3001)
    mass = law.pmf(values)
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    middle = mass[2900:3001]
    np.testing.assert_allclose(middle[1:] / middle[:-1], math.exp(1 / scale), rtol=1e-10)
    assert law.variance == pytest.approx(float(np.sum(mass * values.astype(float) ** 2)), rel=1e-10)


@pytest.mark.parametrize(
    "law",
    [
        truncated(1, 0.001, 0.4),  # bound 1: three values
        truncated(3, 2.0, 0.4),
        truncated(1, 2.0, 1e-9),
        truncated(2**40, 1.0, 1e-300),
        truncated(1, 2.0**-40, 1e-6),
    ],
    ids=str,
)
def test_draws_never_leave_the_bound(law):
    draws = law.sample(20_000, entropy=Seeded(1))
    assert np.abs(draws).max() <= law.bound
    spread = math.sqrt(law.variance)
    assert abs(draws.astype(float).std() / spread - 1) < 0.05


def test_an_unbounded_draw_can_exceed_its_stored_digits():
    # At rate 8 there are three stored digits (45/8 has three bits); the part above is geometric
    # with ratio e^-64 < 2^-64, so two zero words are one head, and any other word is tails.
    law = Geometric(rate=Fraction(8), limit=None)
    draw = law.batch(1, Replay(*[2**64 - 1] * 3, *[0, 0] * 2, 2**64 - 1))
    assert draw.tolist() == [2 << 3]


@pytest.mark.parametrize("digits", [2, 3, 4, 6, 30])
def test_the_probability_of_zero_is_enclosed_at_every_precision(digits):
    for law in (truncated(1, 0.9, 0.4), truncated(4, 0.1, 0.3), DiscreteLaplace(scale=3.0)):
        low, high = law._nonzero._bounds(digits)
        with mpmath.workdps(80):
            rate = mpmath.mpf(law._rate.numerator) / law._rate.denominator
            reach = law._bound or 2000
            weight = 2 * mpmath.fsum(mpmath.exp(-rate * z) for z in range(1, reach + 1))
            truth = weight / (1 + weight)
            assert mpmath.mpf(low.numerator) / low.denominator < truth
            assert truth < mpmath.mpf(high.numerator) / high.denominator


def test_the_variance_survives_a_bound_far_below_the_scale():
    law = truncated(1, 2.0**-40, 0.4999)
    assert law.bound == 1
    assert law.variance == pytest.approx(2 / 3, rel=1e-12)


@pytest.mark.parametrize("entropy", [42, np.random.default_rng(), Seeded])
def test_what_is_no_source_of_entropy_is_refused(entropy):
    with pytest.raises(InvalidInput, match="entropy="):
        DiscreteLaplace(scale=3.0).sample(5, entropy=entropy)


def test_sizes():
    law = DiscreteLaplace(scale=3.0)
    assert law.sample(0).shape == (0,)
    assert law.sample((2, 0, 3)).shape == (2, 0, 3)
    assert law.sample((2, 3)).dtype == np.int64
    assert law.sample(()).shape == ()
    assert law.sample(100_001).shape == (100_001,)
    for size in (-1, 1.5, (2, -1), "3", 2**70, (2**30, 2**30)):
        with pytest.raises(InvalidInput, match="size="):
            law.sample(size)


def test_total_variation_is_zero():
    assert DiscreteLaplace(scale=1.0).total_variation == 0.0
    assert truncated().total_variation == 0.0


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(scale=3.0), TruncatedLaplace(sensitivity=2, epsilon=0.6, delta=1e-3)],
    ids=str,
)
@pytest.mark.parametrize("tilt", [-0.2, 0.0, 0.05, 0.25])
def test_the_moment_of_a_tilt_is_that_of_the_probabilities(law, tilt):
    """Of the whole line; tails that are cut off make it less."""
    numbers = np.arange(-400, 401)
    found = math.log(np.sum(law.pmf(numbers) * np.exp(tilt * numbers)))
    if isinstance(law, DiscreteLaplace):
        assert law.log_moment(tilt) == pytest.approx(found, abs=1e-9)
    else:
        whole = DiscreteLaplace(scale=law.sensitivity / law.epsilon)
        assert found - 1e-12 <= law.log_moment(tilt) == pytest.approx(whole.log_moment(tilt))
    assert law.log_moment(law.largest_tilt) == math.inf
