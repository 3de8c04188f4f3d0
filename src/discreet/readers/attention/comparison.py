"""Exact attention beside a memory's answers, for whoever owns the rows. NOT PRIVATE.

`attention` computes what a memory approximates, plainly, from the private rows; `compare` says how
far the memory's answers are from it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.reader import WITHIN
from discreet.sums.source import Advance, Form, RowSource, progress_bar, unseen


def attention_sums(
    queries: ArrayLike, keys: ArrayLike, values: ArrayLike, *, scale: float
) -> tuple[Floats, Floats]:
    """Return AV, shape (..., m, d_v), and D, shape (..., m), of exact attention.

    Args:
        queries: shape (..., m, d).
        keys: shape (..., n, d).
        values: shape (..., n, d_v).
        scale: logit = scale·⟨q, k⟩.
    """
    logits = scale * np.matmul(np.asarray(queries), np.swapaxes(np.asarray(keys), -1, -2))
    weights = np.exp(logits)
    return np.matmul(weights, np.asarray(values)), weights.sum(axis=-1)


def attention(queries: ArrayLike, keys: ArrayLike, values: ArrayLike, *, scale: float) -> Floats:
    """Return exact attention, softmax(scale·QKᵀ)·V, shape (..., m, d_v)."""
    logits = scale * np.matmul(np.asarray(queries), np.swapaxes(np.asarray(keys), -1, -2))
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(np.matmul(weights, np.asarray(values)) / weights.sum(-1, keepdims=True))


_LOGITS_AT_ONCE = 2**22

# Noise beyond e^this is not told apart.
_HUGE_LOG = 300.0

# Times the scale: these are looked at where answers say nothing.
_OTHER_SCALES = (0.25, 0.5, 2.0)

_TOO_FEW = "Expected queries of shape (*heads, m, d) and at least one row of each."

# A scale is advised if answers differ there by so many times the noise, and so many times more
# clearly than they do now. The kernel's error comes on top.
_CLEAR, _BETTER = 2.0, 1.25
_MOST_TIMES = 10_000


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers to some queries, exact and private. NOT PRIVATE: for the owner of the rows.

    Attributes:
        exact: attention over the rows as they are, neither clipped nor noisy, shape (..., d_v).
        private: the memory's answers, likewise.
        stderr: the standard error of each that it tells, likewise.
        value_norm: the memory's public bound on the length of values.
        advice: what would help where answers say nothing, as measured on the rows; else None.
    """

    exact: Floats
    private: Floats
    stderr: Floats
    value_norm: float
    advice: str | None = None

    @cached_property
    def error(self) -> float:
        """The root mean square of private - exact, over all numbers of all answers."""
        return _root_mean_square(self.private - self.exact)

    @cached_property
    def predicted(self) -> float:
        """What it would be by the standard errors that the memory tells: noise and kernel.

        Answers are clamped to the ball of values, so no error counts for more than its radius.
        """
        return _root_mean_square(np.minimum(self.stderr, self.value_norm))

    @cached_property
    def within(self) -> float:
        """The share of numbers that are within 1.96 standard errors of exact attention."""
        return float(np.mean(np.abs(self.private - self.exact) <= WITHIN * self.stderr))

    @cached_property
    def spread(self) -> float:
        """How much exact answers differ from query to query, root mean square of each number.

        An error of this size tells nothing.
        """
        return _spread(self.exact)

    @property
    def says_nothing(self) -> bool:
        """Whether a constant would do as well, as far as more than one query can tell."""
        return self.exact.shape[-2] > 1 and self.error >= self.spread

    @property
    def verdict(self) -> str:
        """What the figures come to, in a sentence."""
        if self.exact.shape[-2] == 1:
            text = "One query alone does not tell whether answers differ as they should."
        elif self.says_nothing:
            text = (
                "These answers say less than a constant would: the error is no smaller than the "
                "differences between exact answers."
            )
            text += "" if self.advice is None else f" {self.advice}"
        else:
            share = 1 - (self.error / self.spread) ** 2
            text = f"The answers explain {share:.0%} of the differences between exact answers."
        if self.error > 1.5 * self.predicted:
            text += (
                " More is lost than noise and kernel explain: to clipping at the norms, or to"
                " records that are larger than group_rows."
            )
        return text


