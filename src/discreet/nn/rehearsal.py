"""The noise that a private memory will have, for training: no privacy comes from it.

So it is torch's own, which follows torch's seed; noise that protects comes from `discreet.noise`.

What is released is S + N with normal N, so an answer's numerator has the noise φ(q)·N: a Gaussian
field over queries with the covariance σ²·φ(q)·φ(q') = σ²·e^(t·⟨q, q'⟩) for queries of length one.
One draw serves all queries of a context, as one release does.
"""

import math
from dataclasses import dataclass

import torch

from discreet import _validate
from discreet.privacy import Neighbours, Privacy
from discreet.sums.layout import default_tau
from discreet.sums.settings import noise_multiplier

# The field is made of so many waves; a fresh draw each time, so few serve.
_WAVES = 256


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a model is to be served with; the numbers of a future build.

    Attributes:
        rows: how many rows the private context will have.
        epsilon: of the release.
        delta: of the release.
        heads: of all layers of the model together: they share one budget.
        neighbours: "add_remove", or "replace".
        group_rows: the influence of a record, in rows.
    """

    rows: int
    epsilon: float
    delta: float
    heads: int
    neighbours: str = Neighbours.ADD_REMOVE
    group_rows: float = 1.0

    def __post_init__(self) -> None:
        _validate.whole("rows", self.rows, at_least=1)
        _validate.whole("heads", self.heads, at_least=1)
        _validate.real("group_rows", self.group_rows, above=0)
        _validate.real("noise", self.multiplier, above=0)

    @property
    def multiplier(self) -> float:
        """σ, in units of what one row contributes to one head at the most."""
        privacy = Privacy(self.epsilon, self.delta, Neighbours.parse(self.neighbours))
        both = 2 if privacy.neighbours is Neighbours.REPLACE else 1
        return noise_multiplier(privacy, self.heads) * both * self.group_rows

    def answers(
        self, queries: torch.Tensor, sums: torch.Tensor, rows: torch.Tensor, logit: torch.Tensor
    ) -> torch.Tensor:
        """Return answers from exact sums with the noise, within the unit ball.

        Args:
            queries: of length one, shape (batch, heads, m, d).
            sums: numerators and, last, denominators over the rows at hand, in units of the largest
                weight e^t, shape (batch, heads, m, d_v + 1).
            rows: how many rows are at hand, shape (batch, 1, 1, 1).
            logit: t of each head, shape (heads, 1, 1).
        """
        width = sums.shape[-1] - 1
        tau = default_tau(1.0, width)
        served = sums * (self.rows / rows)
        spread = self.multiplier * math.hypot(1, tau)
        noise = _field(queries, width + 1, logit) * spread
        num = served[..., :-1] + noise[..., :-1]
        # No fewer than so many rows at the smallest weight.
        least = self.rows * torch.exp(-2 * logit)
        den = torch.maximum(served[..., -1:] + noise[..., -1:] / tau, least)
        out: torch.Tensor = num / den
        length: torch.Tensor = torch.linalg.vector_norm(out, dim=-1, keepdim=True)
        return out / length.clamp(min=1)


def _field(queries: torch.Tensor, columns: int, logit: torch.Tensor) -> torch.Tensor:
    """Return normal fields with covariance e^(t·(⟨q, q'⟩ - 1)), one draw for each batch item."""
    batch, heads, _, dim = queries.shape
    waves = torch.randn(batch, heads, dim, _WAVES, device=queries.device, dtype=queries.dtype)
    angles = queries @ waves * torch.sqrt(logit)
    both = torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)
    weights = torch.randn(
        batch, heads, 2 * _WAVES, columns, device=queries.device, dtype=queries.dtype
    )
    return both @ weights / math.sqrt(_WAVES)
