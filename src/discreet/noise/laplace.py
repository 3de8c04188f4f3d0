"""Laplace laws on the integers: the whole line, and cut off at a bound.

Both are drawn as (is it zero?) × (sign) × (1 + geometric magnitude), exactly. And a geometric
number is drawn digit by digit: if Pr[G = k] ∝ e^(-rate·k) on k = 0, 1, 2, ..., the binary digits of
G are independent, and digit j is one with probability 1/(1 + e^(rate·2^j)), because the weight
e^(-rate·k) is a product over the digits of k. So a draw is a handful of coins with fixed
probabilities, each compared with uniform bits. Using only the digits below 2^J gives the law
conditioned on G < 2^J.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _validate
from discreet._typing import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.exact import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    Bounds,
    IntegerLaw,
    Probability,
    decimal_context,
    exp_bounds,
    to_decimal,
)

# Decimal digits for quantities that are computed once per law. The closed forms below divide by
# (1 - e^-rate)^3 ≥ 2^-120 and multiply by squares below 2^100: some 70 digits may cancel.
_DIGITS = 200

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


class _LaplaceLaw(IntegerLaw):
    """Pr[Z = z] ∝ exp(-rate·|z|) on |z| ≤ bound (on all integers if bound is None)."""

    @property
    def _rate(self) -> Fraction:
        raise NotImplementedError

    @property
    def _bound(self) -> int | None:
        raise NotImplementedError

    @cached_property
    def _magnitude(self) -> Geometric:
        """The law of |Z| - 1 given Z ≠ 0."""
        return Geometric(rate=self._rate, limit=None if self._bound is None else self._bound - 1)

    @cached_property
    def _nonzero(self) -> Probability:
        """Pr[Z ≠ 0] = w/(1 + w) with w = 2·Σ_{1≤z≤bound} q^z = 2q(1 - q^bound)/(1 - q)."""
        rate, bound = self._rate, self._bound

        def bounds(digits: int) -> Bounds:
            low, high = exp_bounds(-rate, digits)
            cut_low, cut_high = (
                (Fraction(0),) * 2 if bound is None else exp_bounds(-rate * bound, digits)
            )
            least = 2 * low * (1 - cut_high) / (1 - low)
            most = 2 * high * (1 - cut_low) / (1 - high)
            return least / (1 + least), most / (1 + most)

        return Probability(bounds)

    def _batch(self, wanted: int, entropy: Entropy) -> Integers:
        magnitude = 1 + self._magnitude.batch(wanted, entropy)
        nonzero = self._nonzero.exceeds(entropy.words(len(magnitude)), entropy)
        sign = 1 - 2 * (entropy.words(len(magnitude)) & np.uint64(1)).astype(np.int64)
        return magnitude * sign * nonzero

    def pmf(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each of the given integers.

        Args:
            values: integers, any shape.
        """
        distance = np.abs(np.asarray(values, dtype=np.float64))
        rate = float(self._rate)
        if self._bound is None:
            return math.tanh(rate / 2) * np.exp(-rate * distance)
        # Σ q^|z| over |z| ≤ B is (1 - q^(B+1) + q(1 - q^B))/(1 - q); expm1 keeps all its digits.
        total = -math.expm1(-rate * (self._bound + 1)) - math.exp(-rate) * math.expm1(
            -rate * self._bound
        )
        mass = -math.expm1(-rate) / total * np.exp(-rate * distance)
        return np.where(distance <= self._bound, mass, 0.0)

    @property
    def largest_tilt(self) -> float:
        """The rate at which the law falls."""
        return float(self._rate)

    def log_moment(self, tilt: float) -> float:
        """Return ln[(1 - q)²/((1 - q·e^t)(1 - q·e^-t))], infinite from the rate on.

        Exact on the whole line; an upper bound with cut-off tails, which lower E[cosh(tZ)].

        Args:
            tilt: t, of any sign.
        """
        rate = self.largest_tilt
        if abs(tilt) >= rate:
            return math.inf
        ends = math.expm1(tilt - rate) * math.expm1(-tilt - rate)
        return 2 * math.log(-math.expm1(-rate)) - math.log(ends)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(_LaplaceLaw):
    """Pr[Z = z] ∝ exp(-|z|/scale) on the integers.

    Added to an integer of sensitivity Δ (lattice units) it gives (Δ/scale, 0)-differential
    privacy. `docs/privacy.md`, "Discrete Laplace".

    Attributes:
        scale: in lattice units, from 0.5 to 2^40.
    """

    scale: float

    def __post_init__(self) -> None:
        scale = _validate.real("scale", self.scale, at_least=SMALLEST_SCALE, at_most=LARGEST_SCALE)
        object.__setattr__(self, "scale", scale)

    @property
    def _rate(self) -> Fraction:
        return 1 / Fraction(self.scale)

    @property
    def _bound(self) -> None:
        return None

    @property
    def variance(self) -> float:
        """2q/(1-q)² with q = e^(-1/scale), written so that nothing cancels."""
        return 0.5 / math.sinh(0.5 / self.scale) ** 2


