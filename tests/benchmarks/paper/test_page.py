"""Sentences must be true, numbers readable, and paragraphs stay paragraphs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet_benchmarks.paper.page import (
    claim,
    listed,
    number,
    paragraph,
    power_of_two,
    setting,
    table,
    times,
)

pytestmark = pytest.mark.docs


def test_a_sentence_that_is_not_so_is_refused():
    assert claim(bool("so"), "So.") == "So."
    with pytest.raises(DiscreetError, match="Not so"):
        claim(bool(""), "Not so.")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.012345, "0.0123"),
        (0.00012345, "0.000123"),
        (1.0, "1.00"),
        (9.999, "10.0"),
        (1455.9, "1456"),
        (2691314.98, "2.69e6"),
        (0.0000123, "1.23e-5"),
        (-3.456, "-3.46"),
        (math.nan, "–"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_three_digits(value, shown):
    assert number(value) == shown


@given(st.floats(1e-12, 1e12))
def test_numbers_say_what_they_are(value):
    assert float(number(value)) == pytest.approx(value, rel=0.0051)


def test_factors_powers_settings_and_lists():
    assert times(1455.9) == "1456×"
    assert times(4.999) == "5.00×"
    assert power_of_two(17) == "2^17 ≈ 1.3e5"
    assert [setting(v) for v in (16384, 2**20, 0.25, 1e-6)] == ["16384", "2^20", "0.25", "1e-6"]
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"


@given(st.lists(st.sampled_from(["word", "-", "+", "*", "|", "longerword", "y"]), min_size=60))
def test_no_line_of_a_paragraph_begins_a_list(words):
    text = " ".join(["First", *words, "last."])
    *lines, blank = paragraph(text)
    assert blank == ""
    assert " ".join(lines) == text
    assert not any(line.startswith(("- ", "+ ", "* ", "| ")) for line in lines)


def test_tables_have_a_cell_for_each_column():
    head, rule, first, blank = table(["a", "b"], [["x", 0.5]])
    assert (head, rule, first, blank) == ("| a | b |", "| --- | --- |", "| x | 0.500 |", "")
