"""Linear maps of private rows, exact and row by row: no row's result depends on another row.

A float matrix product gives the same row other last bits in a batch of another shape, so dropping
one person would move the rows of others. Here rows and weights are whole numbers, and float64 adds
their products exactly in any order. Each row is rounded in units of its own largest number.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet._typing import Floats, Integers

# A row's largest number is so many bits long.
_ROW_BITS = 22

# Rows beyond 2^this are shortened to it: nothing made of them leaves float64.
_HUGE = 400

# Σ|weight| of one output is at most so many bits long: products add up to less than 2^53.
_WEIGHT_BITS = 30


@dataclass(frozen=True, eq=False)
class ExactLinear:
    """x ↦ W·x + b for private rows x, the same to the bit for a row wherever it stands.

    Attributes:
        weight: public, shape (out, in), float64.
        bias: public, shape (out,).
    """

    weight: Floats
    bias: Floats

    @cached_property
    def _bits(self) -> int:
        largest = float(np.max(np.sum(np.abs(self.weight), axis=1), initial=0.0))
        # Half a unit of rounding for each weight comes on top: far less than another bit.
        return _WEIGHT_BITS - int(np.frexp(largest)[1]) - 1 if largest else 0

    @cached_property
    def _integers(self) -> Floats:
        return np.ascontiguousarray(np.rint(np.ldexp(self.weight, self._bits)).T)

    def __call__(self, rows: Floats) -> Floats:
        """Return the images of finite rows of shape (n, in): (n, out), float64."""
        integers, exponents = _rounded(rows)
        # Exact in any order of summation: Σ|z·w| ≤ 2^22·2^30.
        products = integers @ self._integers
        return np.asarray(np.ldexp(products, exponents - _ROW_BITS - self._bits) + self.bias)


def normalised(rows: Floats, gain: Floats, epsilon: float) -> Floats:
    """Return gain·x/√(mean x² + epsilon) of each row of shape (n, d), row by row to the bit.

    The mean is over whole numbers, so that it does not depend on the order of summation.
    """
    integers, exponents = _rounded(rows)
    squares = np.sum(integers.astype(np.int64) ** 2, axis=1, keepdims=True)
    mean = np.ldexp(squares.astype(np.float64) / rows.shape[1], 2 * (exponents - _ROW_BITS))
    root = np.sqrt(mean + epsilon)
    real = np.ldexp(integers, exponents - _ROW_BITS)
    return np.asarray(real / np.where(root == 0, 1.0, root) * gain)


def _rounded(rows: Floats) -> tuple[Floats, Integers]:
    """Return rows as whole numbers up to 2^22, and the power of two that each is in units of.

    x ≈ integers·2^(exponent - 22), but for rows that are huge: they keep their direction.
    """
    exponents = np.frexp(np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0))[1]
    integers = np.rint(np.ldexp(rows, _ROW_BITS - exponents))
    return integers, np.clip(exponents, -_HUGE, _HUGE).astype(np.int64)
