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
    # A hash is the same everywhere and for ever. (This is no noise: it hides nothing.)
    stream = hashlib.shake_256(f"discreet frequencies {seed}".encode())
    words = np.frombuffer(stream.digest(8 * 2 * blocks * size * dim), dtype="<u8")
    uniform = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    # Rounded, so that a last bit of the quantile function does not matter.
    normal = np.rint(special.ndtri(uniform) * 2.0**20).reshape(2, blocks, size, dim)
    directions = _orthonormal(normal[0])
    squared = np.sum(normal[1].astype(np.int64) ** 2, axis=-1)
    lengths = np.sqrt(squared.astype(np.float64)) * 2.0 ** -(20 + _BITS)
    rows: Floats = (directions * lengths[..., None]).reshape(-1, dim)[:count]
    rows.flags.writeable = False
    return rows


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
