"""From labels and numbers to values with a known length, and back."""

import math
from dataclasses import dataclass

import numpy as np

from discreet._typing import Array, Floats
from discreet.readers.softmax import rows
from discreet.sklearn.ranges import Ranges


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
