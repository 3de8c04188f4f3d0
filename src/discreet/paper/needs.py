"""What the paper's cross-attention would need for data that is too large to build it for.

From the formulas of Algorithm 1 alone, for the typical noise of a denominator at the worst query.
"""

import math
from dataclasses import dataclass

from scipy import special

from discreet import _validate
from discreet.paper import tails
from discreet.paper.box import Box
from discreet.paper.forest import all_depths, levels_for, node_count
from discreet.paper.logits import Logits
from discreet.paper.softmax_forest import MOMENTS, paper_budgets
from discreet.paper.structure import Budget

# A denominator this many standard deviations of its noise is clear of it.
_CLEAR = 5.0
_MOST_ROWS = 2**200


@dataclass(frozen=True)
class Needs:
    """Bytes of state for the rows at hand, and the number of rows from which answers are clear."""

    state_bytes: int
    rows: int


def attention_needs(
    *,
    rows: int,
    key_dim: int,
    value_dim: int,
    largest_logit: float,
    epsilon: float,
    delta: float,
    c: float = 0.1,
    eps_s: float = 0.05,
    p_f: float = 0.1,
) -> Needs:
    """Return what `DPCrossAttention` (whole vector, the paper's accounting) would need.

    Args:
        rows: n.
        key_dim: d.
        value_dim: d_v.
        largest_logit: R², the largest of ⟨q, k⟩/d.
        epsilon: of the whole.
        delta: half of it for truncation, half for composition.
        c: the paper's constant.
        eps_s: relative error of the kernel.
        p_f: how often any answer may miss its bound.
    """
    upper = math.sqrt(_validate.real("largest_logit", largest_logit, above=0))
    logits = Logits.of(key_dim, Box(0.0, upper), eps_s=eps_s, degree=None, scale=None)
    kernel, net = logits.kernel, logits.net(None)
    structures = value_dim + 1
    copies = tails.copies_needed(net.failure_per_point(p_f / structures))
    numbers = (
        node_count(all_depths(levels_for(rows))) * kernel.features * MOMENTS * copies * structures
    )
    share = Budget(epsilon, delta / 2, delta / 2).share(structures * copies)

    def noise(count: int) -> float:
        """Return the standard deviation of one copy's denominator at the worst query."""
        levels = levels_for(count)
        node = paper_budgets(share, c=c, features=kernel.features, levels=levels).features
        # Laplace noise for a change of two (a replaced row), in units of a weight.
        variance = 2 * (2 / node.epsilon) ** 2
        # Σ Γ⁴ over all features is at most that of the full exponential series, I_0(2R²/d)^d.
        ranges = float(special.i0(2 * largest_logit / key_dim)) ** key_dim
        return 0.5 * math.sqrt(ranges * 7 * levels * variance)

    needed = 2
    while needed < _CLEAR * noise(needed) and needed < _MOST_ROWS:
        needed *= 2
    return Needs(8 * numbers, needed)
