import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import InvalidInput
from discreet.features.minimax import best_coefficients, certified_error
from discreet.kernels import Minimax, Taylor


def on(t, degree, kind=Minimax):
    return kind(2, degree=degree, scale=t, key_norm=1.0, query_norm=1.0)


def dense_error(coefficients, t):
    logits = np.linspace(-t, t, 20_001)
    ratio = np.polynomial.polynomial.polyval(logits, coefficients) * np.exp(-logits)
    return max(ratio.max(), 1 / ratio.min()) - 1 if ratio.min() > 0 else math.inf


def test_degree_two_on_the_unit_interval_has_four_percent_where_taylor_has_36():
    assert on(1.0, 2).error == pytest.approx(0.0414, abs=1e-4)
    assert on(1.0, 2, Taylor).error == pytest.approx(0.359, abs=1e-3)


@given(
    t=st.sampled_from([0.01, 0.5, 1.0, 2.0, 5.0]) | st.floats(0.01, 5), degree=st.integers(0, 14)
)
def test_the_error_is_certified_and_tight(t, degree):
    kernel = on(t, degree)
    measured = dense_error(kernel.coefficients, t)
    if measured < 1e6:
        assert measured * (1 - 1e-9) <= kernel.error
        assert kernel.error <= measured * 1.001 + 1e-8


@given(t=st.floats(0.5, 2), degree=st.integers(1, 6))
def test_errors_alternate_so_no_polynomial_is_better(t, degree):
    """Equioscillation at degree + 2 points: the theorem of Chebyshev."""
    logits = np.linspace(-t, t, 50_001)
    coefficients = best_coefficients(t, degree)
    error = np.polynomial.polynomial.polyval(logits, coefficients) * np.exp(-logits) - 1
    pieces = np.split(error, np.flatnonzero(np.diff(np.sign(error))) + 1)
    extrema = [piece[np.argmax(np.abs(piece))] for piece in pieces]
    assert len(extrema) == degree + 2
    np.testing.assert_allclose(np.abs(extrema), np.abs(extrema).max(), rtol=1e-3)


def test_the_smallest_degree_that_meets_eps_s_is_taken():
    kernel = Minimax(3, eps_s=0.05, scale=1.0, key_norm=1.0, query_norm=1.0)
    assert kernel.degree == 2
    assert kernel.error <= 0.05 < on(1.0, 1).error


def test_a_certificate_sees_a_polynomial_that_is_not_positive():
    assert certified_error((1.0, 1.0), 1.5) == math.inf
    assert certified_error((1.0, 1.0), 0.5) < math.inf


def test_a_certificate_sees_a_narrow_miss():
    """A polynomial that is wrong between two cells' middles, by a little."""
    coefficients = list(best_coefficients(1.0, 4))
    honest = certified_error(tuple(coefficients), 1.0)
    coefficients[0] += 1e-4
    assert certified_error(tuple(coefficients), 1.0) >= dense_error(coefficients, 1.0) > honest


def test_stored_coefficients_are_used_as_they_are():
    kernel = Minimax(2, degree=1, scale=1.0, key_norm=1.0, query_norm=1.0, stored=(1.0, 0.5))
    assert kernel.coefficients == (1.0, 0.5)
    with pytest.raises(InvalidInput, match="degree"):
        Minimax(2, degree=2, scale=1.0, key_norm=1.0, query_norm=1.0, stored=(1.0, 0.5))


def test_an_error_out_of_reach_is_refused():
    with pytest.raises(InvalidInput, match="eps_s"):
        Minimax(2, eps_s=1e-12, scale=60.0, key_norm=1.0, query_norm=1.0)


def test_a_negative_coefficient_is_carried_by_the_query():
    kernel = Minimax(2, degree=2, scale=1.0, key_norm=1.0, query_norm=1.0, stored=(1.0, 0.9, -0.2))
    rows = np.array([[0.6, 0.3], [-0.2, 0.7]])
    features = kernel.key_features(rows).features / kernel.unit
    basis = kernel.read(rows[None], kernel.reading(np.eye(kernel.features)[None]))[0]
    logits = rows @ rows.T
    np.testing.assert_allclose(basis @ features.T, 1 + 0.9 * logits - 0.2 * logits**2, atol=1e-3)
    assert kernel.least_inner < -(2**31)


def test_a_negative_coefficient_counts_with_its_size_and_forbids_the_smaller_bound():
    """Positive on the interval, so that nothing but the sign of a coefficient can tell."""
    stored = (1.0, 0.9, -0.3)
    kernel = Minimax(2, degree=2, scale=0.5, key_norm=1.0, query_norm=1.0, stored=stored)
    assert math.isfinite(kernel.error)
    assert kernel.bound**2 == pytest.approx(1 + 0.9 * 0.5 + 0.3 * 0.25, rel=1e-9)
    assert kernel.least_inner == -(2**32)
    keys = np.array([[1.0, 0.0], [-1.0, 0.0]])
    features = kernel.key_features(keys).features
    assert np.all((features**2).sum(axis=1) <= 2**32)


def test_positive_kernels_leave_room_for_rounding():
    kernel = on(1.0, 3)
    assert kernel.least_inner == -math.ceil(2**16 * math.sqrt(kernel.features))
