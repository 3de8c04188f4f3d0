"""What a memory approximates, computed plainly from the private rows. NOT PRIVATE."""

import numpy as np
from numpy.typing import ArrayLike

from discreet._typing import Floats


def attention_sums(
    queries: ArrayLike, keys: ArrayLike, values: ArrayLike, *, scale: float
) -> tuple[Floats, Floats]:
    """Return AV, shape (..., m, d_v), and D, shape (..., m), of exact attention.

    Args:
        queries: shape (..., m, d).
        keys: shape (..., n, d).
        values: shape (..., n, d_v).
        scale: logit = scale·⟨q, k⟩.
    """
    logits = scale * np.matmul(np.asarray(queries), np.swapaxes(np.asarray(keys), -1, -2))
    weights = np.exp(logits)
    return np.matmul(weights, np.asarray(values)), weights.sum(axis=-1)


def attention(queries: ArrayLike, keys: ArrayLike, values: ArrayLike, *, scale: float) -> Floats:
    """Return exact attention, softmax(scale·QKᵀ)·V, shape (..., m, d_v)."""
    logits = scale * np.matmul(np.asarray(queries), np.swapaxes(np.asarray(keys), -1, -2))
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(np.matmul(weights, np.asarray(values)) / weights.sum(-1, keepdims=True))
