"""Fixed-point integers: rounding, exact clipping, exact products.

A privacy proof speaks about the numbers that the machine adds. Here they are integers, so sums do
not depend on the order of rows, on chunking or on the number of workers, and a norm bound holds
exactly. Everything is row by row, to the bit: a row gives the same integers alone or in any batch.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _validate
from discreet._typing import Integers
from discreet.errors import InvalidInput

# float64 holds every integer up to 2^53, so a product of integer matrices whose partial sums stay
# within it is exact in any order of summation.
_EXACT_FLOAT = 2**53
_LARGEST_SQUARED_NORM = 2**62
_MOST_BITS = 900


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """The grid of multiples of 2^-bits. One lattice unit is one step of it.

    Attributes:
        bits: from -900 to 900. Negative bits are a grid coarser than the whole numbers.
    """

    bits: int

    def __post_init__(self) -> None:
        bits = _validate.whole("bits", self.bits, at_least=-_MOST_BITS, at_most=_MOST_BITS)
        object.__setattr__(self, "bits", bits)

    @classmethod
    def for_norm(cls, norm: float, *, resolution: int) -> "Lattice":
        """Return the finest lattice on which a (public) norm is at most 2^resolution units.

        Args:
            norm: above 0.
            resolution: how many bits the norm may have.

        Returns:
            The lattice.

        Raises:
            InvalidInput: if the norm is no finite number above 0, or there is no such lattice.
        """
        norm = _validate.real("norm", norm, above=0)
        mantissa, exponent = math.frexp(norm)
        return cls(bits=resolution - exponent + (mantissa == 0.5))

    @property
    def step(self) -> float:
        """The distance between neighbouring grid points, a power of two."""
        return 2.0**-self.bits

    def units(self, length: float) -> int:
        """Return how many whole lattice units fit into a (public) length, exactly.

        Args:
            length: at least 0.

        Returns:
            ⌊length·2^bits⌋.

        Raises:
            InvalidInput: if the length is no finite number of at least 0.
        """
        length = _validate.real("length", length, at_least=0)
        return math.floor(Fraction(length) * Fraction(2) ** self.bits)

    def round(self, values: ArrayLike) -> Integers:
        """Return the nearest grid point of each value, in lattice units (ties to even).

        Args:
            values: finite real numbers, any shape.

        Returns:
            Integers, of the same shape.

        Raises:
            InvalidInput: if a value is not finite, or does not fit.
        """
        scaled = np.ldexp(_finite("values", values), self.bits)
        if np.any(np.abs(scaled) > 2.0**62):
            raise InvalidInput(f"Expected values to fit a lattice of bits={self.bits}.")
        return np.rint(scaled).astype(np.int64)

    def to_real(self, integers: ArrayLike) -> NDArray[np.float64]:
        """Return the real numbers that lattice units stand for.

        Args:
            integers: lattice units, any shape.

        Returns:
            Real numbers, of the same shape.

        Raises:
            InvalidInput: if these are no finite numbers.
        """
        return np.ldexp(_finite("integers", integers), -self.bits)

    def clip_rows(self, rows: ArrayLike, *, norm: float) -> Integers:
        """Round rows to the grid so that the L2 norm of each integer row is at most `norm`.

        Args:
            rows: real numbers, shape (..., d); any finite size.
            norm: the public bound, in real units.

        Returns:
            Integers, shape (..., d), with Σ z² ≤ ⌊norm·2^bits⌋² exactly.

        Raises:
            InvalidInput: if a number is not finite, or the norm does not fit the lattice.
        """
        values = _finite("rows", rows)
        if values.ndim < 1:
            _validate.reject("rows.ndim", values.ndim, "at least 1")
        radius = self.units(_validate.real("norm", norm, above=0))
        room = _coordinate_limit(values.shape[-1]).bit_length() - 1  # coordinates up to 2^room fit
        if not 1 <= radius <= 2 ** (room - 1):
            _validate.reject(
                "norm", norm, f"1 to 2^{room - 1} units of a lattice of {self.bits} bits"
            )
        # A row too large for int64 is first halved as often as needed: it keeps its direction. The
        # same is done with all rows, so that the time it takes does not tell whether there is one.
        largest = np.max(np.abs(values), axis=-1, keepdims=True, initial=0.0)
        halvings = np.maximum(np.frexp(largest)[1] + self.bits - room, 0)
        scaled = np.ldexp(values, self.bits - halvings)
        return _shrink_long_rows(np.rint(scaled).astype(np.int64), radius)


def clip_integer_rows(rows: Integers, *, radius: int) -> Integers:
    """Shrink each integer row whose L2 norm exceeds `radius`; rows within it stay as they are.

    The result has Σ z² ≤ radius² exactly: the factor is radius/‖z‖ less 2^-48, which is more than
    its four roundings of 2^-53 can add, and cutting towards zero only shrinks.

    Args:
        rows: integers, shape (..., d), with d·max(z²) ≤ 2^62.
        radius: the public bound, in lattice units.

    Returns:
        Integers, of the same shape: a copy.

    Raises:
        InvalidInput: if these are no int64, or too large.
    """
    radius = _validate.whole("radius", radius, at_least=0, at_most=2**31)
    _int64("rows", rows)
    limit = _coordinate_limit(rows.shape[-1])
    if np.any(rows > limit) or np.any(rows < -limit):
        raise InvalidInput(f"Expected the coordinates of rows to be at most {limit} in magnitude.")
    return _shrink_long_rows(rows.copy(), radius)


def _shrink_long_rows(rows: Integers, radius: int) -> Integers:
    """Do what `clip_integer_rows` does, in place, for rows that are known to fit."""
    squared = np.einsum("...i,...i->...", rows, rows)
    long = squared > radius**2
    factor = radius / np.sqrt(squared[long].astype(np.float64)) * (1 - 2.0**-48)
    rows[long] = np.trunc(rows[long] * factor[:, None]).astype(np.int64)
    return rows


def exact_product(
    left: NDArray[np.generic],
    right: NDArray[np.generic],
    *,
    left_bound: int,
    right_bound: int,
) -> Integers:
    """Return the matrix product of two integer-valued matrices, exactly, as int64.

    Each entry is a sum of n terms; they are added by float64 BLAS in chunks of so few terms that
    Σ|a·b| ≤ left_bound·right_bound·chunk ≤ 2^53 before anything is multiplied, and the chunks are
    added in int64 with an overflow check.

    Args:
        left: shape (m, n), integers stored as float64 or as any integer type.
        right: shape (n, c), likewise.
        left_bound: public bound on the magnitude of the entries of `left`.
        right_bound: public bound on the magnitude of the entries of `right`.

    Returns:
        Integers, shape (m, c).

    Raises:
        InvalidInput: if shapes do not match, an entry is no integer or exceeds its bound, or the
            product does not fit.
    """
    _validate.instance("left", left, np.ndarray)
    _validate.instance("right", right, np.ndarray)
    term = _validate.whole("left_bound", left_bound, at_least=1) * _validate.whole(
        "right_bound", right_bound, at_least=1
    )
    if term > _EXACT_FLOAT:
        _validate.reject("left_bound * right_bound", term, "at most 2^53")
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        # The shapes themselves are not shown: n may be the number of private rows.
        raise InvalidInput("Expected left and right to have shapes (m, n) and (n, c).")
    chunk = _EXACT_FLOAT // term
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.int64)
    for start in range(0, left.shape[1], chunk):
        a = _integers_as_floats("left", left[:, start : start + chunk], left_bound)
        b = _integers_as_floats("right", right[start : start + chunk], right_bound)
        total = checked_add(total, (a @ b).astype(np.int64))
    return total


def checked_add(left: Integers, right: Integers) -> Integers:
    """Return the elementwise sum of int64 arrays, if none of them would wrap.

    Args:
        left: any shape.
        right: of the same shape.

    Returns:
        Integers, of the same shape.

    Raises:
        InvalidInput: if a sum does not fit int64, or these are no int64 of one shape.
    """
    _int64("left", left)
    _int64("right", right)
    if left.shape != right.shape:
        _validate.reject("right.shape", right.shape, f"that of left, {left.shape}")
    total = left + right
    if np.any(((left ^ total) & (right ^ total)) < 0):  # both summands have the other sign
        raise InvalidInput("Expected the exact sums to fit int64: use a coarser lattice.")
    return total


def _coordinate_limit(width: int) -> int:
    """Return the largest coordinate whose square, `width` times, still fits 2^62."""
    return math.isqrt(_LARGEST_SQUARED_NORM // max(width, 1))


def _int64(name: str, values: Integers) -> None:
    _validate.instance(name, values, np.ndarray)
    if values.dtype != np.int64:
        _validate.reject(f"{name}.dtype", values.dtype, "int64")


def _finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as float64 if all of them are finite real numbers."""
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        _validate.reject(f"{name}.dtype", array.dtype, "real numbers")
    array = array.astype(np.float64, copy=False)
    if not np.all(np.isfinite(array)):
        raise InvalidInput(f"Expected {name} to have no NaN and no infinity.")
    return array


def _integers_as_floats(name: str, values: NDArray[np.generic], bound: int) -> NDArray[np.float64]:
    """Return `values` as float64 if they are integers within ±bound."""
    # Compared before they are converted: 2^53 + 1 would become 2^53.
    fits = values.dtype.kind in "iufb" and bool(
        np.all(np.less_equal(values, bound) & np.greater_equal(values, -bound))
    )
    floats = values.astype(np.float64, copy=False) if fits else np.empty(0)
    if not fits or not np.all(floats == np.rint(floats)):
        raise InvalidInput(f"Expected {name} to hold integers between -{bound} and {bound}.")
    return floats
