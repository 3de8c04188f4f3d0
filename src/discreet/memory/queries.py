"""Queries of any leading shape as (heads, m, d), and answers back in their shape and dtype."""

import math
from dataclasses import dataclass

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array
from discreet.memory.row_layout import RowLayout


@dataclass(frozen=True)
class Queries:
    """Queries as a memory works on them.

    Attributes:
        xp: the library that they belong to.
        rows: shape (heads, m, d), in the precision that answers are computed in.
        dtype: what answers are returned in.
        lead: axes before the heads.
        heads: the memory's own leading axes.
        rest: axes after the heads, but for d.
    """

    xp: Array
    rows: Array
    dtype: Array
    lead: tuple[int, ...]
    heads: tuple[int, ...]
    rest: tuple[int, ...]

    @classmethod
    def of(cls, queries: Array, layout: RowLayout, working: Array) -> "Queries":
        """Return queries of shape (..., d), or (..., *heads, m, d).

        Args:
            queries: real numbers.
            layout: heads and width.
            working: the dtype that answers are computed in.
        """
        xp = namespace(queries)
        lead, rest = _axes(tuple(queries.shape), layout)
        rows = queries if queries.dtype == working else xp.astype(queries, working)
        if lead:
            parts = (math.prod(lead), layout.head_count, math.prod(rest), layout.kernel.dim)
            rows = xp.permute_dims(xp.reshape(rows, parts), (1, 0, 2, 3))
        flat = xp.reshape(rows, (layout.head_count, math.prod(lead + rest), layout.kernel.dim))
        return cls(xp, flat, queries.dtype, lead, layout.heads, rest)

    def back(self, answers: Array) -> Array:
        """Return answers of shape (heads, m, k) in the shape and dtype of the queries."""
        xp, width = self.xp, answers.shape[-1]
        if self.lead:
            parts = (math.prod(self.heads), math.prod(self.lead), math.prod(self.rest), width)
            answers = xp.permute_dims(xp.reshape(answers, parts), (1, 0, 2, 3))
        shaped = xp.reshape(answers, (*self.lead, *self.heads, *self.rest, width))
        return shaped if shaped.dtype == self.dtype else xp.astype(shaped, self.dtype)


def _axes(shape: tuple[int, ...], layout: RowLayout) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes before and after the heads, or raise `InvalidInput` if they do not fit."""
    heads, dim = layout.heads, layout.kernel.dim
    if not heads:
        if not shape or shape[-1] != dim:
            _validate.reject("queries.shape", shape, f"(..., {dim})")
        return (), shape[:-1]
    at = len(shape) - 2 - len(heads)
    if at < 0 or shape[-1] != dim or shape[at:-2] != heads:
        _validate.reject("queries.shape", shape, f"(..., {', '.join(map(str, heads))}, m, {dim})")
    return shape[:at], shape[-2:-1]
