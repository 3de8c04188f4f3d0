"""Exact attention beside a memory's answers, for whoever owns the rows. NOT PRIVATE."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.memory.memory import Memory
from discreet.memory.progress import Advance, progress_bar
from discreet.memory.reader import WITHIN
from discreet.memory.rows import Table

_LOGITS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers to some queries, exact and private. NOT PRIVATE: for the owner of the rows.

    Attributes:
        exact: attention over the rows as they are, neither clipped nor noisy, shape (..., d_v).
        private: the memory's answers, likewise.
        stderr: the standard error of each that it tells, likewise.
        value_norm: the memory's public bound on the length of values.
    """

    exact: Floats
    private: Floats
    stderr: Floats
    value_norm: float

    @cached_property
    def error(self) -> float:
        """The root mean square of private - exact, over all numbers of all answers."""
        return math.sqrt(np.mean(np.square(self.private - self.exact)))

    @cached_property
    def predicted(self) -> float:
        """What it would be by the standard errors that the memory tells: noise and kernel.

        Answers are clamped to the ball of values, so no error counts for more than its radius.
        """
        return math.sqrt(np.mean(np.square(np.minimum(self.stderr, self.value_norm))))

    @cached_property
    def within(self) -> float:
        """The share of numbers that are within 1.96 standard errors of exact attention."""
        return float(np.mean(np.abs(self.private - self.exact) <= WITHIN * self.stderr))

    @cached_property
    def spread(self) -> float:
        """How much exact answers differ from query to query, root mean square of each number.

        An error of this size tells nothing.
        """
        return math.sqrt(np.mean(np.square(self.exact - self.exact.mean(axis=-2, keepdims=True))))

    @property
    def verdict(self) -> str:
        """What the figures come to, in a sentence."""
        if self.exact.shape[-2] == 1:
            text = "One query alone does not tell whether answers differ as they should."
        elif self.error >= self.spread:
            text = (
                "These answers say less than a constant would: the error is no smaller than the "
                "differences between exact answers. A softer scale would do better, say half; "
                "building again costs ε again."
            )
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
    keys: ArrayLike,
    values: ArrayLike,
    queries: ArrayLike,
    *,
    progress: bool = False,
) -> Comparison:
    """Return a memory's answers beside exact attention over the rows. NOT PRIVATE.

    Args:
        memory: built from these rows, or others.
        keys: shape (*heads, n, d), at least one row.
        values: shape (*heads, n, d_v).
        queries: shape (m, d), or (*heads, m, d).
        progress: whether to show a progress bar.
    """
    table = Table(keys, values)
    layout = memory.released.layout
    given = (table.heads, table.key_dim, table.value_dim)
    wanted = (layout.heads, layout.kernel.dim, layout.value_dim)
    if given != wanted:
        raise InvalidInput(f"Expected rows of (heads, d, d_v) = {wanted}, as the memory has.")
    asked = np.asarray(queries, dtype=np.float64)
    if asked.ndim != len(layout.heads) + 2 or asked.size == 0 or table.rows == 0:
        raise InvalidInput("Expected queries of shape (*heads, m, d) and at least one row of each.")
    private, stderr = memory.attend(asked, stderr=True)
    flat = asked.reshape(layout.head_count, -1, layout.kernel.dim)
    with (
        np.errstate(all="ignore"),
        progress_bar("exact attention", rows=table.rows, show=progress) as advance,
    ):
        exact = _exact(flat, table, memory.scale, advance)
    if not np.all(np.isfinite(exact)):
        raise InvalidInput("Expected keys, values and queries whose products are finite.")
    return Comparison(exact.reshape(private.shape), private, stderr, layout.value_norm)


def _exact(queries: Floats, table: Table, scale: float, advance: Advance) -> NDArray[Any]:
    """Return softmax(scale·QKᵀ)·V, shape (heads, m, d_v), a few rows at a time.

    The largest logit so far is divided out of all sums, so that none of them overflows.
    """
    heads, count, _ = queries.shape
    top = np.full((heads, count, 1), -np.inf)
    num, den = np.zeros((heads, count, table.value_dim)), np.zeros((heads, count, 1))
    step = max(_LOGITS_AT_ONCE // (heads * count), 1)
    for start in range(0, table.rows, step):
        keys, values = (
            part.reshape(heads, -1, part.shape[-1])
            for part in table.read(slice(start, start + step))
        )
        logits = scale * np.matmul(queries, keys.swapaxes(1, 2))
        higher = np.maximum(top, logits.max(axis=-1, keepdims=True))
        weights = np.exp(logits - higher)
        shrink = np.exp(top - higher)
        num = num * shrink + np.matmul(weights, values)
        den = den * shrink + weights.sum(axis=-1, keepdims=True)
        top = higher
        advance(keys.shape[1])
    return num / den
