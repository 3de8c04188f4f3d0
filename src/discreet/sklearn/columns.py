"""From the columns of a table to keys: public functions, frozen before any row is read.

A row becomes the same key, to the bit, wherever it stands and whatever stands beside it: other rows
must not move when one is added. So nothing but sums, products, quotients and a table is used here;
powers and exponentials of whole arrays differ in the last bit from place to place.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.kernels.maps import NORMS
from discreet.sklearn.ranges import Ranges

# Amounts, counts and intensities begin at zero, and most of them are small: this power of their
# fraction spreads the small ones out. Columns that begin elsewhere are taken as they are.
_SKEW = 0.7
# The power is read from a table of so many steps, straight between them.
_STEPS = 2**12
# So many numbers are mapped at a time.
_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns with known ranges, as keys in the ball of radius one.

    Each column goes to [0, 1] (clipped), to the power `_SKEW` if its range begins at 0, then to
    [-1, 1], and is divided by √d.

    Attributes:
        ranges: public.
    """

    ranges: Ranges

    @property
    def norm(self) -> float:
        """The bound on keys."""
        return 1.0

    @property
    def alike(self) -> bool:
        """Whether all columns are of one kind, as the pixels of a picture are."""
        return self.ranges.alike

    def keys(self, rows: Floats) -> Floats:
        """Return rows (n, d) as keys (n, d), in the precision that they have."""
        keys = np.empty_like(rows, order="C")
        step = max(_AT_ONCE // rows.shape[1], 1)
        for start in range(0, len(rows), step):
            keys[start : start + step] = self._some(rows[start : start + step])
        return keys

    def _some(self, rows: Floats) -> Floats:
        numbers = self.ranges.fractions(rows)
        skewed = self.ranges.low == 0
        if np.any(skewed):
            numbers[:, skewed] = _spread(numbers[:, skewed])
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

    def keys(self, rows: Floats) -> Floats:
        """Return rows (n, d) themselves."""
        return rows


def _spread(fractions: Floats) -> Floats:
    """Return about fractions^`_SKEW`, for numbers from 0 to 1."""
    table = _powers()
    places = fractions * _STEPS
    below = np.minimum(places.astype(np.int64), _STEPS - 1)
    left = table[below]
    return np.asarray(left + (places - below) * (table[below + 1] - left))


@lru_cache(maxsize=1)
def _powers() -> Floats:
    return np.asarray((np.arange(_STEPS + 1) / _STEPS) ** _SKEW)
