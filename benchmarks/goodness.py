"""Goodness of fit of integer draws: shared by the statistical tests and the benchmarks.

The reference distribution functions are written here from their formulas, apart from the library.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

Cdf = Callable[[ArrayLike], NDArray[np.float64]]

_BINS = 60
_LEAST_EXPECTED = 25


def rounded_gaussian_cdf(sigma: float) -> Cdf:
    """Return z ↦ Pr[round(N(0, σ²)) ≤ z]."""
    return lambda z: np.asarray(special.ndtr((np.asarray(z, dtype=np.float64) + 0.5) / sigma))


def discrete_laplace_cdf(scale: float, bound: int | None = None) -> Cdf:
    """Return z ↦ Pr[Z ≤ z] for Pr[Z = z] ∝ e^(-|z|/scale), cut off at ±bound if it is given."""

    def whole_line(z: NDArray[np.float64]) -> NDArray[np.float64]:
        ratio = math.exp(-1 / scale)
        below = np.exp(np.minimum(z, 0) / scale) / (1 + ratio)
        above = 1 - np.exp(-(np.maximum(z, 0) + 1) / scale) / (1 + ratio)
        return np.where(z < 0, below, above)

    def cdf(z: ArrayLike) -> NDArray[np.float64]:
        z = np.asarray(z, dtype=np.float64)
        if bound is None:
            return whole_line(z)
        low, high = whole_line(np.array([-bound - 1.0, float(bound)]))
        return np.clip((whole_line(z) - low) / (high - low), 0, 1)

    return cdf


def chi_square_p_value(draws: NDArray[np.int64], cdf: Cdf, *, spread: float) -> float:
    """Return Pearson's chi-square p-value over bins of about `spread`/6.

    The bins depend on the hypothesis only, never on the draws.
    """
    edges = np.unique(np.rint(np.linspace(-5 * spread, 5 * spread, _BINS)))
    expected = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    # Neighbouring bins are joined until each expects enough for the chi-square approximation.
    groups = np.zeros(len(expected), dtype=int)
    filled = 0.0
    for index, weight in enumerate(expected[:-1]):
        filled += weight
        groups[index + 1] = groups[index] + (filled >= _LEAST_EXPECTED)
        filled = 0.0 if filled >= _LEAST_EXPECTED else filled
    wanted = np.bincount(groups, weights=expected)
    seen = np.bincount(groups, weights=observed)
    statistic = float(np.sum((seen - wanted) ** 2 / np.maximum(wanted, 1e-9)))
    return float(stats.chi2.sf(statistic, len(wanted) - 1))


def kolmogorov_smirnov_p_value(draws: NDArray[np.int64], cdf: Cdf) -> float:
    """Return the Kolmogorov-Smirnov p-value; on integers it is conservative."""
    values, counts = np.unique(draws, return_counts=True)
    after = np.cumsum(counts) / len(draws)
    gap = np.maximum(
        np.abs(after - cdf(values)), np.abs(after - counts / len(draws) - cdf(values - 1))
    )
    return float(stats.kstwo.sf(gap.max(), len(draws)))
