"""From the columns of a table to keys: public functions, frozen before any row is read.

A row becomes the same key, to the bit, wherever it stands and whatever stands beside it: other rows
must not move when one is added. So nothing but sums, products, quotients and roots is used here,
which are rounded correctly; powers and exponentials of whole arrays differ in the last bit from
place to place.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.features.base import NORMS
from discreet.sklearn.ranges import Ranges

# Amounts, counts and intensities begin at zero, and most of them are small: so much of the root of
# their fraction, and the rest of it as it is, spreads the small ones out (about as a power of 0.6,
# or 0.8, would). Less of it for pictures, whose pixels are often large, and for numbers: they may
# well be linear in what is predicted. Columns that begin elsewhere are taken as they are.
ROOT_FOR_CLASSES, ROOT_FOR_PICTURES, ROOT_FOR_NUMBERS = 2 / 3, 1 / 2, 1 / 3

# Keys are clipped to the ball, exactly; so much longer, all of them are, and only their direction
# is left.
_LONG = 2.0**20

# So many numbers are mapped at a time.
_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns with known ranges, as keys in the ball of radius one.

    Each column goes to [0, 1] (clipped), is spread out if its range begins at 0, then goes to
    [-1, 1], and is divided by √d.

    Attributes:
        ranges: public.
        root: how much small numbers of a range that begins at 0 are spread out, from 0 to 1.
        directions: whether keys are the directions of such rows, from the low end of the ranges:
            for pictures, of which some are brighter than others.
    """

    ranges: Ranges
    root: float = ROOT_FOR_CLASSES
    directions: bool = False

    @property
    def norm(self) -> float:
        """The bound on keys."""
        return 1.0

    @property
    def alike(self) -> bool:
        """Whether all columns are of one kind, as the pixels of a picture are."""
        return self.ranges.alike

    def keys(self, rows: Floats) -> Array:
        """Return rows (n, d) as keys (n, d), in single precision.

        Whatever precision rows have: one more row can change that of all others, and must not
        change their keys. It is finer than the lattice that keys are rounded to.
        """
        keys = np.empty(rows.shape, dtype=np.float32)
        step = max(_AT_ONCE // rows.shape[1], 1)
        for start in range(0, len(rows), step):
            keys[start : start + step] = self._some(rows[start : start + step])
        return keys

    def _some(self, rows: Floats) -> Floats:
        numbers = self.ranges.fractions(rows)
        skewed = self.ranges.low == 0
        if np.any(skewed):
            numbers[:, skewed] = _spread(numbers[:, skewed], self.root)
        if self.directions:
            return numbers * _LONG
        numbers *= 2
        numbers -= 1
        # One number only says nothing.
        numbers[:, self.ranges.low == self.ranges.high] = 0
        return numbers / math.sqrt(rows.shape[1])


@dataclass(frozen=True)
class Embeddings:
    """Rows with a known bound on their length: keys as they are.

    Attributes:
        norm: public bound on ‖row‖₂; longer rows are clipped where they are used.
    """

    norm: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", _validate.real("norm", self.norm, **NORMS))

    @property
    def alike(self) -> bool:
        """A direction is not a column: nothing sets one apart."""
        return True

    def keys(self, rows: Floats) -> Array:
        """Return rows (n, d) themselves."""
        return rows


def _spread(fractions: Floats, root: float) -> Floats:
    """Return fractions from 0 to 1, with the small ones spread out."""
    return np.asarray(fractions * (1 - root) + np.sqrt(fractions) * root)
