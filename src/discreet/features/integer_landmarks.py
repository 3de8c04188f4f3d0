"""Landmarks as public integers, and the matrix that makes features of what keys have with them."""

from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Floats, Integers

MOST_LANDMARKS = 2000

# With entries of the matrix up to 2^22, those of the table of exp up to 2^20, and 2,000 of them, a
# feature is a sum below 2^53.
_MATRIX_BITS = 22

# Powers of two within this stay far within float64, whatever they multiply.
_MOST_EXPONENT = 200

# Directions whose eigenvalue, of a Gram matrix with ones on its diagonal, is below this fade out:
# they would be rounding errors.
_RIDGE = 1e-4


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
    """Return the L2 norm of each."""
    return np.asarray(np.sqrt(np.sum(points.astype(np.float64) ** 2, axis=1)))


def _within(integers: Integers, limit: int) -> bool:
    """Return whether all are between plus and minus the limit (numpy's |-2^63| is negative)."""
    return bool(np.all((integers >= -limit) & (integers <= limit)))
