"""Rows for tests."""

import numpy as np


def unit_rows(*shape: int, seed: int = 0) -> np.ndarray:
    """Return rows of length one in random directions."""
    rows = np.random.default_rng(seed).standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
