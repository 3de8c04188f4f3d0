"""The door for queries: any numbers, a few at a time, and answers of the same kind."""

import math
from collections.abc import Callable, Mapping, Sequence

import array_api_compat
import numpy as np

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.memory.placed import Placed
from discreet.memory.queries import Queries
from discreet.memory.row_layout import RowLayout

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
