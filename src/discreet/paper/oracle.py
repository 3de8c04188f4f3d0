"""The truth that the structures approximate, written as plainly as the formulas. NOT PRIVATE.

For tests and comparisons by the owner of the data; nothing here adds noise.
"""

import numpy as np

from discreet._typing import Floats


def tree_sums(leaves: Floats, y: Floats, upper: float) -> tuple[Floats, Floats]:
    """Return Σ a_k left and right of the leaf that contains each y (`DPTree`)."""
    width = max(2, 1 << (len(leaves) - 1).bit_length())
    padded = np.concatenate([leaves, np.zeros(width - len(leaves))])
    own = np.minimum((y / upper * width).astype(int), width - 1)
    left = np.array([padded[:j].sum() for j in own])
    right = np.array([padded[j + 1 :].sum() for j in own])
    return left, right


def distance(x: Floats, weights: Floats, y: Floats, p: int) -> Floats:
    """Return Σ_i w_i·|y - x_i|^p for each y (`DPTreeDistance`)."""
    return np.array([np.sum(weights * np.abs(at - x) ** p) for at in y])


def high_dim_distance(X: Floats, weights: Floats, Y: Floats, p: int) -> Floats:  # noqa: N803
    """Return Σ_i w_i·‖y - x_i‖_p^p for each row y (`DPTreeHighDim`)."""
    return np.array([np.sum(weights * np.sum(np.abs(y - X) ** p, axis=1)) for y in Y])


def softmax_sum(X: Floats, weights: Floats, Y: Floats) -> Floats:  # noqa: N803
    """Return wᵀexp(Xy/d) for each row y (`DPTreeSoftmax`)."""
    return np.array([weights @ np.exp(X @ y / X.shape[1]) for y in Y])


def attention_sums(Q: Floats, K: Floats, V: Floats) -> tuple[Floats, Floats]:  # noqa: N803
    """Return AV and D for A_ij = exp(⟨Q_i, K_j⟩/d) (`DPCrossAttention.sums`)."""
    A = np.exp(Q @ K.T / K.shape[1])  # noqa: N806
    return A @ V, A.sum(axis=1)


def attention(Q: Floats, K: Floats, V: Floats) -> Floats:  # noqa: N803
    """Return D⁻¹AV (`DPCrossAttention.query`)."""
    numerator, denominator = attention_sums(Q, K, V)
    return numerator / denominator[:, None]


def spread(rows: int, dim: int, *, start: float = 0.0) -> Floats:
    """Return points to measure with, spread evenly over [0, 1)^dim: an additive recurrence.

    Its steps are the powers of 1/x with x^(dim + 1) = x + 1, which for dim = 1 is the golden ratio.
    """
    x = 2.0
    for _ in range(60):
        x = (1 + x) ** (1 / (dim + 1))
    steps = x ** -np.arange(1.0, dim + 1)
    return np.asarray((start + np.arange(1, rows + 1)[:, None] * steps) % 1)
