import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import InvalidInput, Neighbours, accounting

ONE = {"neighbours": "replace"}
MECHANISMS = {
    "gaussian": accounting.Gaussian(sigma=2.0, sensitivity=1.0, **ONE),
    "laplace": accounting.Laplace(scale=2.0, sensitivity=1.0, **ONE),
    "discrete": accounting.DiscreteLaplace(scale=6.0, sensitivity=3, **ONE),
    "truncated": accounting.TruncatedLaplace(sensitivity=3, epsilon=0.5, delta=1e-3, **ONE),
}


def brute_hockey_stick(rate, shift, bound, epsilon):
    """Σ (P(z) - e^ε·P(z - Δ))₊ over a lattice, term by term."""
    with mpmath.workdps(50):
        weight = {z: mpmath.exp(-mpmath.mpf(rate) * abs(z)) for z in range(-bound, bound + 1)}
        total = mpmath.fsum(weight.values())
        growth = mpmath.exp(mpmath.mpf(epsilon))
        terms = (w - growth * weight.get(z - shift, 0) for z, w in weight.items())
        return float(mpmath.fsum(max(term, 0) for term in terms) / total)


@given(
    sensitivity=st.integers(1, 7),
    epsilon=st.floats(0.05, 2.0),
    delta=st.floats(1e-6, 0.4),
    position=st.floats(-1, 1),
)
def test_truncated_laplace_by_brute_force(sensitivity, epsilon, delta, position):
    mechanism = accounting.TruncatedLaplace(
        sensitivity=sensitivity, epsilon=epsilon, delta=delta, **ONE
    )
    at = position * epsilon
    truth = brute_hockey_stick(epsilon / sensitivity, sensitivity, mechanism.law.bound, at)
    assert mechanism.hockey_stick(np.array([at]))[0] == pytest.approx(truth, rel=1e-9, abs=1e-14)
    assert mechanism.infinite_loss == pytest.approx(
        brute_hockey_stick(epsilon / sensitivity, sensitivity, mechanism.law.bound, 50 * epsilon)
    )


@given(sensitivity=st.integers(1, 7), scale=st.floats(0.5, 30), position=st.floats(-1, 1))
def test_discrete_laplace_by_brute_force(sensitivity, scale, position):
    mechanism = accounting.DiscreteLaplace(sensitivity=sensitivity, scale=scale, **ONE)
    at = position * mechanism.spread
    truth = brute_hockey_stick(1 / scale, sensitivity, int(50 * scale) + sensitivity, at)
    assert mechanism.hockey_stick(np.array([at]))[0] == pytest.approx(truth, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.3, 0.49])
def test_continuous_laplace_is_the_limit_of_a_fine_lattice(epsilon):
    fine = accounting.DiscreteLaplace(scale=2e6, sensitivity=10**6, **ONE)
    at = np.array([epsilon])
    assert MECHANISMS["laplace"].hockey_stick(at)[0] == pytest.approx(
        fine.hockey_stick(at)[0], abs=1e-6
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_curve_is_a_trade_off(name):
    """δ falls with ε, and swapping the data sets gives δ(-ε) = 1 - e^-ε + e^-ε·δ(ε)."""
    mechanism = MECHANISMS[name]
    grid = np.linspace(0, mechanism.largest_loss, 50)
    above, below = mechanism.hockey_stick(grid), mechanism.hockey_stick(-grid)
    assert np.all(np.diff(above) <= 1e-15)
    np.testing.assert_allclose(below, -np.expm1(-grid) + np.exp(-grid) * above, rtol=1e-9)
    assert above[-1] == pytest.approx(mechanism.infinite_loss, rel=1e-9, abs=1e-40)
    beyond = 3 * np.array([mechanism.largest_loss])
    assert mechanism.hockey_stick(beyond)[0] == pytest.approx(
        mechanism.infinite_loss, rel=1e-9, abs=1e-40
    )


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("delta", [1e-3, 1e-2, 0.05, 0.1])
def test_a_single_epsilon_is_on_the_private_side_and_no_larger_than_needed(name, delta):
    mechanism = MECHANISMS[name]
    epsilon = mechanism.epsilon_at(delta)
    assert mechanism.hockey_stick(np.array([epsilon]))[0] <= delta
    assert mechanism.hockey_stick(np.array([epsilon * (1 - 1e-9)]))[0] > delta * (1 - 1e-12)


def test_the_share_that_no_epsilon_covers_is_reached_at_the_largest_loss():
    """δ(ε) stays there for any larger ε, and rounding may put it a hair above."""
    mechanism = MECHANISMS["truncated"]
    assert mechanism.epsilon_at(mechanism.infinite_loss) == mechanism.largest_loss
    assert mechanism.epsilon_at(mechanism.infinite_loss * (1 - 1e-9)) == float("inf")


@pytest.mark.parametrize("name", MECHANISMS)
def test_more_noise_is_more_privacy(name):
    mechanism = MECHANISMS[name]
    more = mechanism.with_noise_times(2.0)
    assert more.spread == pytest.approx(mechanism.spread / 2)
    at = np.array([0.1])
    assert more.hockey_stick(at)[0] < mechanism.hockey_stick(at)[0]
    assert type(mechanism.with_noise_times(max(mechanism.least_factor, 0.1))) is type(mechanism)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_neighbouring_relation_is_required_and_checked(name):
    mechanism = MECHANISMS[name]
    assert mechanism.neighbours is Neighbours.REPLACE
    fields = {field: getattr(mechanism, field) for field in mechanism.__dataclass_fields__}
    with pytest.raises(InvalidInput, match="neighbours="):
        type(mechanism)(**fields | {"neighbours": "nearby"})
    del fields["neighbours"]
    with pytest.raises(TypeError, match="neighbours"):
        type(mechanism)(**fields)
    for field in fields:
        with pytest.raises(InvalidInput, match=f"{field}="):
            type(mechanism)(**fields | ONE | {field: float("nan")})
