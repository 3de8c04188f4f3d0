"""Regressions in rounds for tests: settings, and a plain oracle in floating point."""

import math

import numpy as np

from discreet.accounting import gaussian_sigma
from discreet.features.linear import Linear
from discreet.readers.glm.layout import GlmRounds

CLIP, ROUNDS, MOMENTS = 0.3, 16, 0.03


def glm_rounds(kernel, outputs=1, loss="squared", **changes):
    """What all rounds of a regression share."""
    options = {"clip": CLIP * math.sqrt(outputs), "resolution": 18, "rounds": ROUNDS}
    options |= {"moments": MOMENTS}
    return GlmRounds(kernel=kernel, outputs=outputs, loss=loss, **options | changes)


LINEAR = Linear(3, key_norm=2.0)


def phi(kernel, keys):
    """Features of rows in floating point: what queries have."""
    return np.asarray(kernel.query_features(kernel.within(keys[None]), kernel.query_arrays())[0])


def cut(rows, length):
    """Rows that are no longer than a length."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, length / np.maximum(norms, 1e-300))


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def plain_descent(features, columns, residual, *, clip, share, moments, pace, epsilon, start=None):
    """W after 16 rounds without noise, but with the steps that noise would have asked for.

    Of rows that are added or removed. `residual` is told scores, and returns q before it is cut;
    `start` is told the first sums and second moments, and returns W and what is left of the sums.

    Args:
        features: φ of all rows, shape (n, r).
        columns: k.
        residual: of scores (n, k).
        clip: how long residuals may be.
        share: of each round.
        moments: the share of second moments.
        pace: of the kind of loss.
        epsilon: to be spent, at a δ of 1e-6.
        start: where to begin.
    """
    sigma = gaussian_sigma(epsilon=epsilon, delta=1e-6)
    count = features.shape[1]
    noise, moment_noise = sigma * clip / math.sqrt(share), sigma / math.sqrt(moments)
    hidden = moment_noise * math.sqrt(2 * count)
    step = pace.noise * max(pace.few / count, 1.0) ** 0.125 / (noise * math.sqrt(ROUNDS))
    step = min(step, pace.edge / hidden)
    seen = features.T @ features
    values, vectors = np.linalg.eigh(seen)
    most = pace.longest / step
    shorter = np.where(values > max(hidden, most), most / values, 1.0)
    weights, momentum = np.zeros((count, columns)), 0.0
    for number in range(ROUNDS):
        gradient = features.T @ cut(residual(features @ weights), clip)
        if number == 0 and start is not None:
            weights, gradient = start(gradient, seen)
        gradient = vectors @ (shorter[:, None] * (vectors.T @ gradient))
        momentum = 0.5 * momentum + 0.5 * gradient
        weights = weights - step * momentum
    return weights
