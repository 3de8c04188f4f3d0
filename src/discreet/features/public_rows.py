"""Public rows, points that stand for them, and the public integers that landmarks are made of."""

import hashlib
from dataclasses import dataclass
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

MOST_LANDMARKS = 2000

# A memory is read near so many of a caller's points at the most.
MOST_POINTS = 1536

# With entries of the matrix up to 2^22, those of the table of exp up to 2^20, and 2,000 of them, a
# feature is a sum below 2^53.
_MATRIX_BITS = 22

# Powers of two within this stay far within float64, whatever they multiply.
_MOST_EXPONENT = 200

# Directions whose eigenvalue, of a Gram matrix with ones on its diagonal, is below this fade out:
# they would be rounding errors.
_RIDGE = 1e-4


class PublicRows:
    """Public rows that look like the private keys. Nothing private may go into them, ever.

    Equal if all their numbers are. Nobody may change the array afterwards.

    Args:
        rows: shape (n, d).
        name: the argument that they came by, for messages.

    Attributes:
        rows: shape (n, d).
    """

    def __init__(self, rows: ArrayLike, *, name: str = "public_rows") -> None:
        try:
            given = np.asarray(rows)
        except ValueError:  # rows of several lengths
            given = np.empty(0, dtype=object)
        if given.dtype.kind not in "iuf":
            _validate.reject(f"{name}.dtype", str(given.dtype), "real numbers")
        self.rows: Floats = np.array(given, dtype=np.float64, order="C")
        if self.rows.ndim != 2 or len(self.rows) < _FEWEST or self.rows.shape[1] == 0:
            _validate.reject(name, self.rows.shape, f"shape (n, d) with n >= {_FEWEST}")
        if not np.all(np.abs(self.rows) <= _LARGEST):
            raise InvalidInput(f"Expected {name} to have numbers up to {_LARGEST:g}, no NaN.")
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

        Args:
            count: the most to return.

        Returns:
            Shape (at most count, d).
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


@dataclass(frozen=True, eq=False)
class IntegerLandmarks:
    """Landmarks and the matrix that makes features of their g_i: public integers.

    Attributes:
        points: in units of a lattice of 2^-20 of the keys' norm bound, shape (m, d).
        matrix: shape (r, m); each row in units of a power of two of its own.
        exponents: of those powers, shape (r,): real = matrix·2^-exponents.
        kept: some of the public rows that no landmark was made of, in units of the same lattice:
            they tell what answers will be like, and do nothing else.
    """

    points: Integers
    matrix: Integers
    exponents: Integers
    kept: Integers

    def __post_init__(self) -> None:
        for array in self.integers:  # what was checked stays as it was
            array.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntegerLandmarks) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self.integers, other.integers, strict=True)
        )

    def __hash__(self) -> int:
        return hash(self.points.tobytes())

    def check(self, dim: int, radius: int) -> None:
        """Raise `InvalidInput` unless all products with them are exact.

        Args:
            dim: width of keys.
            radius: the keys' norm bound, in units of the lattice of points.
        """
        points, matrix, exponents, kept = self.integers
        fits = (
            points.ndim == matrix.ndim == kept.ndim == 2
            and points.shape[1] == kept.shape[1] == dim
            and 1 <= len(points) <= MOST_LANDMARKS
            and 1 <= len(matrix) <= MOST_LANDMARKS
            and len(kept) >= 2
            and matrix.shape[1] == len(points)
            and exponents.shape == (len(matrix),)
            and _within(matrix, 2**_MATRIX_BITS)
            and _within(exponents, _MOST_EXPONENT)
            and _within(points, radius)
            and _within(kept, radius)
            # Of numbers that are small enough to be squared.
            and bool(np.all(lengths(points) <= radius * (1 + 1e-9)))
        )
        if not fits:
            _validate.reject("stored", "...", "integers whose products are exact")

    @property
    def integers(self) -> tuple[Integers, ...]:
        """All of them, in the order of the attributes."""
        return self.points, self.matrix, self.exponents, self.kept


def whitened(
    points: Integers, kept: Integers, *, real: Floats, tops: Floats, logit: float
) -> IntegerLandmarks:
    """Return landmarks with the matrix that makes features of their g_i.

    Each g_i is divided by its largest value, which is e^top; with ones on the diagonal, G is
    e^(-‖z_i - z_j‖²/2).

    Args:
        points: in lattice units.
        kept: public rows to keep, likewise.
        real: the points z_i, of length √t at most, shape (m, d).
        tops: the largest logit that any key has with each, shape (m,).
        logit: t, the largest of all.
    """
    half = np.sum(real * real, axis=1) / 2
    gram = np.exp(np.minimum(real @ real.T - half[:, None] - half, 0.0))
    values, vectors = np.linalg.eigh(gram)
    divisors = np.sqrt(np.maximum(values, 0.0) + _RIDGE)
    rows = (vectors / divisors).T * np.exp(tops - half - logit / 2)
    rows = rows[::-1]  # the directions that most rows share come first
    exponents = _MATRIX_BITS - np.frexp(np.max(np.abs(rows), axis=1))[1]
    matrix = np.rint(np.ldexp(rows, exponents[:, None])).astype(np.int64, order="C")
    return IntegerLandmarks(points, matrix, exponents.astype(np.int64), kept)


def lengths(points: Integers) -> Floats:
    """Return the L2 norm of each.

    Args:
        points: shape (n, d).
    """
    return np.asarray(np.sqrt(np.sum(points.astype(np.float64) ** 2, axis=1)))


def _within(integers: Integers, limit: int) -> bool:
    """Return whether all are between plus and minus the limit (numpy's |-2^63| is negative)."""
    return bool(np.all((integers >= -limit) & (integers <= limit)))
