"""The rounded Gaussian, drawn exactly.

A half-normal number Y is drawn as slab + offset: slab k = 0, 1, 2, ... with weight e^(-k²/2), and
offset X uniform in [0, 1), accepted with probability e^(-X(2k+X)/2); the weights multiply to
e^(-(k+X)²/2) (Karney, ACM TOMS 2016, Algorithm N, with its first two steps done by one table). No
step needs more than comparisons of uniform numbers with known reals, so float64 may decide all
those that are not close, and rational arithmetic decides the rest, on as many bits as it takes.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from discreet import _validate
from discreet._typing import Integers, Words
from discreet.noise.entropy import Entropy
from discreet.noise.exact import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    WORD_BITS,
    Bounds,
    IntegerLaw,
    Probability,
    Uniform,
    exp_bounds,
)

# float64 computes the acceptance probability with an error below 2^-45 (three roundings of an
# argument below 2^5, and an exponential good to a few ulps). The margin leaves a factor of 8,000.
_ACCEPTANCE_MARGIN = 2.0**-32

# σ·(k + X) in float64: X is cut to 53 bits (2^-53), k + X < 16 is rounded (2^-50), the product is
# rounded (2^-49 σ). Together below 2^-48 σ.
_ROUNDING_MARGIN = 2.0**-47

# An integer of any size, or an array of them.
_Whole = TypeVar("_Whole", int, NDArray[np.object_])

_ACCEPTED = 0.71  # √(π/2) / Σ_k e^(-k²/2), how many candidates survive


@dataclass(frozen=True, kw_only=True)
class RoundedGaussian(IntegerLaw):
    """The nearest integer to a normal number N(0, σ²).

    Rounding is post-processing: added to an integer vector of L2 sensitivity Δ it has exactly the
    (ε, δ) of the continuous Gaussian mechanism, `accounting.gaussian_epsilon(sigma=σ, ...)`.
    `docs/privacy.md`, "Rounded Gaussian".

    Attributes:
        sigma: σ before rounding, in lattice units, from 0.5 to 2^40.
    """

    sigma: float

    def __post_init__(self) -> None:
        sigma = _validate.real("sigma", self.sigma, at_least=SMALLEST_SCALE, at_most=LARGEST_SCALE)
        object.__setattr__(self, "sigma", sigma)

    def _batch(self, wanted: int, entropy: Entropy) -> Integers:
        count = int(wanted / _ACCEPTED) + 16
        slabs, offsets, coins = entropy.words(3 * count).reshape(3, count)
        magnitude, accepted = self._candidates(slabs, offsets, coins, entropy)
        magnitude = magnitude[accepted]
        sign = 1 - 2 * (entropy.words(len(magnitude)) & np.uint64(1)).astype(np.int64)
        return magnitude * sign

    def _candidates(
        self, slabs: Words, offsets: Words, coins: Words, entropy: Entropy
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """Return round(σ·Y) for each candidate, and whether the candidate is accepted."""
        table = _slab_table()
        slab = np.searchsorted(table, slabs, side="right")
        tied = table[np.minimum(np.maximum(slab - 1, 0), len(table) - 1)] == slabs
        # The first 53 bits of each word as a number in [0, 1), exactly.
        offset = (offsets >> np.uint64(11)).astype(np.float64) * 2.0**-53
        coin = (coins >> np.uint64(11)).astype(np.float64) * 2.0**-53
        density = np.exp(-0.5 * offset * (2 * slab + offset))
        accepted = coin < density
        unclear = tied | (np.abs(coin - density) < _ACCEPTANCE_MARGIN)

        scaled = self.sigma * (slab + offset)
        nearest = np.rint(scaled)
        magnitude = nearest.astype(np.int64)
        near_tie = 0.5 - np.abs(scaled - nearest) < self.sigma * _ROUNDING_MARGIN

        close = np.flatnonzero(accepted & near_tie & ~unclear)
        low, high = self._nearest(slab[close].astype(object), offsets[close].astype(object), 1)
        magnitude[close] = low
        for index in close[low != high]:
            x = Uniform(int(offsets[index]), entropy)
            magnitude[index] = self._round_exactly(int(slab[index]), x)
        for index in np.flatnonzero(unclear):
            k = _exact_slab(Uniform(int(slabs[index]), entropy))
            x = Uniform(int(offsets[index]), entropy)
            accepted[index] = _exactly_accepted(k, x, Uniform(int(coins[index]), entropy))
            magnitude[index] = self._round_exactly(k, x)
        return magnitude, accepted

    def _round_exactly(self, slab: int, offset: Uniform) -> int:
        """Return the integer nearest to σ·(slab + offset), with all the bits that it takes."""
        while True:
            low, high = self._nearest(slab, offset.value, offset.words)
            if low == high:
                return low
            offset.extend()

    def _nearest(self, slab: _Whole, offset: _Whole, words: int) -> tuple[_Whole, _Whole]:
        """Return ⌊σ·(slab + x) + ½⌋ for both ends of what is known of the offset x.

        Args:
            slab: as an integer of Python, or an array of such.
            offset: the words of x that have been drawn, likewise.
            words: how many there are.
        """
        numerator, denominator = self.sigma.as_integer_ratio()
        unit = 1 << (WORD_BITS * words)
        whole = 2 * denominator * unit
        twice = 2 * numerator * (slab * unit + offset) + denominator * unit
        return twice // whole, (twice + 2 * numerator) // whole

    @property
    def variance(self) -> float:
        """σ² + 1/12 + a correction that matters only for σ < 1 (Poisson summation, 20 terms)."""
        k = np.arange(1, 21)
        wave = np.where(k % 2, -1.0, 1.0) * np.exp(-2 * (math.pi * self.sigma * k) ** 2)
        correction = wave * (4 * self.sigma**2 + 1 / (math.pi * k) ** 2)
        return self.sigma**2 + 1 / 12 + float(correction.sum())

    @property
    def largest_tilt(self) -> float:
        """Every moment exists."""
        return math.inf

    def log_moment(self, tilt: float) -> float:
        """Return (tσ)²/2 + |t|/2: rounding moves a normal number by at most one half.

        Args:
            tilt: t, of any sign.
        """
        return 0.5 * (tilt * self.sigma) ** 2 + 0.5 * abs(tilt)

    def pmf(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return Φ((|z| + ½)/σ) - Φ((|z| - ½)/σ) for each of the given integers.

        Args:
            values: z, any shape.
        """
        z = np.abs(np.asarray(values, dtype=np.float64)) / self.sigma
        half = 0.5 / self.sigma
        if self.sigma > 1e3:
            # The difference of two nearly equal numbers; its series has error O(σ^-4).
            curvature = (z**2 - 1) * half**2 / 6
            density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
            return np.asarray(2 * half * density * (1 + curvature))
        return np.asarray(special.ndtr(-(z - half)) - special.ndtr(-(z + half)))


