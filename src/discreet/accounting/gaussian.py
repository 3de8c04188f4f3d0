"""The analytic Gaussian mechanism: its exact (ε, δ) curve and both inverses.

Adding N(0, σ²) to a vector of L2 sensitivity Δ satisfies (ε, δ)-differential privacy if and only if
δ ≥ Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) with μ = Δ/σ (Balle, Wang, ICML 2018, Theorem 8). Pure
functions of public numbers; σ and Δ are in the same units.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from discreet import _validate

Floats = NDArray[np.float64]


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest σ that gives (ε, δ) for the given L2 sensitivity."""
    epsilon = _validate.real("epsilon", epsilon, above=0)
    delta = _validate.real("delta", delta, above=0, below=1)
    sensitivity = _validate.real("sensitivity", sensitivity, above=0)
    # At the upper end Φ(μ/2 - ε/μ) alone is 1 - δ/2 or more, and e^ε·Φ(...) is smaller still.
    quantile = float(special.ndtri(1 - delta / 2)) if delta > 1e-15 else 40.0
    highest = quantile + 40.0 + math.sqrt((quantile + 40.0) ** 2 + 2 * epsilon)
    mu = math.exp(
        _root(lambda x: _log_excess(math.exp(x), epsilon, delta), -80.0, math.log(highest))
    )
    while hockey_stick(mu, epsilon) > delta:
        mu *= 1 - 1e-14  # the root is good to some ulps: end on the private side of it
    return sensitivity / mu


def gaussian_epsilon(*, sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest ε ≥ 0 that noise of standard deviation σ gives at this δ."""
    sigma = _validate.real("sigma", sigma, above=0)
    delta = _validate.real("delta", delta, above=0, below=1)
    mu = _validate.real("sensitivity", sensitivity, above=0) / sigma
    if hockey_stick(mu, 0.0) <= delta:
        return 0.0
    # There Φ(μ/2 - ε/μ) = Φ(-√(2·ln(1/δ))) ≤ δ.
    highest = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    epsilon = _root(lambda x: _log_excess(mu, x, delta), 0.0, highest)
    while hockey_stick(mu, epsilon) > delta:
        epsilon *= 1 + 1e-14
    return epsilon


def hockey_stick(mu: float, epsilon: float) -> float:
    """Return δ(ε) for one value of ε; see `hockey_sticks`."""
    return float(hockey_sticks(mu, np.array([epsilon]))[0])


def hockey_sticks(mu: float, epsilons: Floats) -> Floats:
    """Return δ(ε) = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) for ε ≥ 0.

    With a = ε/μ - μ/2 and Mills' ratio m = (1 - Φ)/φ this is φ(a)·(m(a) - m(a + μ)), which keeps
    its relative accuracy in the tail; where a is far below zero there is nothing to cancel.
    """
    a = epsilons / mu - mu / 2
    density = np.exp(-0.5 * a**2) / math.sqrt(2 * math.pi)
    near = np.maximum(a, -5.0)
    tail = density * (_mills(near) - _mills(near + mu))
    bulk = special.ndtr(-a) - np.exp(np.minimum(epsilons + special.log_ndtr(-a - mu), 0.0))
    return np.where(a > -5.0, tail, bulk)


def _mills(x: Floats) -> Floats:
    """Return (1 - Φ(x))/φ(x)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)))


def _log_excess(mu: float, epsilon: float, delta: float) -> float:
    """Return ln δ(ε) - ln δ, finite even where δ(ε) underflows."""
    return math.log(max(hockey_stick(mu, epsilon), 1e-320)) - math.log(delta)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a monotone function crosses zero, to the last few digits."""
    return float(optimize.brentq(function, low, high, xtol=1e-15, rtol=1e-14, maxiter=500))
