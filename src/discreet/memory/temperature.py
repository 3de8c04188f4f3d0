"""Which temperature so many rows can bear, where nothing is known of them but how many there are.

All of it is a function of public numbers: rows that are spread evenly over a sphere stand in for
the private ones.
"""

import math
from dataclasses import dataclass

from discreet.kernels.fourier import FREQUENCIES
from discreet.kernels.sphere import answer_length, log_mean_weight

# Recommended temperatures have logits between these.
_LEAST_LOGIT, _LARGEST_LOGIT = 0.1, 20.0

# At the recommended temperature an answer is at least so many times as long as the error of each of
# its numbers: enough to rank by.
_CLEAR_OF_ERROR = 1.4

# Real rows come in clusters: so large a share of them is taken to be alike.
_ALIKE = 0.05


def usual_directions(dim: int) -> float:
    """Return in how many directions rows are taken to vary where nothing is known about them.

    A guess, and the only one: an eighth of all, but at least eight. Rows that matter for a query
    lie closer to it than points that fill all of space.
    """
    return min(float(dim), max(8.0, dim / 8))


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Attention over rows that are spread evenly over a sphere, with all errors that it will have.

    Attributes:
        rows: how many there are.
        dim: width of keys.
        value_dim: width of values.
        tau: weight of the denominator, over the length of values.
        multiplier: noise of a number of the state, over what one row adds to it at most.
        weight_error: standard error of one weight, over the largest weight, of a random kernel; by
            default of the one that "auto" falls back on.
    """

    rows: int
    dim: int
    value_dim: int
    tau: float
    multiplier: float
    weight_error: float = 1 / math.sqrt(2 * FREQUENCIES)

    def recommended_scale(self, reach: float) -> float:
        """Return the sharpest scale at which answers can be ranked: see `clearness`.

        Where there is none, the scale that comes closest.

        Args:
            reach: key_norm·query_norm, the logit at scale one.
        """
        from scipy import optimize  # here, because it takes long to load

        def surplus(logit: float) -> float:
            return math.log(self.clearness(logit) / _CLEAR_OF_ERROR)

        logit = float(
            optimize.minimize_scalar(
                lambda logit: -surplus(logit), bounds=(_LEAST_LOGIT, _LARGEST_LOGIT)
            ).x
        )
        if surplus(_LARGEST_LOGIT) >= 0:
            logit = _LARGEST_LOGIT
        elif surplus(logit) > 0:
            logit = float(optimize.brentq(surplus, logit, _LARGEST_LOGIT, xtol=1e-6))
        # Three digits are enough, and look better on a card.
        return float(f"{logit / reach:.3g}")

    def clearness(self, logit: float) -> float:
        """Return the length of an answer over the error of each of its numbers.

        In the usual directions, but with as many rows alike as real rows are. A numerator has noise
        e^t·multiplier·√(1 + τ²), in units of the length of values; the mass that it is divided by
        is e^t·`mass`.
        """
        directions = usual_directions(self.dim)
        length, mass = answer_length(logit, directions), self.mass(logit, directions)
        noise = self.multiplier * math.hypot(1, self.tau) * self.quotient(length) / mass
        alike = max(mass, _ALIKE * self.rows)
        return length / math.hypot(noise, self.sum_error(self.weight_error, alike) / mass)

    def mass(self, logit: float, dim: float) -> float:
        """Return Σ e^(t·cos - t): as many rows at the largest logit would weigh the same."""
        return self.rows * math.exp(log_mean_weight(logit, dim) - logit)

    def sum_error(self, weight_error: float, alike: float) -> float:
        """Return the error of the sum of all weights that a random kernel has, over the largest.

        Errors of two rows are as alike as their kernel e^(t·cos - t) is near one, so the variance
        of the sum is Σ_ij of that, and rows for each with itself.

        Args:
            weight_error: standard error of one weight, over the largest (`Kernel.weight_error`).
            alike: Σ_j of that kernel, for a usual row: `mass` if rows are spread evenly, the size
                of a cluster if they come in clusters.
        """
        return weight_error * math.sqrt(self.rows * (1 + alike))

    def quotient(self, length: float) -> float:
        """Return how much more error a number of an answer has than its numerator alone.

        Args:
            length: of the answer, over that of values; its numbers are taken to be alike.
        """
        return math.hypot(1, length / (self.tau * math.sqrt(self.value_dim)))
