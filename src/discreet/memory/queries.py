"""Queries of any leading shape as (heads, m, d), and answers back in their shape and dtype."""

import math
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np

from discreet import _validate
from discreet.memory.layout import Layout

# Weights are computed in float32 up to e^this; its range ends at e^88.
_LARGEST_FLOAT32_LOGIT = 40.0


@dataclass(frozen=True)
class Queries:
    """Queries as a memory works on them.

    Attributes:
        xp: the library that they belong to.
        rows: shape (heads, m, d), in float32 or float64.
        dtype: what answers are returned in.
        lead: axes before the heads.
        heads: the memory's own leading axes.
        rest: axes after the heads, but for d.
    """

    xp: Any
    rows: Any
    dtype: Any
    lead: tuple[int, ...]
    heads: tuple[int, ...]
    rest: tuple[int, ...]

    @classmethod
    def of(cls, queries: Any, layout: Layout) -> "Queries":  # noqa: ANN401
        """Return queries of shape (..., d), or (..., *heads, m, d), if they are real numbers.

        Lists become numpy arrays, whole numbers float64, half precision is computed in float32.
        """
        if not array_api_compat.is_array_api_obj(queries):
            queries = np.asarray(queries)
            if queries.dtype.kind not in "iufb":
                _validate.reject("queries.dtype", str(queries.dtype), "real numbers")
        xp = array_api_compat.array_namespace(queries)
        dtype = queries.dtype if xp.isdtype(queries.dtype, "real floating") else xp.float64
        if xp.isdtype(queries.dtype, "complex floating"):
            _validate.reject("queries.dtype", str(queries.dtype), "real numbers")
        lead, rest = _axes(tuple(queries.shape), layout)
        sharp = layout.kernel.largest_logit > _LARGEST_FLOAT32_LOGIT
        working = xp.float64 if sharp or dtype == xp.float64 else xp.float32
        rows = queries if queries.dtype == working else xp.astype(queries, working)
        if lead:
            parts = (math.prod(lead), layout.head_count, math.prod(rest), layout.kernel.dim)
            rows = xp.permute_dims(xp.reshape(rows, parts), (1, 0, 2, 3))
        flat = xp.reshape(rows, (layout.head_count, math.prod(lead + rest), layout.kernel.dim))
        return cls(xp, flat, dtype, lead, layout.heads, rest)

    def back(self, answers: Any) -> Any:  # noqa: ANN401
        """Return answers of shape (heads, m, k) in the shape and dtype of the queries."""
        xp, width = self.xp, answers.shape[-1]
        if self.lead:
            parts = (math.prod(self.heads), math.prod(self.lead), math.prod(self.rest), width)
            answers = xp.permute_dims(xp.reshape(answers, parts), (1, 0, 2, 3))
        shaped = xp.reshape(answers, (*self.lead, *self.heads, *self.rest, width))
        return shaped if shaped.dtype == self.dtype else xp.astype(shaped, self.dtype)


def _axes(shape: tuple[int, ...], layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]]:
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
