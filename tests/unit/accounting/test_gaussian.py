import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import InvalidInput
from discreet.accounting import gaussian_epsilon, gaussian_sigma


def exact_delta(sigma, epsilon):
    """Balle and Wang's formula to 80 digits: the oracle."""
    with mpmath.workdps(80):
        mu, epsilon = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
        upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return mpmath.ncdf(upper) - mpmath.exp(epsilon) * mpmath.ncdf(lower)


def test_the_golden_value():
    # Balle, Wang (2018), Algorithm 1, reference implementation.
    assert gaussian_sigma(epsilon=1.0, delta=1e-6) == pytest.approx(4.224679, abs=1e-6)


@given(
    epsilon=st.floats(0.01, 50),
    log_delta=st.floats(-12, -0.01),
    sensitivity=st.floats(1e-3, 1e3),
)
def test_sigma_is_private_and_no_larger_than_needed(epsilon, log_delta, sensitivity):
    delta = 10**log_delta
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity) / sensitivity
    assert exact_delta(sigma * (1 + 1e-15), epsilon) <= delta
    assert exact_delta(sigma * (1 - 1e-8), epsilon) > delta


@given(sigma=st.floats(-1, 8.5).map(lambda power: 10**power), log_delta=st.floats(-14, -0.01))
def test_epsilon_is_private_and_no_larger_than_needed(sigma, log_delta):
    delta = 10**log_delta
    epsilon = gaussian_epsilon(sigma=sigma, delta=delta)
    assert exact_delta(sigma, epsilon) <= delta * (1 + 1e-15)
    if epsilon > 0:
        assert exact_delta(sigma, epsilon * (1 - 1e-6)) > delta
    else:
        assert exact_delta(sigma, 0) <= delta * (1 + 1e-12)


def test_only_the_ratio_counts():
    assert gaussian_epsilon(sigma=20.0, delta=1e-6, sensitivity=10.0) == pytest.approx(
        gaussian_epsilon(sigma=2.0, delta=1e-6)
    )


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "1", None])
@pytest.mark.parametrize("name", ["epsilon", "delta", "sensitivity"])
def test_bad_arguments_of_sigma_are_named(name, value):
    with pytest.raises(InvalidInput, match=f"{name}="):
        gaussian_sigma(**{"epsilon": 1.0, "delta": 1e-6, name: value})


@pytest.mark.parametrize("name", ["sigma", "delta", "sensitivity"])
def test_bad_arguments_of_epsilon_are_named(name):
    with pytest.raises(InvalidInput, match=f"{name}="):
        gaussian_epsilon(**{"sigma": 1.0, "delta": 1e-6, name: -1})
    with pytest.raises(InvalidInput, match="delta="):
        gaussian_epsilon(sigma=1.0, delta=1.0)
