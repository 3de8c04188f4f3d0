import decimal
import fractions

import numpy as np
import pytest

from discreet import InvalidInput, _validate


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), -float("inf"), "1", None, True, 1j, 10**400, [1.0]]
)
def test_a_bad_real_names_argument_and_value(value):
    with pytest.raises(InvalidInput) as caught:
        _validate.real("sigma", value, above=0)
    assert f"sigma={value!r}" in str(caught.value)
    assert "> 0" in str(caught.value)


@pytest.mark.parametrize("value", [1, 1.5, np.float32(2), np.int64(3), fractions.Fraction(1, 3)])
def test_a_good_real_becomes_a_float(value):
    result = _validate.real("sigma", value, above=0)
    assert type(result) is float
    assert result == pytest.approx(float(value))


def test_bounds_are_open_or_closed_as_named():
    assert _validate.real("x", 1, at_least=1, at_most=1) == 1
    with pytest.raises(InvalidInput):
        _validate.real("x", 1, above=1)
    with pytest.raises(InvalidInput):
        _validate.real("x", 1, below=1)


@pytest.mark.parametrize("value", [0, 1.5, float("nan"), "2", None, True, decimal.Decimal(2), 8])
def test_a_bad_whole_number_names_argument_and_value(value):
    with pytest.raises(InvalidInput, match="count="):
        _validate.whole("count", value, at_least=1, at_most=7)


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float64(3.0)])
def test_a_good_whole_number_becomes_an_int(value):
    result = _validate.whole("count", value, at_least=1)
    assert type(result) is int
    assert result == 3
