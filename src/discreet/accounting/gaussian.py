"""The analytic Gaussian mechanism: its exact (ε, δ) curve and both inverses.

Adding N(0, σ²) to a vector of L2 sensitivity Δ satisfies (ε, δ)-differential privacy if and only if
δ ≥ Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) with μ = Δ/σ (Balle, Wang, ICML 2018, Theorem 8). Pure
functions of public numbers; σ and Δ are in the same units.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from scipy import special

from discreet import _validate
from discreet._typing import Floats

# Beyond these nobody is protected, and exponentials leave float64.
LARGEST_EPSILON = 500.0
LARGEST_MU = 1000.0
LEAST_DELTA = 1e-300

# More than the relative error of `hockey_sticks`; and what stands for a δ(ε) that underflows.
_ROUNDING = 1 + 1e-11
_LEAST = 1e-320

_ROOT_2, _MILLS = math.sqrt(2), math.sqrt(math.pi / 2)


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest σ that gives (ε, δ) for the given L2 sensitivity.

    Args:
        epsilon: above 0 and at most 500.
        delta: at least 1e-300 and below 1.
        sensitivity: how far one unit moves the vector at most, in L2 norm.

    Returns:
        σ, in the units of the sensitivity.

    Raises:
        InvalidInput: if a number is not finite, or out of range.

    Example:
        >>> round(gaussian_sigma(epsilon=1.0, delta=1e-6), 4)
        4.2247
    """
    epsilon = _validate.real("epsilon", epsilon, above=0, at_most=LARGEST_EPSILON)
    delta = _validate.real("delta", delta, at_least=LEAST_DELTA, below=1)
    sensitivity = _validate.real("sensitivity", sensitivity, above=0)
    return sensitivity / _largest_mu(epsilon, delta)


@lru_cache(maxsize=256)  # one release asks several times
def _largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ = Δ/σ that gives (ε, δ)."""
    epsilons, wanted = np.array([epsilon]), math.log(delta)

    def excess(log_mu: float) -> float:
        found = float(hockey_sticks(math.exp(log_mu), epsilons)[0])
        return math.log(max(found * _ROUNDING, _LEAST)) - wanted

    # δ(ε) grows with μ; at the upper end it is one to all digits, at the lower end zero.
    highest = 40.0 + math.sqrt(40.0**2 + 2 * epsilon)
    log_mu = root(excess, -80.0, math.log(highest))
    step = 1e-15
    while excess(log_mu) > 0:
        log_mu -= step  # the root is good to some ulps: end on the private side of it
        step *= 2
    return math.exp(log_mu)


def gaussian_epsilon(*, sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest ε ≥ 0 that noise of standard deviation σ gives at this δ.

    Args:
        sigma: above 0, and at least a thousandth of the sensitivity.
        delta: at least 1e-300 and below 1.
        sensitivity: how far one unit moves the vector at most, in L2 norm.

    Returns:
        ε.

    Raises:
        InvalidInput: if a number is not finite, or out of range.
    """
    sigma = _validate.real("sigma", sigma, above=0)
    delta = _validate.real("delta", delta, at_least=LEAST_DELTA, below=1)
    mu = _validate.real("sensitivity", sensitivity, above=0) / sigma
    _validate.real("sensitivity/sigma", mu, above=0, at_most=LARGEST_MU)
    wanted = math.log(delta)

    def excess(units: float) -> float:
        found = float(hockey_sticks(mu, np.array([mu * units]))[0])
        return math.log(max(found * _ROUNDING, _LEAST)) - wanted

    if excess(0.0) <= 0:
        return 0.0
    # In units of μ, so that the precision is relative. There Φ(μ/2 - ε/μ) ≤ δ, and beyond is slack.
    highest = mu / 2 + math.sqrt(2 * math.log(1 / delta)) + 1e-3
    units = root(excess, 0.0, highest)
    step = 1e-15 * highest
    while excess(units) > 0:
        units += step
        step *= 2
    return mu * units


def hockey_sticks(mu: float, epsilons: Floats) -> Floats:
    """Return δ(ε) = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) for ε ≥ 0, with relative error below 1e-11.

    With a = ε/μ - μ/2 and Mills' ratio m = (1 - Φ)/φ, m(x) = √(π/2)·erfcx(x/√2), this is
    φ(a)·(m(a) - m(a + μ)), which keeps its relative accuracy in the tail; for small μ the
    difference is the integral of -m'(x) = 1 - x·m(x). Where a is far below zero there is nothing to
    cancel.

    One function, because a search for σ or ε comes here sixty times.
    """
    a = epsilons / mu - mu / 2
    near = np.maximum(a, -5.0)
    density = np.exp(-0.5 * a**2) / math.sqrt(2 * math.pi)
    if mu < 1:
        nodes, weights = _quadrature()
        x = near[..., None] + mu * (nodes + 1) / 2
        ratio = _MILLS * special.erfcx(x / _ROOT_2)
        difference = (1 - x * ratio) @ weights * mu / 2
    else:
        ratio = _MILLS * special.erfcx(near / _ROOT_2)
        difference = ratio - _MILLS * special.erfcx((near + mu) / _ROOT_2)
    bulk = special.ndtr(-a) - np.exp(np.minimum(epsilons + special.log_ndtr(-a - mu), 0.0))
    return np.where(a > -5.0, density * difference, bulk)


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss' rule; numpy takes longer to make them than to use them."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return nodes, weights


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a monotone function changes its sign, to the last digit, by halving.

    By hand, because scipy.optimize takes as long to load as a small memory to build.
    """
    rising = function(low) <= 0
    while low < (middle := low + (high - low) / 2) < high:
        if (function(middle) <= 0) == rising:
            low = middle
        else:
            high = middle
    return low
