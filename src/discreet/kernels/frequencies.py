"""Public random frequencies, the same to the bit on every machine.

Rows of a normal matrix, made orthogonal in blocks of d (Yu et al., NeurIPS 2016), which lowers the
variance of the kernel. Linear algebra libraries differ in the last bits, so everything that adds
numbers up is done on integers here, in any order with the same result.
"""

import hashlib
from functools import lru_cache

import numpy as np
from scipy import special

from discreet._typing import Floats

_BITS = 24


@lru_cache(maxsize=16)
def normal_frequencies(dim: int, count: int, seed: int) -> Floats:
    """Return `count` frequencies, shape (count, dim): each normal, orthogonal within a block."""
    blocks, size = -(-count // dim), min(dim, count)
    drawn = public_normals(f"discreet frequencies {seed}", 2 * blocks * size * dim)
    # Rounded, so that a last bit of the quantile function does not matter.
    normal = np.rint(drawn * 2.0**20).reshape(2, blocks, size, dim)
    directions = _orthonormal(normal[0])
    squared = np.sum(normal[1].astype(np.int64) ** 2, axis=-1)
    lengths = np.sqrt(squared.astype(np.float64)) * 2.0 ** -(20 + _BITS)
    rows: Floats = (directions * lengths[..., None]).reshape(-1, dim)[:count]
    rows.flags.writeable = False
    return rows


def public_normals(text: str, count: int) -> Floats:
    """Return so many normal numbers that anybody can draw again, shape (count,).

    A hash of the text is the same everywhere and for ever. (This is no noise: it hides nothing.)
    """
    words = np.frombuffer(hashlib.shake_256(text.encode()).digest(8 * count), dtype="<u8")
    uniform = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return np.asarray(special.ndtri(uniform))


def _orthonormal(rows: Floats) -> Floats:
    """Return integer rows of length about 2^24, orthogonal within each block.

    Gram-Schmidt, twice for each row. Every product and sum is of integers that stay below 2^53.

    Args:
        rows: integers, shape (blocks, size, dim).
    """
    basis = np.zeros_like(rows)
    for index in range(rows.shape[1]):
        row = _normalised(rows[:, index])
        before = basis[:, :index]
        for _ in range(2):
            shares = np.rint(np.matmul(before, row[:, :, None]) * 2.0**-_BITS)
            along = np.matmul(before.swapaxes(1, 2), shares)[:, :, 0]
            row = _normalised(np.rint(row - along * 2.0**-_BITS))
        basis[:, index] = row
    return basis


def _normalised(rows: Floats) -> Floats:
    """Return integer rows of length about 2^24 in the same directions."""
    squared = np.sum(rows.astype(np.int64) ** 2, axis=1).astype(np.float64)
    factors = 2.0**_BITS / np.sqrt(np.maximum(squared, 1.0))
    return np.asarray(np.rint(rows * factors[:, None]))
