"""Rows that anybody may see, and points among them that stand for all of them."""

import hashlib
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput

# One row in so many is kept back, to see how well the others stand for it; not more than so many.
_HELD_BACK, _MOST_HELD_BACK = 4, 500

_FEWEST = 8

# Their squares are within float64, whatever the bound on keys is.
_LARGEST = 1e100

_GOLDEN = (5**0.5 - 1) / 2

# Points are found among so many rows at most, in so many rounds of k-means.
_MOST_ROWS, _ROUNDS = 20_000, 10
_DISTANCES_AT_ONCE = 2**22


class PublicRows:
    """Public rows that look like the private keys. Nothing private may go into them, ever.

    Equal if all their numbers are. Nobody may change the array afterwards.

    Attributes:
        rows: shape (n, d).
    """

    def __init__(self, rows: ArrayLike) -> None:
        try:
            given = np.asarray(rows)
        except ValueError:  # rows of several lengths
            given = np.empty(0, dtype=object)
        if given.dtype.kind not in "iuf":
            _validate.reject("public_rows.dtype", str(given.dtype), "real numbers")
        self.rows: Floats = np.array(given, dtype=np.float64, order="C")
        if self.rows.ndim != 2 or len(self.rows) < _FEWEST or self.rows.shape[1] == 0:
            _validate.reject("public_rows", self.rows.shape, f"shape (n, d) with n >= {_FEWEST}")
        if not np.all(np.abs(self.rows) <= _LARGEST):
            raise InvalidInput(f"Expected public_rows to have numbers up to {_LARGEST:g}, no NaN.")
        self.rows.flags.writeable = False

    @property
    def dim(self) -> int:
        """The width d."""
        return int(self.rows.shape[1])

    @cached_property
    def digest(self) -> str:
        """A hash of all numbers."""
        return hashlib.sha256(repr(self.rows.shape).encode() + self.rows.tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicRows) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<PublicRows {self.rows.shape}>"

    @cached_property
    def mixed(self) -> Floats:
        """All rows in an order in which any stretch of them is like the whole.

        Multiples of the golden ratio, less whole numbers, fill the interval from 0 to 1 evenly, and
        keep no step with an order or a period that the rows have.
        """
        places = (np.arange(len(self.rows)) * _GOLDEN) % 1.0
        return np.asarray(self.rows[np.argsort(places, kind="stable")])

    @property
    def _held_back(self) -> int:
        return min(len(self.rows) // _HELD_BACK, _MOST_HELD_BACK)

    @property
    def held_back(self) -> Floats:
        """Rows that no point is made of: they tell how good the points are."""
        return self.mixed[: self._held_back]

    @lru_cache(maxsize=4)  # noqa: B019 (kept as long as a few others are)
    def points(self, count: int) -> Floats:
        """Return at most so many points that stand for the rows that are not kept back.

        All of them if they are few, else the centres of as many clusters. Found in floating point:
        another machine may find others in the last bit, so whoever uses them keeps them.
        """
        rows = self.mixed[self._held_back :][:_MOST_ROWS]
        if len(rows) <= count:
            return rows
        centres = rows[:count].copy()
        for _ in range(_ROUNDS):
            nearest = _nearest(rows, centres)
            order = np.argsort(nearest, kind="stable")
            present, first = np.unique(nearest[order], return_index=True)
            sums = np.add.reduceat(rows[order], first, axis=0)
            centres[present] = sums / np.diff([*first, len(rows)])[:, None]
        return centres


def _nearest(rows: Floats, centres: Floats) -> Integers:
    """Return which centre is nearest to each row, a few rows at a time."""
    step = max(_DISTANCES_AT_ONCE // len(centres), 1)
    half = np.sum(centres * centres, axis=1) / 2
    return np.concatenate(
        [
            np.argmin(half - rows[start : start + step] @ centres.T, axis=1)
            for start in range(0, len(rows), step)
        ]
    )
