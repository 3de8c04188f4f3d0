"""A task with a signal: attention whose exact answers differ from query to query as far as they can.

A row lies near one of two opposite corners of [0, R]^d, and its value says near which: -R_w or R_w.
Queries lie near the corners, too. Logits are ⟨q, k⟩/d ∈ [0, R²], so that attention is nearly flat:
between two queries the weights A/D of the rows change by a factor of at most e^(R²) from one row to
another, hence by at most tanh(R²/4) in total variation, and answers by 2·R_w·tanh(R²/4). Rows at the
corners reach that, so no task has a larger spread of its exact answers.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Floats
from discreet.bench.points import spread
from discreet.paper import oracle

# How far from its corner a row or query lies, at most, in each coordinate, in units of R.
_NEAR = 0.05
QUERIES = 100


@dataclass(frozen=True)
class Setting:
    """One point of an experiment: all that there is to set.

    Attributes:
        rows: n.
        dim: d.
        columns: d_v.
        upper: R.
        bound: R_w.
        epsilon: of the whole vector and all queries.
        delta: for truncation.
        delta_prime: for composition; every method has δ + δ' in total.
        eps_s: relative error of the kernel.
        p_f: how often any answer of the trees may miss its bound.
    """

    rows: int = 16384
    dim: int = 2
    columns: int = 1
    upper: float = 1.0
    bound: float = 1.0
    epsilon: float = 1.0
    delta: float = 1e-6
    delta_prime: float = 1e-6
    eps_s: float = 0.1
    p_f: float = 0.01

    @property
    def total_delta(self) -> float:
        """δ + δ'."""
        return self.delta + self.delta_prime

    @property
    def largest_spread(self) -> float:
        """The largest standard deviation that exact answers can have: R_w·tanh(R²/4)."""
        return self.bound * math.tanh(self.upper**2 / 4)

    def changed(self, **changes: Any) -> "Setting":  # noqa: ANN401
        """Return it with other values."""
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class Task:
    """Rows, queries and exact answers.

    Attributes:
        keys: shape (n, d), in [0, R].
        values: shape (n, d_v), R_w or -R_w.
        queries: shape (m, d), fresh: no method has seen them.
        sums: exact AV, shape (m, d_v), and D, shape (m,).
    """

    keys: Floats
    values: Floats
    queries: Floats
    sums: tuple[Floats, Floats]

    @cached_property
    def truth(self) -> Floats:
        """Exact attention, shape (m, d_v)."""
        numerator, denominator = self.sums
        return numerator / denominator[:, None]

    @property
    def spread(self) -> float:
        """Root mean square error of the best constant answer (one for each column)."""
        return float(np.sqrt(np.mean((self.truth - self.truth.mean(axis=0)) ** 2)))

    def relative_error(self, answers: Floats) -> float:
        """Return the root mean square error of answers, in units of the best constant's."""
        return float(np.sqrt(np.mean((answers - self.truth) ** 2))) / self.spread


@lru_cache(maxsize=8)
def task(rows: int, dim: int, columns: int, upper: float, bound: float) -> Task:
    """Return the task of a setting.

    The share of rows near the far corner makes answers symmetric about zero, so that zero, which
    needs no data, is as good as the best constant.
    """
    both = spread(rows, dim + 1)
    gap = (1 - _NEAR) * upper**2 / 2  # between the two kinds of rows, at the middle of the queries
    far = both[:, dim] < 1 / (1 + math.exp(gap))
    signs = np.where(far[:, None], 1.0, -1.0) * (-1.0) ** np.arange(columns)
    keys = _near_corners(both[:, :dim], far, upper)
    asked = spread(QUERIES, dim, start=0.5)
    queries = _near_corners(asked, np.arange(QUERIES) % 2 == 0, upper)
    values = bound * signs
    return Task(keys, values, queries, oracle.attention_sums(queries, keys, values))


def task_of(setting: Setting) -> Task:
    """Return the task of a setting."""
    return task(setting.rows, setting.dim, setting.columns, setting.upper, setting.bound)


def _near_corners(points: Floats, far: NDArray[np.bool_], upper: float) -> Floats:
    """Return points of [0, 1]^d moved near to (R, ..., R) where `far` says so, else near to zero."""
    return np.asarray(upper * np.where(far[:, None], 1 - _NEAR * points, _NEAR * points))


def rows_and_weights(rows: int, dim: int, columns: int = 1) -> tuple[Floats, Floats]:
    """Return points in [0, 1]^dim and weights in ±1, one for each row and column: no signal."""
    both = spread(rows, dim + columns)
    return both[:, :dim], 2 * both[:, dim:] - 1
