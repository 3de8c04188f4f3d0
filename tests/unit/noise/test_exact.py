from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay import Replay

from discreet.noise.exact import Probability, Uniform, exp_bounds
from discreet.testing import Seeded


@given(
    exponent=st.fractions(min_value=-800, max_value=800, max_denominator=2**60),
    digits=st.integers(10, 120),
)
def test_exp_bounds_enclose_and_are_narrow(exponent, digits):
    low, high = exp_bounds(exponent, digits)
    with mpmath.workdps(digits + 60):
        truth = mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)
        assert mpmath.mpf(low.numerator) / low.denominator < truth
        assert mpmath.mpf(high.numerator) / high.denominator > truth
    assert 0 < (high - low) / low < Fraction(1, 10 ** (digits - 1))


ONE_OVER_E = Probability(lambda digits: exp_bounds(Fraction(-1), digits))


@pytest.mark.parametrize("words", [1, 2, 5])
def test_floor_is_the_first_bits(words):
    with mpmath.workprec(64 * words + 100):
        assert ONE_OVER_E.floor(words) == int(mpmath.floor(mpmath.exp(-1) * 2 ** (64 * words)))


def test_floor_asks_for_more_digits_until_both_bounds_agree():
    asked = []

    def crude(digits):
        asked.append(digits)
        width = Fraction(1, 4) if len(asked) < 3 else Fraction(0)
        return Fraction(1, 3) - width, Fraction(1, 3) + width

    assert Probability(crude).floor(1) == 2**64 // 3
    assert len(asked) == 3
    assert asked == sorted(asked)


def test_a_tie_is_decided_by_the_next_word_and_no_other_asks_for_one():
    first, second = ONE_OVER_E.floor(1), ONE_OVER_E.floor(2) % 2**64
    words = np.array([first - 1, first, first + 1], dtype=np.uint64)
    below = ONE_OVER_E.exceeds(words, source := Replay(second - 1))
    assert below.tolist() == [True, True, False]
    assert source.left == []
    assert ONE_OVER_E.exceeds(words, Replay(second + 1)).tolist() == [True, False, False]
    third = ONE_OVER_E.floor(3) % 2**64
    assert ONE_OVER_E.exceeds(words, Replay(second, third - 1)).tolist() == [True, True, False]


def test_a_coin_has_its_probability():
    heads = ONE_OVER_E.exceeds(Seeded(3).words(400_000), Seeded(4)).mean()
    assert abs(heads - np.exp(-1)) < 5 * 0.482 / np.sqrt(400_000)


def test_a_uniform_number_grows_without_changing():
    uniform = Uniform(7, Replay(9))
    before = uniform.bounds
    uniform.extend()
    assert uniform.bounds[0] == Fraction(7 * 2**64 + 9, 2**128)
    assert before[0] <= uniform.bounds[0] < uniform.bounds[1] <= before[1]
