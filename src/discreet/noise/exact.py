"""Exact draws: uniform numbers compared bit by bit with reals, and what every integer law offers.

A sampler is exact if every decision "is the uniform U below the real number p?" is taken as if
both had infinitely many digits. Here p is enclosed by rational bounds that can be made as narrow
as needed, and U starts as one 64-bit word and grows by a word whenever the bounds do not decide.
Nearly every decision is taken on the first word; nothing here trusts a floating-point function:
`decimal` rounds exp and ln correctly.
"""

import abc
import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _validate
from discreet._typing import Integers, Words
from discreet.noise.entropy import Entropy, SystemEntropy

Bounds = tuple[Fraction, Fraction]
WORD_BITS = 64

# Scales in lattice units. Below one half a law is almost a point mass and rounding dominates it;
# above 2^40 sums of a few thousand draws would leave int64 and float64's exact integers.
SMALLEST_SCALE = 0.5
LARGEST_SCALE = 2.0**40

# How many draws are made at a time: the working set then stays inside the processor's cache.
BATCH = 1 << 15

_MOST_DRAWS = 1 << 40


def decimal_context(digits: int) -> Context:
    """A decimal context of its own (no caller's context can change the result)."""
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def to_decimal(value: Fraction, context: Context) -> Decimal:
    """Return `value` rounded to the context: relative error at most 10^(1-prec)."""
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp_bounds(exponent: Fraction, digits: int) -> Bounds:
    """Return rationals below and above exp(exponent), for |exponent| < 10^6.

    With argument error |x|·10^(1-prec) and a correctly rounded exp, the relative error is at most
    (|x|·e + 1)·10^(1-prec); the slack below is larger, and about 10^-digits.
    """
    context = decimal_context(digits + 12)
    value = Fraction(to_decimal(exponent, context).exp(context))
    slack = value * (abs(exponent) + 1) / 10 ** (digits + 10)
    return value - slack, value + slack


class Probability:
    """An irrational number in (0, 1), given by bounds that narrow with the number of digits."""

    def __init__(self, bounds: Callable[[int], Bounds]) -> None:
        self._bounds = bounds
        self._floors: dict[int, int] = {}

    def floor(self, words: int) -> int:
        """Return ⌊p·2^(64·words)⌋, certified: both bounds must give the same integer."""
        if words not in self._floors:
            bits = digits = WORD_BITS * words
            low, high = self._bounds(digits)
            while int(low * 2**bits) != int(high * 2**bits):
                digits *= 2
                low, high = self._bounds(digits)
            self._floors[words] = int(low * 2**bits)  # two threads would write the same
        return self._floors[words]

    def exceeds(self, words: Words, entropy: Entropy) -> NDArray[np.bool_]:
        """Return, for each word, whether p exceeds the uniform number that starts with it.

        A Bernoulli(p) draw for each word, exactly: where the word equals the first 64 bits of p
        (once in 2^64) more bits of both are compared.
        """
        first = np.uint64(self.floor(1))
        below = words < first
        for index in np.flatnonzero(words == first):
            below[index] = self.exceeds_one(Uniform(int(words[index]), entropy))
        return below

    def exceeds_one(self, uniform: "Uniform") -> bool:
        """Return whether p exceeds `uniform`, which grows until that is decided."""
        while uniform.value == self.floor(uniform.words):
            uniform.extend()
        return uniform.value < self.floor(uniform.words)


class Uniform:
    """A uniform number in [0, 1) of which only the first words have been drawn so far."""

    def __init__(self, first_word: int, entropy: Entropy) -> None:
        self.value = first_word
        self.words = 1
        self._entropy = entropy

    def extend(self) -> None:
        """Draw the next 64 bits."""
        self.value = (self.value << WORD_BITS) | int(self._entropy.words(1)[0])
        self.words += 1

    @property
    def bounds(self) -> Bounds:
        """The interval that the number is known to lie in."""
        unit = 1 << (WORD_BITS * self.words)
        return Fraction(self.value, unit), Fraction(self.value + 1, unit)


class IntegerLaw(abc.ABC):
    """A symmetric law on the integers, for noise on a lattice."""

    def __getstate__(self) -> dict[str, object]:
        """Return the parameters; tables that samplers have made are made again where needed."""
        return {name: vars(self)[name] for name in self.__dataclass_fields__}  # type: ignore[attr-defined]

    def sample(self, size: int | tuple[int, ...], *, entropy: Entropy | None = None) -> Integers:
        """Return independent draws.

        Args:
            size: shape of the result.
            entropy: where the bits come from; by default a fresh `SystemEntropy`.

        Returns:
            Integers of that shape.

        Raises:
            InvalidInput: if the shape has a length that is no whole number, or asks for more than
                2^40 draws, or the source is no `Entropy`.
        """
        lengths = size if isinstance(size, tuple) else (size,)
        shape = [_validate.whole("size", length, at_least=0) for length in lengths]
        count = math.prod(shape)
        if count > _MOST_DRAWS:
            _validate.whole("size", count, at_least=0, at_most=_MOST_DRAWS)
        source = SystemEntropy() if entropy is None else entropy
        if not isinstance(source, Entropy):
            _validate.instance("entropy", source, Entropy)
        return source.realise(self._draw, count).reshape(shape)

    def _draw(self, count: int, entropy: Entropy) -> Integers:
        """Return `count` draws, made in batches from the candidates that `_batch` accepts."""
        drawn = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            wanted = min(count - done, BATCH)
            accepted = self._batch(wanted, entropy)[:wanted]
            drawn[done : done + len(accepted)] = accepted
            done += len(accepted)
        return drawn

    @abc.abstractmethod
    def _batch(self, wanted: int, entropy: Entropy) -> Integers:
        """Return some independent draws, usually about `wanted`; fewer or more are both fine.

        How many are returned must be independent of their values.
        """

    @property
    @abc.abstractmethod
    def variance(self) -> float:
        """The variance, in squared lattice units."""

    @abc.abstractmethod
    def pmf(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each of the given integers.

        Args:
            values: integers, any shape.

        Returns:
            Probabilities, of the same shape.
        """

    @property
    @abc.abstractmethod
    def largest_tilt(self) -> float:
        """The moment generating function exists for |tilt| below this."""

    @abc.abstractmethod
    def log_moment(self, tilt: float) -> float:
        """Return ln E[e^(tilt·Z)], or an upper bound on it: for Chernoff bounds on sums.

        Args:
            tilt: of any sign; the answer is infinite from `largest_tilt` on.

        Returns:
            A number of at least zero.
        """

    @property
    def total_variation(self) -> float:
        """Distance between this law and what `sample` draws, per draw.

        Zero: the samplers are exact. (A draw beyond ±2^62 would not fit; its probability is below
        exp(-2^21) at every allowed scale, far below the smallest float64.) A sampler with distance
        η over all its draws would cost (1 + e^ε)·η of δ; see `accounting.with_sampler_error`.
        """
        return 0.0
