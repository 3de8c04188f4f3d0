import decimal
import fractions
import sys
import traceback

import numpy as np
import pytest

from discreet import Guarantee, InvalidInput, Neighbours, Privacy, _validate, accounting

SECRET = 7311.25
CONTAINERS = [
    [SECRET],
    (SECRET, 3),
    (7311, 25),
    [[7311]],
    {"row": SECRET},
    {7311},
    np.array([SECRET]),
    np.array(SECRET),
    b"7311",
    range(7311),
]
CHECKS = {
    "real": lambda value: _validate.real("name", value),
    "whole": lambda value: _validate.whole("name", value, at_least=1),
    "choice": lambda value: _validate.choice("name", value, Neighbours),
    "instance": lambda value: _validate.instance("name", value, Privacy),
    "argument": lambda value: _validate.reject_argument("name", value, "something else"),
    "epsilon": lambda value: Privacy(value, 1e-6, "replace"),
    "neighbours": lambda value: Privacy(1.0, 1e-6, value),
    "unit": lambda value: Guarantee(1.0, 1e-6, "replace", unit=value, scope="all"),
    "mechanisms": lambda value: accounting.tight(value, delta=1e-6),
    "delta": lambda value: accounting.tight([], delta=value),
}


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), -float("inf"), "1", None, True, 1j, 10**400]
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


@pytest.mark.parametrize("value", CONTAINERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("check", CHECKS)
def test_no_list_or_array_of_a_caller_is_quoted(check, value):
    """Whoever passes one by mistake may have passed rows; a traceback must not show them either."""
    with pytest.raises(InvalidInput, match=f"=<{type(value).__name__}> to be") as caught:
        CHECKS[check](value)
    assert "7311" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), ((2, 8), 3, 4)])
def test_shapes_that_the_library_worked_out_are_shown(shape):
    with pytest.raises(InvalidInput) as caught:
        _validate.reject("rows.shape", shape, "another")
    assert str(caught.value) == f"Expected rows.shape={shape} to be another."


@pytest.mark.parametrize("value", [[3, 4], (3.5, 4), (3, [4]), (3, "4"), (3, None), (True, 2)])
def test_nothing_that_only_looks_like_a_shape_is_shown(value):
    with pytest.raises(InvalidInput, match=f"=<{type(value).__name__}> to be"):
        _validate.reject("rows.shape", value, "another")


def test_long_texts_are_cut():
    with pytest.raises(InvalidInput) as caught:
        _validate.real("sigma", "x" * 79 + "ysecret" * 1000)
    assert str(caught.value) == f"Expected sigma='{'x' * 79}y'... to be a finite number."
    with pytest.raises(InvalidInput, match="sigma='" + "x" * 80 + "' to be"):
        _validate.real("sigma", "x" * 80)


def test_a_number_too_long_to_be_written_is_not_written():
    for check in (_validate.real, lambda *given: _validate.whole(*given, at_least=0, at_most=9)):
        with pytest.raises(InvalidInput, match="x=<int> to be"):
            check("x", 10**5000)


@pytest.mark.parametrize(
    "check",
    [
        lambda: _validate.real("x", 1.5, above=0, at_most=2),
        lambda: _validate.real("x", 1, at_least=0, below=2),
        lambda: _validate.whole("x", 3, at_least=1, at_most=7),
        lambda: _validate.whole("x", 3.0, at_least=1),
    ],
)
def test_a_good_number_costs_one_frame(check):
    """Numbers are checked wherever settings are made, thousands of times in one build."""
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame) if event == "call" else None)
    try:
        check()
    finally:
        sys.setprofile(None)
    assert len(called) == 2  # the lambda, and the check itself
