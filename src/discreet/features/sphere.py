"""Attention over keys that are spread evenly over a sphere: what errors are predicted for.

Functions of public numbers. With t the largest logit, such keys have logits t·cos.
"""

import math

import numpy as np
from scipy import special


def log_mean_weight(logit: float, dim: float) -> float:
    """Return ln E[e^(t·cos)], the mean weight of keys that are spread evenly over the sphere."""
    order = dim / 2 - 1
    bessel = float(special.ive(order, logit))
    if not bessel > 0 or not math.isfinite(bessel):  # order far above t: the series' first terms
        return logit**2 / (2 * dim)
    return float(special.gammaln(dim / 2) + order * math.log(2 / logit) + math.log(bessel) + logit)


def answer_length(logit: float, dim: float) -> float:
    """Return E[cos·e^(t·cos)]/E[e^(t·cos)]: how long answers are, over the length of values.

    For values that are such keys themselves.
    """
    above, below = (float(special.ive(order, logit)) for order in (dim / 2, dim / 2 - 1))
    if not below > 0 or not math.isfinite(above / below):  # likewise
        return logit / dim
    return above / below


def polynomial_length(coefficients: tuple[float, ...], logit: float, dim: float) -> float:
    """Return `answer_length` with a polynomial in place of exp."""
    if dim <= 1:
        cosines, shares = np.array([-1.0, 1.0]), np.ones(2)
    else:
        angles = (np.arange(4000) + 0.5) * (math.pi / 4000)
        cosines, shares = np.cos(angles), np.sin(angles) ** (dim - 2)
    weights = shares * np.polynomial.polynomial.polyval(logit * cosines, np.array(coefficients))
    return float(np.sum(weights * cosines) / np.sum(weights))
