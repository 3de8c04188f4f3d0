"""Points to measure with: spread evenly, and the same every time."""

import numpy as np
from numpy.typing import NDArray


def spread(rows: int, dim: int, *, start: float = 0.0) -> NDArray[np.float64]:
    """Return points spread evenly over [0, 1)^dim: an additive recurrence.

    Its steps are the powers of 1/x with x^(dim + 1) = x + 1, which for dim = 1 is the golden ratio.
    """
    x = 2.0
    for _ in range(60):
        x = (1 + x) ** (1 / (dim + 1))
    steps = x ** -np.arange(1.0, dim + 1)
    return np.asarray((start + np.arange(1, rows + 1)[:, None] * steps) % 1)
