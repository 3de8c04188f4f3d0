"""How far a weighted sum of node noises strays, and how many copies a median needs.

All functions of public numbers. The paper bounds one copy by Chebyshev and boosts by the median;
the bounds here are the best of Chebyshev and Chernoff, with true constants.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from discreet import _validate
from discreet.noise import IntegerLaw

# What the paper asks of a single copy.
SINGLE_SUCCESS = 0.99


@dataclass(frozen=True)
class NoiseSum:
    """Σ c_i·Z_i with independent Z_i of one law; each weight c_i occurs `counts` times.

    A count need not be whole where it stands for nodes of other weights, as a bound.
    """

    law: IntegerLaw
    weights: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        squares = (n * c * c for c, n in zip(self.weights, self.counts, strict=True))
        return self.law.variance * math.fsum(squares)

    @property
    def largest_weight(self) -> float:
        """The largest |c_i|."""
        return max(abs(c) for c in self.weights)

    def log_moment(self, tilt: float) -> float:
        """Return an upper bound on ln E[e^(tilt·sum)]."""
        terms = (
            n * self.law.log_moment(tilt * c)
            for c, n in zip(self.weights, self.counts, strict=True)
        )
        return math.fsum(terms)


def tail_bound(parts: tuple[NoiseSum, ...], failure: float) -> float:
    """Return a t with Pr[|sum of all parts| > t] ≤ failure; the parts are independent."""
    if failure >= 1:
        return 0.0
    chebyshev = math.sqrt(math.fsum(part.variance for part in parts) / failure)
    ends = [part.law.largest_tilt / part.largest_weight for part in parts if part.largest_weight]
    if not ends:
        return 0.0
    # For a Gaussian the best tilt is √(2·ln(2/f))/σ; the end of a Laplace's range may be smaller.
    natural = math.sqrt(2 * math.log(2 / failure) / math.fsum(part.variance for part in parts))
    highest = min(*ends, 10 * natural)

    def chernoff(tilt: float) -> float:
        moment = math.fsum(part.log_moment(tilt) for part in parts)
        return (moment + math.log(2 / failure)) / tilt

    grid = highest * np.linspace(0.02, 0.999, 40)
    best = float(grid[int(np.argmin([chernoff(float(tilt)) for tilt in grid]))])
    found = optimize.minimize_scalar(
        chernoff, bounds=(best * 0.8, min(best * 1.2, highest * 0.9999)), method="bounded"
    )
    return min(chebyshev, chernoff(best), float(found.fun))


def median_failure(copies: int, single_failure: float) -> float:
    """Return the probability that the median of `copies` is off although each fails rarely.

    The median (of an even number: the mean of the middle two) is within the bound of the good
    copies unless at least half of them, rounded up, fail: an exact binomial tail.
    """
    return float(stats.binom.sf(math.ceil(copies / 2) - 1, copies, single_failure))


def copies_needed(failure: float) -> int:
    """Return the fewest copies, each good with probability 0.99, whose median fails that rarely."""
    failure = _validate.real("failure per net point", failure, above=0, below=1)
    copies = 1
    while median_failure(copies, 1 - SINGLE_SUCCESS) > failure:
        copies += 1
    return copies


def single_failure_for(copies: int, failure: float) -> float:
    """Return how often one copy may fail so that the median fails with at most `failure`.

    Pr[Bin(l, f) ≥ k] = I_f(k, l - k + 1), the regularised incomplete beta function, inverted.
    """
    least = math.ceil(copies / 2)
    return float(special.betaincinv(least, copies - least + 1, failure)) * (1 - 1e-9)
