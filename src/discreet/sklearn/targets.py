"""From labels and numbers to values with a known length, and back."""

import math
from dataclasses import dataclass

import numpy as np

from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.sklearn.ranges import Ranges


@dataclass(frozen=True, eq=False)
class Labels:
    """A public list of classes.

    Attributes:
        classes: distinct, in order, shape (C,); at least two.
    """

    classes: Array

    @classmethod
    def of(cls, labels: Array, *, distinct: bool) -> "Labels":
        """Return the classes among some labels; `distinct` if each must be there once."""
        found = _sorted(np.asarray(labels))[0]
        if distinct and len(found) != np.size(labels):
            raise InvalidInput("Expected classes to be distinct labels.")
        if len(found) < 2:
            raise InvalidInput("Expected at least two classes: with one class nothing is learnt.")
        return cls(found)

    @property
    def count(self) -> int:
        """The number of classes C."""
        return len(self.classes)

    @property
    def norm(self) -> float:
        """The length of every value: ‖e_c - 1/C‖ = √(1 - 1/C)."""
        return math.sqrt(1 - 1 / self.count)

    def values(self, labels: Array) -> Floats:
        """Return each label (n,) as e_c - 1/C, shape (n, C): one for its class, less the mean."""
        values = np.full((len(labels), self.count), -1 / self.count)
        values[np.arange(len(labels)), self._places(labels)] += 1
        return values

    def _places(self, labels: Array) -> Integers:
        """Return the place of each label among the classes, shape (n,)."""
        present, inverse = _sorted(labels)
        known = {label: place for place, label in enumerate(self.classes.tolist())}
        places = [known.get(label, -1) for label in present.tolist()]
        if -1 in places:
            raise InvalidInput("Expected every label of y to be one of classes.")
        return np.asarray(places, dtype=np.int64)[inverse]


@dataclass(frozen=True, eq=False)
class Targets:
    """Numbers in known ranges, as values in [-1, 1].

    Attributes:
        ranges: public, one for each of k outputs.
        single: whether targets have the shape (n,), not (n, k).
    """

    ranges: Ranges
    single: bool

    @property
    def norm(self) -> float:
        """The bound on values, √k."""
        return math.sqrt(len(self.ranges.low))

    def values(self, targets: Floats) -> Floats:
        """Return targets, shape (n,) or (n, k), as values, shape (n, k)."""
        values = self.ranges.fractions(targets.reshape(len(targets), -1)) * 2 - 1
        values[:, self.ranges.low == self.ranges.high] = 0
        return values

    def numbers(self, values: Floats) -> Floats:
        """Return values (m, k) as targets, within their ranges, shape (m,) or (m, k)."""
        return self._shaped(self.ranges.numbers((values + 1) / 2))

    def lengths(self, values: Floats) -> Floats:
        """Return distances between values (m, k) in units of targets, shape (m,) or (m, k)."""
        return self._shaped(values * (self.ranges.high - self.ranges.low) / 2)

    def _shaped(self, numbers: Floats) -> Floats:
        return numbers[:, 0] if self.single else numbers


def _sorted(labels: Array) -> tuple[Array, Integers]:
    """Return distinct labels in order, and which of them each is."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:  # numbers and texts, or none of both
        raise InvalidInput(
            "Expected labels to be of one kind: all numbers, or all texts."
        ) from None
