import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import Replay

from discreet import InvalidInput
from discreet.noise import RoundedGaussian
from discreet.noise.gaussian import _below_slab, _slab_table

WORD = 2**64


@pytest.mark.parametrize(
    "sigma", [0, -1, float("nan"), float("inf"), "1", None, 0.49, 2.0**40 * 1.001]
)
def test_a_bad_sigma_is_named(sigma):
    with pytest.raises(InvalidInput, match="sigma="):
        RoundedGaussian(sigma=sigma)


@pytest.mark.parametrize("sigma", [0.5, 0.8, 1.0, 3.7, 50.0, 999.0, 1001.0, 5000.0])
def test_pmf_and_variance_agree_with_the_error_function(sigma):
    law = RoundedGaussian(sigma=sigma)
    reach = int(12 * sigma) + 2
    values = np.arange(-reach, reach + 1)
    mass = law.pmf(values)
    assert mass.sum() == pytest.approx(1.0, rel=1e-9)
    assert law.variance == pytest.approx(float(np.sum(mass * values.astype(float) ** 2)), rel=1e-6)
    with mpmath.workdps(50):
        for z in (0, 1, int(sigma), int(-3 * sigma), int(7 * sigma)):
            ends = [mpmath.ncdf((mpmath.mpf(z) + half) / sigma) for half in (-0.5, 0.5)]
            assert law.pmf(z) == pytest.approx(float(ends[1] - ends[0]), rel=1e-9)


def test_small_sigma_variance_is_not_just_a_twelfth_more():
    law = RoundedGaussian(sigma=0.5)
    values = np.arange(-20, 21)
    by_sum = float(np.sum(law.pmf(values) * values**2))
    assert law.variance == pytest.approx(by_sum, rel=1e-13)
    assert abs(by_sum - 0.25 - 1 / 12) > 1e-3


def candidate(sigma, slab, offset, coin):
    """round(σ·Y) of one candidate or None if rejected, from the definition, to 60 digits."""
    with mpmath.workdps(60):
        total = mpmath.nsum(lambda j: mpmath.exp(-j * j / 2), [0, 30])
        cumulative, k = mpmath.exp(0) / total, 0
        while mpmath.mpf(slab) / WORD >= cumulative:
            k += 1
            cumulative += mpmath.exp(-(mpmath.mpf(k) ** 2) / 2) / total
        x = mpmath.mpf(offset) / WORD
        if mpmath.mpf(coin) / WORD >= mpmath.exp(-x * (2 * k + x) / 2):
            return None
        return int(mpmath.floor(mpmath.mpf(sigma) * (k + x) + mpmath.mpf("0.5")))


@settings(max_examples=60)
@given(
    sigma=st.sampled_from([0.5, 1.0, 1e6, 2.0**39 + 0.3, 2.0**40]),
    words=st.tuples(*[st.integers(0, WORD - 1)] * 3),
)
def test_candidates_follow_the_definition(sigma, words):
    check_candidate(sigma, *words)


def check_candidate(sigma, slab, offset, coin):
    arrays = [np.array([word], dtype=np.uint64) for word in (slab, offset, coin)]
    # Should more bits be needed they are zeros, so that the words are the numbers themselves.
    zeros = Replay(*[0] * 60)
    magnitude, accepted = RoundedGaussian(sigma=sigma)._candidates(*arrays, zeros)
    expected = candidate(sigma, slab, offset, coin)
    assert accepted[0] == (expected is not None)
    if expected is not None:
        assert magnitude[0] == expected


@pytest.mark.parametrize("k", [0, 1, 2, 3])
@pytest.mark.parametrize("distance", [-3, -2, 2, 3, 2**20, -(2**20)])
def test_coins_too_close_for_floats_are_decided_exactly(k, distance):
    # The coin differs from the acceptance probability in the 62nd bit or so.
    slab = int(WORD * (0.1, 0.7, 0.95, 0.995)[k])
    offset = 0x9E3779B97F4A7C15
    with mpmath.workdps(60):
        x = mpmath.mpf(offset) / WORD
        edge = int(mpmath.floor(mpmath.exp(-x * (2 * k + x) / 2) * WORD))
    check_candidate(1e6, slab, offset, edge + distance)


