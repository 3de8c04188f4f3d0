"""A closed-form bound on many mechanisms together: a little larger than tight, at any count.

Concentrated differential privacy (Bun, Steinke, TCC 2016): the Rényi divergence of order α of a
pure ε-private mechanism is at most α·ε²/2 (their Proposition 3.3), that of a Gaussian is α·μ²/2,
and such bounds add up. For small losses both are the same number, so that nothing is lost to the
bound itself, and some 7% of ε to the way back (at δ = 1e-6).
`docs/privacy.md`, "Tight composition".
"""

import math
from collections.abc import Sequence

import numpy as np

from discreet.accounting.events import Gaussian, Mechanism

# More than the relative error of the sums below.
_ROUNDING = 1e-12


def concentrated_epsilon(mechanisms: Sequence[tuple[Mechanism, int]], delta: float) -> float:
    """Return an upper bound on the ε of all the mechanisms together at this δ.

    Infinite if their infinite losses alone (the truncated tails) exceed δ. With α = 1 + θ and
    ρ = Σ n·spread²/2, the bound (1 - e^-x)₊ ≤ θ^θ/(1+θ)^(1+θ)·e^(θx) gives, for every θ > 0,
    ln δ(ε) ≤ θ(1+θ)ρ - θε + θ·ln θ - (1+θ)·ln(1+θ). Any θ is valid, so the best of many will do.
    """
    logs = math.fsum(n * math.log1p(-each.infinite_loss) for each, n in mechanisms)
    left = delta + math.expm1(logs) * (1 + _ROUNDING)
    if left <= 0:
        return math.inf
    rho = math.fsum(n * each.spread**2 for each, n in mechanisms) / 2
    theta = np.exp2(np.arange(-64, 64, 1 / 64))
    moment, needed = (1 + theta) * rho, -math.log(left)
    constant = theta * np.log1p(1 / theta) + np.log1p(theta)
    epsilons = moment + (needed - constant) / theta
    slack = _ROUNDING * (moment + (needed + constant) / theta)
    # But for the infinite losses, mechanisms with bounded losses never cost more than their sum.
    bounded = not any(isinstance(each, Gaussian) for each, _ in mechanisms)
    most = math.fsum(n * each.spread for each, n in mechanisms) if bounded else math.inf
    return max(0.0, min(float(np.min(epsilons + slack)), most))
