"""Attention to train for private serving: exact, with bounds that hold by construction.

With a `Rehearsal` it trains with the noise that a private memory will have.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from discreet import _validate
from discreet.nn.heads import HeadMap, Heads
from discreet.nn.reading import batch_of, unbatched
from discreet.privacy import Neighbours, Privacy
from discreet.sums.layout import default_tau
from discreet.sums.settings import noise_multiplier

# What is added to a squared length before its root: nothing, but no division by zero.
_EPSILON = 1e-12

# The noise is made of so many random Fourier features; a fresh draw each time, so few serve.
_FREQUENCIES = 256


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a model is to be served with; the numbers of a future build.

    `BoundedAttention` trains with the noise that such a release will have. No privacy comes from
    it, so it is torch's own, which follows torch's seed; noise that protects comes from
    `discreet.noise`.

    What is released is S + N with normal N, so an answer's numerator has the noise φ(q)·N: a
    Gaussian field over queries with the covariance σ²·φ(q)·φ(q') = σ²·e^(t·⟨q, q'⟩) for queries of
    length one. One draw serves all queries of a context, as one release does.

    Attributes:
        rows: how many rows the private context will have, as for `discreet.plan`.
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

        Returns:
            Shape (batch, heads, m, d_v).
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


class UnitLength(nn.Module):
    """Makes vectors of length one of the last axis."""

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return x/‖x‖."""
        squares = (vectors * vectors).sum(dim=-1, keepdim=True)
        return vectors * torch.rsqrt(squares + _EPSILON)