@cache
def _below_slab(k: int) -> Probability:
    """Pr[slab ≤ k] for weights e^(-j²/2), j ≥ 0."""

    def bounds(digits: int) -> Bounds:
        last = k + 2
        while last**2 < 5 * digits:  # e^(-last²/2) is then below 10^-digits
            last += 1
        weights = [exp_bounds(Fraction(-j * j, 2), digits) for j in range(last)]
        tail = 2 * exp_bounds(Fraction(-last * last, 2), digits)[1]
        low_head, high_head = (sum(w[side] for w in weights[: k + 1]) for side in (0, 1))
        low_rest, high_rest = (sum(w[side] for w in weights[k + 1 :]) for side in (0, 1))
        return (
            Fraction(low_head / (low_head + high_rest + tail)),
            Fraction(high_head / (high_head + low_rest)),
        )

    return Probability(bounds)


@cache
def _slab_table() -> Words:
    """The first 64 bits of Pr[slab ≤ k], up to the k that leaves nothing for the 64th bit."""
    floors = [_below_slab(k).floor(1) for k in range(16)]
    return np.array(sorted(set(floors)), dtype=np.uint64)


def _exact_slab(uniform: Uniform) -> int:
    """Return the slab that a uniform number falls into."""
    k = 0
    while not _below_slab(k).exceeds_one(uniform):
        k += 1
    return k


def _exactly_accepted(k: int, offset: Uniform, coin: Uniform) -> bool:
    """Return whether coin < e^(-offset·(2k + offset)/2), extending both until that is decided."""
    while True:
        near, far = offset.bounds
        low, _ = exp_bounds(-far * (2 * k + far) / 2, 20 * offset.words + 20)
        _, high = exp_bounds(-near * (2 * k + near) / 2, 20 * offset.words + 20)
        least, most = coin.bounds
        if most <= low:
            return True
        if least >= high:
            return False
        offset.extend()
        coin.extend()
