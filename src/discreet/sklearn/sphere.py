"""Short keys on a sphere: one more coordinate makes them all as long as the longest may be."""

import numpy as np

from discreet._typing import Floats


def on_sphere(keys: Floats, norm: float) -> Floats:
    """Return keys x (n, d) as [x; √(norm² - ‖x‖²)], shape (n, d + 1), of length `norm`.

    A memory weighs rows by e^(scale·⟨q, k⟩), and its noise hides the longest key that there may be:
    on the sphere no row weighs less because it is short, and near means near. Keys that are
    longer than `norm` keep their length, and are clipped where they are used.

    Column by column, and in single precision whatever that of keys is, so that a row is the same to
    the bit wherever it stands, and whatever stands beside it.
    """
    squares = np.zeros(len(keys))
    for column in keys.T:
        squares += np.square(column, dtype=np.float64)
    last = np.sqrt(np.maximum(norm * norm - squares, 0.0))
    return np.concatenate([keys, last[:, None].astype(np.float32)], axis=1, dtype=keys.dtype)
