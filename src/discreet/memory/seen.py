"""What noisy sums show of the rows as a whole: how many there are, and what they have in common.

Post-processing of what is released anyway: it costs no privacy, and none of it is the truth.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array, Floats
from discreet.memory.asking import ask
from discreet.memory.layout import Layout
from discreet.memory.placed import Placed
from discreet.memory.release import Released

# No rows are taken to have more in common than this.
_MOST_COMMON = 0.95


def noisy_rows(released: Released[Layout]) -> float:
    """Return how many rows there seem to be (for records: the sum of their factors).

    The mean over heads, each with noise of its own. May be below zero.
    """
    mass, _ = at_origin(released.layout, _denominators(released))
    return float(np.mean(mass)) / released.layout.kernel.weight_at_origin


def noisy_common(released: Released[Layout], *, rows: float, near: float) -> float:
    """Return what rows have in common at least: the squared length of their mean, over their bound.

    The slope of denominators at the origin is scale·Σk. Less its error, noise and kernel, and one
    standard error of what is left.

    Args:
        released: the noisy sums.
        rows: how many there are, or seem to be.
        near: the mean weight of two rows over the largest: so much alike are the kernel's errors.
    """
    layout, kernel = released.layout, released.layout.kernel
    logit = kernel.largest_logit
    step = min(1.0, 1 / logit)  # of the longest query: logits are at most one
    probes = np.eye(kernel.dim) * (step * kernel.query_norm)
    queries = np.broadcast_to(
        np.concatenate([probes, -probes]), (*layout.heads, 2 * kernel.dim, kernel.dim)
    )

    def denominators(asked: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        return (kernel.read(asked, arrays)[..., -1:],)

    placed = Placed(_denominators(released))
    [read] = ask(denominators, queries, layout, placed, norm=kernel.query_norm)
    ahead, behind = np.split(read.reshape(layout.head_count, 2, kernel.dim), 2, axis=1)
    # `read` leaves out e^(‖y‖²/2), the same for all of these.
    squared = logit * step**2
    left_out = math.exp(kernel.query_exponent * step**2)
    over = 2 * logit * step * rows
    mean = (ahead - behind) * left_out / over
    sigma = released.sigma * layout.real_unit / layout.real_tau * kernel.bound
    wrong = kernel.weight_error * math.exp(logit) * rows * math.sqrt(near + 1 / rows)
    variance = 4 * math.sinh(squared) * math.exp(-logit) * (sigma**2 + wrong**2) / over**2
    common = float(np.mean(np.sum(mean**2, axis=-1))) - kernel.dim * variance
    spread = 2 * kernel.dim * variance**2 + 4 * variance * max(common, 0.0)
    least = common - math.sqrt(spread / layout.head_count)
    return min(max(least, 0.0), _MOST_COMMON)


def at_origin(layout: Layout, arrays: Mapping[str, NDArray[Any]]) -> tuple[Floats, Floats]:
    """Return the denominator of the query at the origin, and ‖φ(0)‖, both of shape (heads,)."""
    kernel = layout.kernel
    origin = np.zeros((layout.head_count, 1, kernel.dim))
    length = np.zeros((layout.head_count, 1, 1))
    norms = np.broadcast_to(kernel.query_norms(origin, length, arrays), length.shape)[:, 0, 0]
    return kernel.read(origin, arrays)[:, 0, -1], norms


def _denominators(released: Released[Layout]) -> dict[str, NDArray[Any]]:
    """Return what reads the denominators of a state, and nothing else."""
    layout = released.layout
    real = released.state[:, -1:].astype(np.float64) * (layout.real_unit / layout.real_tau)
    return layout.kernel.reading(np.asarray(real.swapaxes(1, 2)))
