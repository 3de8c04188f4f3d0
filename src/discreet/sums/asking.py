"""How every release answers queries, whatever shape, dtype and device they have.

`ask` checks queries, brings them to the shape (heads, m, d) (`Queries`), hands them to a reader a
few at a time, and returns the answers in the shape and dtype of the queries. `Placed` keeps copies
of the public arrays that answering takes, in the library and on the device of the queries.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.sums.layout import RowLayout


class Placed:
    """Public arrays in the library, dtype and device of a caller's, converted once for each.

    Args:
        arrays: by name, float64 and whole numbers.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._copies: dict[tuple[Any, Any, bool], dict[str, Array]] = {}

    def like(self, array: Array) -> dict[str, Array]:
        """Return the arrays where this one is: floats in its dtype, whole numbers as they are.

        Args:
            array: numpy or torch, floats.
        """
        # What torch makes in inference mode cannot be used outside of it.
        torch = sys.modules.get("torch")
        inference = torch is not None and torch.is_inference_mode_enabled()
        place = (array.dtype, array.device, inference)
        if place not in self._copies:
            xp = namespace(array)
            self._copies[place] = {
                name: xp.asarray(
                    values,
                    dtype=array.dtype if values.dtype.kind == "f" else None,
                    device=array.device,
                )
                for name, values in self._arrays.items()
            }
        return self._copies[place]


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
        """Return answers of shape (heads, m, k) in the shape and dtype of the queries.

        Args:
            answers: shape (heads, m, k).

        Returns:
            Shape (..., k).
        """
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


Question = Callable[[Array, Mapping[str, Array]], tuple[Array, ...]]

# So many query features at a time: memory does not grow with the number of queries beyond that. Of
# a processor's, so few that they stay in its cache.
_FEATURES_AT_ONCE, _FEATURES_IN_CACHE = 2**24, 2**21

# Longer queries, in units of their bound, are shortened before they are squared.
_HUGE = 1e15


def ask(
    question: Question,
    queries: Array,
    layout: RowLayout,
    placed: Placed,
    *,
    norm: float,
    in_float64: bool = False,
) -> tuple[Array, ...]:
    """Return the answers to a question, in the shape and dtype of the queries.

    So many queries at a time that memory does not grow with their number.

    Args:
        question: given queries of shape (heads, m, d) and arrays, returns arrays (heads, m, ...).
        queries: shape (..., d), or (..., *heads, m, d); of any finite size.
        layout: heads and width.
        placed: the arrays that the question needs.
        norm: the bound on queries.
        in_float64: whether float32 would not do.
    """
    given = _real_numbers(queries)
    xp = namespace(given)
    working = xp.float64 if in_float64 or given.dtype == xp.float64 else xp.float32
    flat = Queries.of(given, layout, working)
    rows = _of_finite_length(flat.rows, norm)
    arrays = placed.like(rows)
    heads, count, _ = rows.shape
    most = _FEATURES_IN_CACHE if str(rows.device) == "cpu" else _FEATURES_AT_ONCE
    at_once = max(most // (layout.kernel.features * heads), 1)
    pieces = [
        question(rows[:, start : start + at_once], arrays)
        for start in range(0, max(count, 1), at_once)
    ]
    whole = pieces[0] if len(pieces) == 1 else _joined(xp, pieces)
    return tuple(flat.back(part) for part in whole)


def _real_numbers(queries: Array) -> Array:
    """Return queries as an array of floats: lists become numpy's, whole numbers float64."""
    if not array_api_compat.is_array_api_obj(queries):
        queries = np.asarray(queries)
    if isinstance(queries, np.ndarray) and queries.dtype.kind not in "iufb":
        _validate.reject("queries.dtype", str(queries.dtype), "real numbers")
    xp = namespace(queries)
    if xp.isdtype(queries.dtype, "complex floating"):
        _validate.reject("queries.dtype", str(queries.dtype), "real numbers")
    if xp.isdtype(queries.dtype, "real floating"):
        return queries
    return xp.astype(queries, xp.float64)


def _of_finite_length(rows: Array, norm: float) -> Array:
    """Return queries whose squares are finite: huge ones are shortened, in their direction."""
    if 0 in rows.shape:
        return rows
    xp = namespace(rows)
    largest = xp.max(xp.abs(rows))
    if bool(largest <= _HUGE * norm):
        return rows
    if not bool(largest < math.inf):
        raise InvalidInput("Expected queries to have no NaN and no infinity.")
    top = xp.max(xp.abs(rows), axis=-1, keepdims=True)
    long = top > norm
    return xp.where(long, rows / xp.where(long, top, xp.ones_like(top)) * norm, rows)


def _joined(xp: Array, pieces: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    return tuple(xp.concat(parts, axis=1) for parts in zip(*pieces, strict=True))