@dataclass(frozen=True, kw_only=True)
class TruncatedLaplace(_LaplaceLaw):
    """Pr[Z = z] ∝ exp(-ε|z|/Δ) on the integers |z| ≤ bound; the paper's TLap(Δ, ε, δ).

    Added to an integer of sensitivity Δ it gives (ε, δ)-differential privacy, and the error never
    exceeds `bound`. `docs/privacy.md`, "Truncated Laplace"; continuous counterpart: Geng, Ding,
    Guo, Kumar (AISTATS 2020), Theorem 1.

    Attributes:
        sensitivity: Δ, a whole number of lattice units.
        epsilon: above 0 and at most 500. The scale Δ/ε must lie between 0.5 and 2^40.
        delta: the δ that was asked for, above 0 and below one half; `exact_delta` is what it costs.
    """

    sensitivity: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        sensitivity = _validate.whole("sensitivity", self.sensitivity, at_least=1)
        epsilon = _validate.real("epsilon", self.epsilon, above=0, at_most=500)
        delta = _validate.real("delta", self.delta, above=0, below=0.5)
        scale = Fraction(sensitivity) / Fraction(epsilon)
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            _validate.reject(
                "sensitivity/epsilon", f"{sensitivity}/{epsilon}", "a scale in [0.5, 2^40]"
            )
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    @property
    def _rate(self) -> Fraction:
        return Fraction(self.epsilon) / self.sensitivity

    @property
    def _bound(self) -> int:
        return self.bound

    @cached_property
    def bound(self) -> int:
        """The smallest B whose tail mass over Δ integers is at most δ.

        Pr[Z > B - Δ] ≤ δ is B + 1 ≥ (Δ/ε)·ln[(2 + (e^ε - 1)/δ)/(1 + e^(-ε/Δ))]; the right side is
        evaluated to 200 digits. Rounding the continuous formula down would break δ in half of the
        cases.
        """
        with localcontext(decimal_context(_DIGITS)) as context:
            rate = to_decimal(self._rate, context)
            growth = Decimal(self.epsilon).exp() - 1
            inside = (2 + growth / Decimal(self.delta)) / (1 + (-rate).exp())
            return math.ceil(inside.ln() / rate) - 1

    @cached_property
    def exact_delta(self) -> float:
        """The δ that this law really has at ε, Pr[Z > B - Δ]: at most `delta`, rounded up."""
        with localcontext(decimal_context(_DIGITS)) as context:
            rate = to_decimal(self._rate, context)
            edge = (-rate * (self.bound + 1)).exp()
            tail = edge * (Decimal(self.epsilon).exp() - 1) / (1 + (-rate).exp() - 2 * edge)
            return min(math.nextafter(float(tail), math.inf), self.delta)

    @cached_property
    def variance(self) -> float:
        """2·Σ_{z≤B} z²q^z / Σ_{|z|≤B} q^|z|, in closed form and to 200 digits before rounding."""
        with localcontext(decimal_context(_DIGITS)) as context:
            rate = to_decimal(self._rate, context)
            ratio, edge, bound = (-rate).exp(), (-rate * self.bound).exp(), Decimal(self.bound)
            squares = (
                1
                + ratio
                - (bound + 1) ** 2 * edge
                + (2 * bound**2 + 2 * bound - 1) * edge * ratio
                - bound**2 * edge * ratio**2
            )
            mass = 1 + ratio - 2 * edge * ratio
            return float(2 * ratio * squares / (mass * (1 - ratio) ** 2))