@pytest.mark.parametrize("distance", [-2, -1, 1, 2])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_slabs_too_close_for_a_word_are_decided_exactly(k, distance):
    with mpmath.workdps(60):
        weights = [mpmath.exp(-(mpmath.mpf(j) ** 2) / 2) for j in range(30)]
        edge = int(mpmath.floor(mpmath.fsum(weights[: k + 1]) / mpmath.fsum(weights) * WORD))
    check_candidate(1e6, edge + distance, WORD // 3, 0)


@pytest.mark.parametrize("sigma", [3.0, 1e6, 2.0**40])
@pytest.mark.parametrize("distance", [-2, -1, 1, 2])
def test_roundings_too_close_for_floats_are_decided_exactly(sigma, distance):
    # An offset within a few units of 2^-64 of a half-integer after scaling.
    with mpmath.workdps(60):
        half = mpmath.floor(mpmath.mpf("0.4") * sigma) + mpmath.mpf("0.5")
        offset = int(mpmath.floor(half / sigma * WORD)) + distance
    check_candidate(sigma, 0, offset, 0)


def test_an_undecided_candidate_draws_more_bits_of_the_same_number():
    # The offset word ends exactly below a half-integer: the next word decides. σ = 3, half = 1.5.
    law = RoundedGaussian(sigma=3.0)
    below = WORD // 2 - 1  # 3·x in [1.5 - 3·2^-64, 1.5)
    slabs, offsets, coins = (np.array([word], dtype=np.uint64) for word in (0, below, 0))
    magnitude, accepted = law._candidates(slabs, offsets, coins, Replay(5))
    assert accepted.tolist() == [True]
    assert magnitude.tolist() == [1]


@pytest.mark.parametrize(("more", "rounded"), [(0, 1), (WORD - 1, 2)])
def test_the_next_word_may_decide_either_way(more, rounded):
    # σ = 5, half = 1.5: the offset ends within a unit of 0.3, which no word can write down.
    arrays = [np.array([word], dtype=np.uint64) for word in (0, 3 * WORD // 10, 0)]
    magnitude, accepted = RoundedGaussian(sigma=5.0)._candidates(*arrays, Replay(more))
    assert accepted.tolist() == [True]
    assert magnitude.tolist() == [rounded]


@pytest.mark.parametrize("sigma", [0.5, 3.0])
@pytest.mark.parametrize("tilt", [-1.5, -0.2, 0.7])
def test_moments_are_bounded_to_within_half_of_the_tilt(sigma, tilt):
    law, z = RoundedGaussian(sigma=sigma), np.arange(-60, 61)
    real = math.log(float(law.pmf(z) @ np.exp(tilt * z)))
    assert real <= law.log_moment(tilt) <= real + abs(tilt) / 2


@pytest.mark.parametrize("k", range(5))
def test_a_tied_slab_draws_another_word(k):
    law = RoundedGaussian(sigma=1e6)
    edge = int(_slab_table()[k])
    arrays = [np.array([word], dtype=np.uint64) for word in (edge, WORD // 3, 0)]
    low, _ = law._candidates(*arrays, Replay(0))
    high, _ = law._candidates(*arrays, Replay(WORD - 1))
    assert k * 1e6 <= low[0] < (k + 1) * 1e6 <= high[0] < (k + 2) * 1e6


@pytest.mark.parametrize(("k", "slab"), [(0, 0), (1, WORD * 7 // 10), (2, WORD * 95 // 100)])
def test_a_tied_coin_draws_more_bits_of_offset_and_coin(k, slab):
    offset = WORD // 3 + 1
    with mpmath.workdps(60):
        x = mpmath.mpf(offset) / WORD
        coin = int(mpmath.floor(mpmath.exp(-x * (2 * k + x) / 2) * WORD))
    arrays = [np.array([word], dtype=np.uint64) for word in (slab, offset, coin)]
    for more, expected in (((0, 0), True), ((0, WORD - 1), False)):
        _, accepted = RoundedGaussian(sigma=1e6)._candidates(*arrays, Replay(*more))
        assert accepted.tolist() == [expected]


@pytest.mark.parametrize("digits", [2, 3, 4, 6, 30])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_slab_probabilities_are_enclosed_at_every_precision(k, digits):
    low, high = _below_slab(k)._bounds(digits)
    with mpmath.workdps(80):
        weights = [mpmath.exp(-(mpmath.mpf(j) ** 2) / 2) for j in range(40)]
        truth = mpmath.fsum(weights[: k + 1]) / mpmath.fsum(weights)
        assert mpmath.mpf(low.numerator) / low.denominator < truth
        assert truth < mpmath.mpf(high.numerator) / high.denominator


@pytest.mark.parametrize(("more", "slab"), [(0, 9), (WORD - 2**40, 10)])
def test_the_last_slab_leaves_nothing_unassigned(more, slab):
    """The last word of all is tied, too: the next one says where it falls."""
    law = RoundedGaussian(sigma=1.0)
    arrays = [np.array([word], dtype=np.uint64) for word in (WORD - 1, 0, 0)]
    magnitude, accepted = law._candidates(*arrays, Replay(more))
    assert accepted.tolist() == [True]
    assert magnitude.tolist() == [slab]