def compare(
    memory: Memory,
    keys: Array,
    values: Array,
    queries: ArrayLike,
    *,
    progress: bool = False,
) -> Comparison:
    """Return a memory's answers beside exact attention over the rows. NOT PRIVATE.

    Args:
        memory: built from these rows, or others.
        keys: shape (*heads, n, d), at least one row; or, with None for values, chunks of rows that
            can be read again, as `discreet.build` takes them, for instance `discreet.tables.Rows`.
        values: shape (*heads, n, d_v), or None.
        queries: shape (m, d), or (*heads, m, d).
        progress: whether to show a progress bar.
    """
    rows = RowSource.of(keys, values, None, Form(passes=True))
    layout = memory.released.layout
    [shape] = rows.shapes
    wanted = (layout.heads, layout.kernel.dim, layout.value_dim)
    if (shape.heads, shape.key_dim, shape.value_dim) != wanted:
        raise InvalidInput(f"Expected rows of (heads, d, d_v) = {wanted}, as the memory has.")
    asked = np.asarray(queries, dtype=np.float64)
    if asked.ndim != len(layout.heads) + 2 or asked.size == 0 or rows.count() == 0:
        raise InvalidInput(_TOO_FEW)
    private, stderr = memory.attend(asked, stderr=True)
    flat = asked.reshape(layout.head_count, -1, layout.kernel.dim)
    with (
        np.errstate(all="ignore"),
        progress_bar("exact attention", rows=rows.count(), show=progress) as advance,
    ):
        exact, log_masses = _exact(flat, rows, memory.scale, advance)
    if not np.all(np.isfinite(exact)):
        raise InvalidInput("Expected keys, values and queries whose products are finite.")
    made = Comparison(exact.reshape(private.shape), private, stderr, layout.value_norm)
    if not made.says_nothing:
        return made
    here = _Sums(memory, asked, exact, log_masses)
    return replace(made, advice=_advice(here, flat, rows))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Exact attention at some scale, and what the memory's noise would do to it there.

    Attributes:
        memory: whose noise it is.
        queries: as they were asked.
        exact: the answers, shape (heads, m, d_v).
        log_masses: logarithms of the denominators, shape (heads, m, 1).
        times: the scale, over that of the memory.
    """

    memory: Memory
    queries: Floats
    exact: Floats
    log_masses: Floats
    times: float = 1.0

    @property
    def clearness(self) -> float:
        """How much exact answers differ, over the error that the noise alone would make.

        The noise of a numerator is in proportion to e^(t/2) and to the length of a query's
        features, e^(t·‖q‖²/2) in units of its bound, for the largest logit t. As features are read
        plainly: reference points may leave less of it.
        """
        layout, kernel = self.memory.released.layout, self.memory.kernel
        numerators, _ = self.memory.plain.sums_stderr(self.queries)
        _, squared = kernel.clip_queries(self.queries)
        squared = squared.reshape(self.log_masses.shape)
        sharper = (self.times - 1) * kernel.largest_logit * (1 + squared) / 2
        logs = np.log(numerators.reshape(self.log_masses.shape)) + sharper - self.log_masses
        noise = np.exp(np.minimum(logs, _HUGE_LOG)) * np.hypot(1, self.exact / layout.real_tau)
        error = _root_mean_square(noise)
        return _spread(self.exact) / error if error else math.inf


def _advice(here: _Sums, queries: Floats, rows: RowSource) -> str:
    """Return what would help, by what the rows themselves show at this and at other scales."""
    memory, clear = here.memory, here.clearness
    if clear >= _CLEAR:
        return (
            "The noise is the smaller part of it: neither more rows nor a larger ε would do much "
            "against the rest."
        )
    others = []
    for times in _OTHER_SCALES:
        with np.errstate(all="ignore"):
            found = _exact(queries, rows, times * memory.scale, unseen)
        others.append(replace(here, exact=found[0], log_masses=found[1], times=times))
    best = max(others, key=lambda each: each.clearness)
    if best.clearness >= max(_CLEAR, _BETTER * clear):
        return (
            f"At scale={best.times * memory.scale:.3g}, by these rows, answers would differ by "
            f"{best.clearness:.2g} times the error that the noise makes; building again costs ε "
            "again."
        )
    said = "The noise is the larger part of it, and half, a quarter or twice the scale would not do"
    if not clear * _MOST_TIMES >= _CLEAR:
        return f"{said}."
    more = math.ceil(_CLEAR / clear)
    return f"{said}: at this scale it takes {more:,} times the rows, or about as many times the ε."


def _spread(answers: Floats) -> float:
    return _root_mean_square(answers - answers.mean(axis=-2, keepdims=True))


def _root_mean_square(numbers: Floats) -> float:
    return math.sqrt(np.mean(np.square(numbers)))


def _exact(
    queries: Floats, rows: RowSource, scale: float, advance: Advance
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return softmax(scale·QKᵀ)·V, shape (heads, m, d_v), a few rows at a time.

    And the logarithm of each denominator, shape (heads, m, 1). The largest logit so far is divided
    out of all sums, so that none of them overflows.
    """
    heads, count, _ = queries.shape
    [shape] = rows.shapes
    top = np.full((heads, count, 1), -np.inf)
    num, den = np.zeros((heads, count, shape.value_dim)), np.zeros((heads, count, 1))
    for part in _few_at_a_time(rows, max(_LOGITS_AT_ONCE // (heads * count), 1)):
        keys, values = (each.reshape(heads, -1, each.shape[-1]) for each in part)
        logits = scale * np.matmul(queries, keys.swapaxes(1, 2))
        higher = np.maximum(top, logits.max(axis=-1, keepdims=True))
        weights = np.exp(logits - higher)
        shrink = np.exp(top - higher)
        num = num * shrink + np.matmul(weights, values)
        den = den * shrink + weights.sum(axis=-1, keepdims=True)
        top = higher
        advance(keys.shape[1])
    if not np.all(den):
        raise InvalidInput(_TOO_FEW)
    return num / den, top + np.log(den)


def _few_at_a_time(rows: RowSource, step: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield keys and values of one pass over all rows, as `Table.read` has them."""
    for [table], _ in rows.chunks():
        for start in range(0, table.rows, step):
            yield table.read(slice(start, start + step))
