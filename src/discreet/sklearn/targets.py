"""From labels and numbers to values with a known length, and back."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.readers.softmax import rows
from discreet.sklearn.ranges import Ranges

# Types of arrays of classes that a file names. Texts are as wide as the longest is.
_KEPT = frozenset(
    [
        *("bool", "object", "float16", "float32", "float64"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ]
)

# log₂ of what is left of a number without its exponent is looked up at so many steps, and between
# them it is a straight line: within 2e-9.
_STEPS = 2**14


class Labels(rows.Labels):
    """A public list of classes, as values."""

    @property
    def norm(self) -> float:
        """The length of every value: ‖e_c - 1/C‖ = √(1 - 1/C)."""
        return math.sqrt(1 - 1 / self.count)

    def values(self, labels: Array) -> Floats:
        """Return each label (n,) as e_c - 1/C, shape (n, C): one for its class, less the mean."""
        values = np.full((len(labels), self.count), -1 / self.count)
        values[np.arange(len(labels)), self.places(labels)] += 1
        return values

    def to_json(self) -> dict[str, object]:
        """Return what a file keeps."""
        name = self.classes.dtype.name
        return {"classes": self.classes.tolist(), "dtype": name if name in _KEPT else None}

    def of_dtype(self, name: str | None) -> "Labels":
        """Return the same classes in an array of another type, as `to_json` says it.

        Args:
            name: of the type; None for numpy's own choice, and for files that do not say it.
        """
        if name is None:
            return self
        typed = self.classes.astype(name) if name in _KEPT else None
        if typed is None or _with_types(typed) != _with_types(self.classes):
            _validate.reject_argument("dtype", name, "a type that holds the classes")
        return Labels(typed)


def _with_types(classes: Array) -> list[tuple[type, object]]:
    """Return classes as Python has them: 0 and False are equal, and not the same."""
    return [(type(each), each) for each in classes.tolist()]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Several labels of a row at once, each there or not.

    Attributes:
        count: k, how many there are.
    """

    count: int

    @property
    def norm(self) -> float:
        """The bound on values, √k."""
        return math.sqrt(self.count)

    def values(self, targets: Array) -> Floats:
        """Return indicators (n, k), 0 or 1, as they are."""
        return np.asarray(targets, dtype=np.float64)

    def to_json(self) -> dict[str, object]:
        """Return what a file keeps."""
        return {"labels": self.count}


@dataclass(frozen=True, eq=False)
class Targets:
    """Numbers in known ranges, as values in [-1, 1].

    Attributes:
        ranges: public, one for each of k outputs.
        single: whether targets have the shape (n,), not (n, k).
        log: whether values are even in the logarithm of one plus the distance from the low end: for
            counts and amounts.
    """

    ranges: Ranges
    single: bool
    log: bool = False

    @property
    def norm(self) -> float:
        """The bound on values, √k."""
        return math.sqrt(len(self.ranges.low))

    def values(self, targets: Floats) -> Floats:
        """Return targets, shape (n,) or (n, k), as values, shape (n, k)."""
        targets = targets.reshape(len(targets), -1)
        if self.log:
            return self._logarithms(targets) * 2 - 1
        values = self.ranges.fractions(targets) * 2 - 1
        values[:, self.ranges.low == self.ranges.high] = 0
        return values

    def _logarithms(self, targets: Floats) -> Floats:
        """Return log(1 + distance from the low end), as a share of the largest."""
        clipped = np.clip(targets.astype(np.float64), self.ranges.low, self.ranges.high)
        return np.minimum(logarithms(1.0 + (clipped - self.ranges.low)) / self._longest, 1.0)

    @property
    def _longest(self) -> Floats:
        """log₂(1 + width) of each range."""
        return logarithms(1.0 + (self.ranges.high - self.ranges.low))

    @property
    def half_width(self) -> Floats:
        """What one is worth in units of targets, shape (k,); with `log`, in natural logarithms."""
        if self.log:
            return np.asarray(self._longest * (math.log(2) / 2))
        return np.asarray((self.ranges.high - self.ranges.low) / 2)

    def numbers(self, values: Floats) -> Floats:
        """Return values (m, k) as targets, within their ranges, shape (m,) or (m, k)."""
        if not self.log:
            return self._shaped(self.ranges.numbers((values + 1) / 2))
        shares = np.clip((values + 1) / 2, 0.0, 1.0)
        numbers = self.ranges.low + np.exp2(shares * self._longest) - 1
        return self._shaped(np.minimum(numbers, self.ranges.high))

    def lengths(self, values: Floats, predicted: Floats) -> Floats:
        """Return distances between values (m, k) in units of targets, shape (m,) or (m, k).

        Args:
            values: distances.
            predicted: the targets that they are distances from, shape (m,) or (m, k).
        """
        if not self.log:
            return self._shaped(values * (self.ranges.high - self.ranges.low) / 2)
        # The slope of the way back: numbers grow with 1 + what they are above the low end.
        above = 1.0 + predicted.reshape(len(values), -1) - self.ranges.low
        return self._shaped(values * self._longest * (math.log(2) / 2) * above)

    def _shaped(self, numbers: Floats) -> Floats:
        return numbers[:, 0] if self.single else numbers

    def to_json(self) -> dict[str, object]:
        """Return what a file keeps."""
        return {
            "low": self.ranges.low.tolist(),
            "high": self.ranges.high.tolist(),
            "single": self.single,
            "log": self.log,
        }


def logarithms(numbers: Floats) -> Floats:
    """Return log₂ of numbers from one on: each by itself, to the bit.

    numpy's own gives other last bits in other places of an array. This takes the exponent apart,
    looks up the rest, and draws a straight line between two entries.

    Args:
        numbers: at least 1, any shape.
    """
    rests, exponents = np.frexp(numbers)
    steps = (rests * 2 - 1) * _STEPS
    below = np.minimum(np.floor(steps), _STEPS - 1)
    table = _logarithms()
    places = below.astype(np.int64)
    first, last = np.take(table, places), np.take(table, places + 1)
    return np.asarray(exponents - 1 + first + (last - first) * (steps - below))


@cache
def _logarithms() -> Floats:
    """log₂(1 + x) at each step, rounded to 40 bits: libraries may differ in the last."""
    exact = np.log2(1 + np.arange(_STEPS + 1) / _STEPS)
    table = np.asarray(np.ldexp(np.rint(np.ldexp(exact, 40)), -40))
    table.flags.writeable = False
    return table


def checked_indicators(y: Array) -> Floats:
    """Return several labels of each row as 0 and 1, shape (n, k), or raise `InvalidInput`."""
    if y.dtype.kind not in "biuf" or not np.all((y == 0) | (y == 1)):
        raise InvalidInput(
            "Expected several labels for each row to be 0 or 1, in one column for each label."
        )
    return np.asarray(y, dtype=np.float64)
