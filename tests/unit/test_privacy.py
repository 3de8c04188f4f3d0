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


MEMORY = "the memory, with all answers to any queries,"
CHANGES = (
    "changes the probability of any outcome by at most a factor e^ε = 2.719, apart from δ = 1e-06. "
    "This covers"
)


@pytest.mark.parametrize(
    ("neighbours", "scope", "sentence"),
    [
        (
            "add_remove",
            MEMORY,
            (
                f"Adding or removing any one row {CHANGES} the memory and every "
                "answer it will ever give."
            ),
        ),
        (
            "replace",
            "the structure and all its answers",
            (f"Replacing any one row by another {CHANGES} the structure and all its answers."),
        ),
        (
            "add_remove",
            f"NOT PRIVATE (noise from X('a: b')): {MEMORY} but for what was taken (bounds),",
            (
                f"NOT PRIVATE (noise from X('a: b')): Adding or removing any one row {CHANGES} the "
                "memory and every answer it will ever give, but for what was taken (bounds)."
            ),
        ),
        (
            "add_remove",
            "NOT PRIVATE: all of 2 releases together, with all answers to any queries,",
            (
                f"NOT PRIVATE: Adding or removing any one row {CHANGES} all of 2 "
                "releases together and every answer they will ever give."
            ),
        ),
    ],
)
def test_a_guarantee_is_a_sentence(neighbours, scope, sentence):
    guarantee = Guarantee(1.0, 1e-6, neighbours, unit="row", scope=scope)
    assert str(guarantee) == sentence
    assert guarantee.scope == scope  # as files keep it


def test_a_guarantee_names_whom_it_protects():
    text = str(Guarantee(1.0, 1e-6, "replace", unit="customer", scope="the released file"))
    assert text.startswith("Replacing any one customer by another changes")
    assert text.endswith("This covers the released file.")


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
