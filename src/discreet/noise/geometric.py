"""Exact geometric draws, digit by digit.

If Pr[G = k] ∝ e^(-rate·k) on k = 0, 1, 2, ..., the binary digits of G are independent, and digit j
is one with probability 1/(1 + e^(rate·2^j)): the weight e^(-rate·k) is a product over the digits of
k. So a draw is a handful of coins with fixed probabilities, each compared with uniform bits. Using
only the digits below 2^J gives the law conditioned on G < 2^J.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet._typing import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.exact import Bounds, Probability, exp_bounds

# An unbounded draw has a digit above the stored ones with probability e^-45 < 2^-64.
_TAIL_EXPONENT = 45


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """Pr[G = k] ∝ exp(-rate·k) on 0 ≤ k ≤ limit (on all k ≥ 0 if limit is None)."""

    rate: Fraction
    limit: int | None

    @cached_property
    def _digits(self) -> tuple[Probability, ...]:
        """The probability of each stored binary digit, lowest first."""
        if self.limit is not None:
            count = self.limit.bit_length()
        else:
            count = int(_TAIL_EXPONENT / self.rate).bit_length()
        return tuple(_coin(self.rate * 2**position) for position in range(count))

    @cached_property
    def _beyond(self) -> Probability:
        """The probability that an unbounded draw has a digit above the stored ones."""
        exponent = -self.rate * 2 ** len(self._digits)
        return Probability(lambda digits: exp_bounds(exponent, digits))

    def batch(self, count: int, entropy: Entropy) -> Integers:
        """Return at most `count` draws; with a limit, more than half of `count` on average."""
        value = np.zeros(count, dtype=np.int64)
        for position, digit in enumerate(self._digits):
            ones = digit.exceeds(entropy.words(count), entropy)
            value |= ones.astype(np.int64) << position
        if self.limit is not None:
            return value[value <= self.limit]
        return value + self._overflow(count, entropy)

    def _overflow(self, count: int, entropy: Entropy) -> Integers:
        """Return the part of each unbounded draw above its stored digits.

        That part, in units of 2^J, is geometric too and independent of the digits below: it
        grows by one as long as a coin of probability exp(-rate·2^J) keeps showing heads.
        """
        rounds = np.zeros(count, dtype=np.int64)
        alive = np.arange(count)
        while alive.size:
            alive = alive[self._beyond.exceeds(entropy.words(alive.size), entropy)]
            rounds[alive] += 1
        return rounds << len(self._digits)


def _coin(exponent: Fraction) -> Probability:
    """Return the probability 1/(1 + e^exponent), as t/(1 + t) with t = e^-exponent."""

    def bounds(digits: int) -> Bounds:
        low, high = exp_bounds(-exponent, digits)
        return low / (1 + low), high / (1 + high)

    return Probability(bounds)
