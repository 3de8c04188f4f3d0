import dataclasses
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Guarantee, InvalidInput, Neighbours, Privacy
from discreet.privacy import rounded_up


def test_values_are_frozen_and_coerced():
    privacy = Privacy(1, 1e-6, "replace")
    assert privacy.neighbours is Neighbours.REPLACE
    assert privacy == Privacy(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        privacy.epsilon = 2.0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1, 1e-6, "replace"), "epsilon"),
        ((float("nan"), 1e-6, "replace"), "epsilon"),
        ((float("inf"), 1e-6, "replace"), "epsilon"),
        ((1, -1e-9, "replace"), "delta"),
        ((1, 1.5, "replace"), "delta"),
        ((1, 1e-6, "substitute"), "neighbours"),
        ((1, 1e-6, None), "neighbours"),
    ],
)
def test_bad_values_are_named(arguments, name):
    with pytest.raises(InvalidInput, match=f"{name}="):
        Privacy(*arguments)


def test_the_neighbouring_relation_has_no_default():
    with pytest.raises(TypeError):
        Privacy(1.0, 1e-6)


def test_covers_compares_within_one_relation_only():
    target = Privacy(1, 1e-6, "replace")
    assert target.covers(Privacy(1, 1e-6, "replace"))
    assert not target.covers(Privacy(1.001, 1e-6, "replace"))
    assert not target.covers(Privacy(1, 2e-6, "replace"))
    with pytest.raises(InvalidInput, match="relation"):
        target.covers(Privacy(0.1, 0, "add_remove"))


def test_a_guarantee_is_a_sentence():
    text = str(Guarantee(1.0, 1e-6, "add_remove", unit="customer", scope="the released file"))
    for part in (
        "customer",
        "added or removed",
        "the released file",
        "2.719",
        "1e-06",
        "add_remove",
    ):
        assert part in text
    assert text.endswith(".")


def test_printed_numbers_are_rounded_up_never_down():
    text = str(Privacy(1.00001, 1.00001e-6, "replace"))
    assert "1.001" in text
    assert "1.001e-06" in text
    assert "ε = 0.1, δ = 1e-05" in str(Privacy(0.1, 1e-5, "replace"))


@given(st.floats(0, 1e300))
def test_rounding_up_never_goes_down_and_never_far(value):
    shown = Decimal(rounded_up(value))
    assert Decimal(repr(value)) <= shown or value < 1e-300  # below, floats lose digits themselves
    assert float(shown) <= value * 1.0011 or value < 1e-300


@pytest.mark.parametrize("unit", ["", "  ", None])
def test_a_guarantee_needs_words(unit):
    with pytest.raises(InvalidInput, match="unit="):
        Guarantee(1.0, 1e-6, "replace", unit=unit, scope="everything")
