"""How well a kernel does on public rows: some ask, the others answer with themselves as values."""

import math

import numpy as np

from discreet._typing import Floats
from discreet.kernels.base import Kernel


def error_on(kernel: Kernel, rows: Floats) -> float:
    """Return the error of answers against exact attention, without noise, over the keys' bound.

    Every other row asks. Root mean square over all numbers of all answers; infinite where the
    kernel's sum of weights is not positive.

    Args:
        kernel: any.
        rows: public, shape (n, d), two at least; longer ones are shortened to the bound.
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) / kernel.key_norm
    inside = rows / np.maximum(lengths, 1.0)
    keys, queries = inside[::2], inside[1::2] * (kernel.query_norm / kernel.key_norm)
    mapped = kernel.key_features(keys)
    features = mapped.features / kernel.unit
    if mapped.weights is not None:
        features = features * mapped.weights[:, None]
    values = np.concatenate([keys / kernel.key_norm, np.ones((len(keys), 1))], axis=1)
    clipped, _ = kernel.clip_queries(queries)
    sums = kernel.read(clipped[None], kernel.reading((features.T @ values)[None]))[0]
    if not np.all(sums[:, -1] > 0):
        return math.inf
    logits = kernel.scale * queries @ keys.T
    exact = np.exp(logits - kernel.largest_logit) @ values
    return math.sqrt(
        np.mean(np.square(sums[:, :-1] / sums[:, -1:] - exact[:, :-1] / exact[:, -1:]))
    )