class BoundedAttention(nn.Module):
    """Cross-attention with queries and keys of length one, and a temperature under a public cap.

    Trainable and exact: no noise and no kernel, and no privacy. `from_multihead` makes a private
    module of it, which answers the same but for the noise and the kernel's error: logits are within
    ±`largest_logit` by construction, so nothing is clipped that was not in training.

    Args:
        embed_dim: width of inputs and outputs.
        num_heads: how many heads. Few are better: H heads have √H times the noise.
        head_dim: width of a head; None for embed_dim / num_heads. Weights of narrow heads are
            right within 1%: of 4 numbers for logits up to 10, of 6 up to 7, of 8 up to 4.5. Wider
            heads and larger logits have random features, whose error is larger.
        kdim: width of what keys are made of; None for embed_dim.
        vdim: of values, likewise.
        value_dim: width of a head's values; None for head_dim.
        largest_logit: the cap on temperatures, and so on logits; the noise grows with e to it.
        bias: whether projections have one.
        batch_first: whether the batch is the first axis.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        head_dim: int | None = None,
        kdim: int | None = None,
        vdim: int | None = None,
        value_dim: int | None = None,
        largest_logit: float = 6.0,
        bias: bool = False,
        batch_first: bool = True,
    ) -> None:
        super().__init__()
        self.embed_dim = _validate.whole("embed_dim", embed_dim, at_least=1)
        self.num_heads = _validate.whole("num_heads", num_heads, at_least=1)
        if head_dim is None and embed_dim % num_heads:
            _validate.reject("num_heads", num_heads, f"a divisor of embed_dim = {embed_dim}")
        self.head_dim = head_dim or embed_dim // num_heads
        self.value_dim = value_dim or self.head_dim
        self.largest_logit = _validate.real("largest_logit", largest_logit, above=0, at_most=100)
        self.batch_first = batch_first
        self.q_proj = nn.Linear(embed_dim, num_heads * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(kdim or embed_dim, num_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(vdim or embed_dim, num_heads * self.value_dim, bias=bias)
        self.out_proj = nn.Linear(num_heads * self.value_dim, embed_dim, bias=bias)
        self.q_norm = UnitLength()
        self.sharpness = nn.Parameter(torch.zeros(num_heads))
        self._rehearsal: Rehearsal | None = None

    @property
    def rehearsal(self) -> Rehearsal | None:
        """In training, answers have the noise of this future release; None for none."""
        return self._rehearsal

    @rehearsal.setter
    def rehearsal(self, rehearsal: Rehearsal | None) -> None:
        if rehearsal is not None:
            _validate.instance("rehearsal", rehearsal, Rehearsal)
            _validate.whole("rehearsal.heads", rehearsal.heads, at_least=self.num_heads)
        self._rehearsal = rehearsal

    @property
    def temperatures(self) -> torch.Tensor:
        """The t of each head: logit = t·⟨query, key⟩, below `largest_logit`."""
        return self.largest_logit * torch.sigmoid(self.sharpness)

    def forward(  # noqa: PLR0917 (torch's own signature)
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor | None = None,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = False,  # noqa: ARG002, FBT001, FBT002
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,  # noqa: ARG002, FBT001, FBT002
        is_causal: bool = False,  # noqa: ARG002, FBT001, FBT002
    ) -> tuple[torch.Tensor, None]:
        """Return attention, and None for the weights.

        Args:
            query: shape (batch, m, E), or (m, batch, E) without `batch_first`, or (m, E).
            key: likewise, n in place of m.
            value: likewise; None if it is the key.
            key_padding_mask: True for keys that are padding, shape (batch, n).
            need_weights: ignored.
            attn_mask: must be None: the release to come cannot leave rows out.
            average_attn_weights: ignored.
            is_causal: ignored.

        Returns:
            Outputs in the shape of the query; and None.

        Raises:
            InvalidInput: there is an `attn_mask`.
        """
        if attn_mask is not None:
            _validate.reject("attn_mask", "...", "None: the release to come cannot leave rows out")
        query_rows, key_rows, value_rows = (
            batch_of(each, batch_first=self.batch_first)
            for each in (query, key, key if value is None else value)
        )
        out = self.out_proj(self._attend(query_rows, key_rows, value_rows, key_padding_mask))
        return unbatched(out, query, batch_first=self.batch_first), None

    def _attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        padding: torch.Tensor | None,
    ) -> torch.Tensor:
        queries, keys = self._unit(self.q_proj(query)), self._unit(self.k_proj(key))
        values = self._split(self.v_proj(value))
        values = values / torch.linalg.vector_norm(values, dim=-1, keepdim=True).clamp(min=1)
        logit = self.temperatures[:, None, None]
        if self.rehearsal is not None and self.training:
            sums, rows = _sums(queries, keys, values, logit, padding)
            out = self.rehearsal.answers(queries, sums, rows, logit)
        else:
            keep = None if padding is None else ~padding[:, None, None, :]
            out = functional.scaled_dot_product_attention(
                queries * logit, keys, values, attn_mask=keep, scale=1.0
            )
        return out.transpose(1, 2).flatten(2)

    def _split(self, rows: torch.Tensor) -> torch.Tensor:
        """Return (batch, n, heads·d) as (batch, heads, n, d)."""
        return rows.reshape(*rows.shape[:-1], self.num_heads, -1).transpose(1, 2)

    def _unit(self, rows: torch.Tensor) -> torch.Tensor:
        unit: torch.Tensor = self.q_norm(self._split(rows))
        return unit

    def public_heads(self) -> Heads:
        """Return the weights head by head, for `from_multihead` and `bounds_of`."""
        query, key, value = (
            HeadMap.of(each.weight, each.bias, self.num_heads)
            for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        # Of length one: a root mean square of 1/√d.
        gain, epsilon = np.full(self.head_dim, self.head_dim**-0.5), _EPSILON / self.head_dim
        return Heads(
            replace(query, gain=gain, epsilon=epsilon),
            replace(key, gain=gain, epsilon=epsilon),
            value,
            scaling=self.temperatures.detach().cpu().double().numpy(),
            value_limit=1.0,
        )

    def extra_repr(self) -> str:
        """Return the shape, and the cap on logits."""
        return f"heads={self.num_heads}, head_dim={self.head_dim}, logits <= {self.largest_logit:g}"


def _sums(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    logit: torch.Tensor,
    padding: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numerators and denominators over the largest weight, and how many rows they are of."""
    weights = torch.exp(logit * (queries @ keys.transpose(-1, -2) - 1))
    rows = torch.full((len(keys), 1, 1, 1), float(keys.shape[2]), device=keys.device)
    if padding is not None:
        weights = weights.masked_fill(padding[:, None, None, :], 0.0)
        rows = (~padding).sum(dim=1)[:, None, None, None].to(keys.dtype).clamp(min=1)
    ones = torch.ones_like(values[..., :1])
    return weights @ torch.cat([values, ones], dim=-1), rows


def _field(queries: torch.Tensor, columns: int, logit: torch.Tensor) -> torch.Tensor:
    """Return normal fields with covariance e^(t·(⟨q, q'⟩ - 1)), one draw for each batch item."""
    batch, heads, _, dim = queries.shape
    device, dtype = queries.device, queries.dtype
    frequencies = torch.randn(batch, heads, dim, _FREQUENCIES, device=device, dtype=dtype)
    angles = queries @ frequencies * torch.sqrt(logit)
    both = torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)
    weights = torch.randn(batch, heads, 2 * _FREQUENCIES, columns, device=device, dtype=dtype)
    return both @ weights / math.sqrt(_FREQUENCIES)
