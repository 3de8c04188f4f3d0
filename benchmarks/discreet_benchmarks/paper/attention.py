"""A task with a signal for attention, and ways to answer it privately at equal (ε, δ).

The task: attention whose exact answers differ from query to query as far as they can. A row lies
near one of two opposite corners of [0, R]^d, and its value says near which: -R_w or R_w. Queries lie
near the corners, too. Logits are ⟨q, k⟩/d ∈ [0, R²], so that attention is nearly flat: between two
queries the weights A/D of the rows change by a factor of at most e^(R²) from one row to another,
hence by at most tanh(R²/4) in total variation, and answers by 2·R_w·tanh(R²/4). Rows at the corners
reach that, so no task has a larger spread of its exact answers.

The methods: each is (ε, δ + δ')-private in total when one row is replaced, the trees and the memory
by what they compose themselves, the others by the Gaussian mechanism with the sensitivity that is
derived here. The noise is drawn from seeds: for measurements by the owner, NOT PRIVATE.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet import paper
from discreet._typing import Floats
from discreet.accounting import gaussian_sigma
from discreet.kernels import Taylor
from discreet.noise import Entropy, RoundedGaussian
from discreet.paper import oracle
from discreet.paper.oracle import spread
from discreet.testing import Seeded

# How far from its corner a row or query lies, at most, in each coordinate, in units of R.
_NEAR = 0.05
QUERIES = 100


def normals(shape: int | tuple[int, ...], seed: int) -> Floats:
    """Return standard normal numbers, the same for the same seed: for measurements, NOT PRIVATE.

    From the package's own law, so that randomness has one door.
    """
    steps = 2.0**30
    return RoundedGaussian(sigma=steps).sample(shape, entropy=Seeded(seed)) / steps


@cache
def sigma(epsilon: float, delta: float) -> float:
    """Return the Gaussian mechanism's σ for a change of one."""
    return gaussian_sigma(epsilon=epsilon, delta=delta)


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

    @property
    def kernel(self) -> Taylor:
        """The paper's features of logits ⟨q, k⟩/d."""
        return Taylor.on_box(self.dim, upper=self.upper, eps_s=self.eps_s)

    def noise(self, change: float, shape: int | tuple[int, ...], seed: int) -> Floats:
        """Return Gaussian noise that hides a change of so much (L2) by a replaced row."""
        return change * sigma(self.epsilon, self.total_delta) * normals(shape, seed)

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


def task_of(setting: Setting) -> Task:
    """Return the task of a setting: the same for any budget."""
    return _task(setting.rows, setting.dim, setting.columns, setting.upper, setting.bound)


@lru_cache(maxsize=8)
def _task(rows: int, dim: int, columns: int, upper: float, bound: float) -> Task:
    """Return rows, queries and answers.

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


def _near_corners(points: Floats, far: NDArray[np.bool_], upper: float) -> Floats:
    """Return points of [0, 1]^d moved near to (R, ..., R) where `far` says so, else near to zero."""
    return np.asarray(upper * np.where(far[:, None], 1 - _NEAR * points, _NEAR * points))


def rows_and_weights(rows: int, dim: int, columns: int = 1) -> tuple[Floats, Floats]:
    """Return points in [0, 1]^dim and weights in ±1, one for each row and column: no signal."""
    both = spread(rows, dim + columns)
    return both[:, :dim], 2 * both[:, dim:] - 1


Method = Callable[[Setting, Task, int], Floats]


def zero(setting: Setting, task: Task, seed: int) -> Floats:  # noqa: ARG001
    """Answer zero: the best constant that needs no data."""
    return np.zeros_like(task.truth)


def mean(setting: Setting, task: Task, seed: int) -> Floats:
    """Answer the noisy mean of V to every query: a replaced row moves it by 2·R_w·√d_v/n."""
    change = 2 * setting.bound * math.sqrt(setting.columns) / setting.rows
    noisy = task.values.mean(axis=0) + setting.noise(change, setting.columns, seed)
    return np.broadcast_to(np.clip(noisy, -setting.bound, setting.bound), task.truth.shape)


def items(setting: Setting, task: Task, seed: int) -> Floats:
    """Add noise to every item w_i·exp(⟨x_i, y⟩/d) and exp(⟨x_i, y⟩/d), for each of the m queries.

    The paper's Discussion. All m queries are one Gaussian mechanism, which is the best composition
    there is; a sum of n items has noise of √n times that of one. Items of the denominator are taken
    times R_w, so that both sums have noise of one size.
    """
    change = math.sqrt(len(task.queries)) * item_change(setting)
    scale = math.sqrt(setting.rows)
    numerator, denominator = task.sums
    noise = scale * setting.noise(change, (len(task.queries), setting.columns + 1), seed)
    return _attention(
        setting, numerator + noise[:, :-1], denominator + noise[:, -1] / setting.bound
    )


def item_change(setting: Setting) -> float:
    """Return how far a replaced row moves its items for one query, in L2 norm.

    They are e·[w; R_w] with e in [1, e^(R²)] and w in [-R_w, R_w]^d_v. A norm is convex, so the
    largest distance is between corners; the columns are alike, so all of w flips or none.
    """
    ends, signs = (1.0, math.exp(setting.upper**2)), (-1.0, 1.0)
    squares = [
        setting.columns * (e * s - f * t) ** 2 + (e - f) ** 2
        for e, f, s, t in product(ends, ends, signs, signs)
    ]
    return setting.bound * math.sqrt(max(squares))


def direct(setting: Setting, task: Task, seed: int) -> Floats:
    """Release Σ P(x_i)⊗[w_i; τ], the r·(d_v + 1) numbers that a query needs, with Gaussian noise.

    τ = R_w·√d_v, the largest ‖w‖.
    """
    kernel = setting.kernel
    bound = setting.bound * math.sqrt(setting.columns)
    weights = np.concatenate([task.values, np.full((setting.rows, 1), bound)], axis=1)
    sums = kernel(task.keys).T @ weights
    sums += setting.noise(direct_change(setting), sums.shape, seed)
    answers = kernel(task.queries) @ sums
    return _attention(setting, answers[:, :-1], answers[:, -1] / bound)


def direct_change(setting: Setting) -> float:
    """Return how far a replaced row moves Σ P(x_i)⊗[w_i; τ], in L2 norm.

    The inner product of [w; τ] and [w'; τ] is not negative, because τ ≥ ‖w‖, nor is that of features
    of points in [0, R]^d. So the squared distance between what two rows add is at most the sum of
    their squared norms, 2·‖P(R, ..., R)‖²·2τ².
    """
    kernel = setting.kernel
    largest = float(np.linalg.norm(kernel.feature_bounds(setting.upper)))
    return 2 * largest * setting.bound * math.sqrt(setting.columns)


def memory(setting: Setting, task: Task, seed: int) -> Floats:
    """Ask `discreet.build`'s memory: logits ⟨q, k⟩/d of keys and queries of norm R·√d."""
    norm = setting.upper * math.sqrt(setting.dim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it is not private, or mostly noise
        built = discreet.build(
            task.keys,
            task.values,
            epsilon=setting.epsilon,
            delta=setting.total_delta,
            neighbours="replace",
            key_norm=norm,
            query_norm=norm,
            value_norm=setting.bound * math.sqrt(setting.columns),
            scale=1 / setting.dim,
            eps_s=setting.eps_s,
            entropy=Seeded(seed),
        )
        return np.asarray(built.attend(task.queries))


def trees(**options: Any) -> Method:  # noqa: ANN401
    """Return a method that asks `DPCrossAttention`, whole vector, with these options."""

    def ask(setting: Setting, task: Task, seed: int) -> Floats:
        return structure(setting, task.keys, task.values, Seeded(seed), **options).query(
            task.queries
        )

    return ask


def structure(
    setting: Setting,
    keys: Floats,
    values: Floats,
    entropy: Entropy | None,
    **options: Any,  # noqa: ANN401
) -> paper.DPCrossAttention:
    """Return the paper's structure over some rows for a setting."""
    with warnings.catch_warnings():
        # That answers are noise, or ε too large, is what is measured.
        warnings.simplefilter("ignore", UserWarning)
        return paper.DPCrossAttention(
            keys,
            values,
            upper=setting.upper,
            value_bound=setting.bound,
            epsilon=setting.epsilon,
            delta=setting.delta,
            delta_prime=setting.delta_prime,
            eps_s=setting.eps_s,
            p_f=setting.p_f,
            entropy=entropy,
            **options,
        )


PAPER, LARGEST, TIGHT = "trees, c = 0.1", "trees, largest c", "trees, tight"
ZERO, MEAN, ITEMS, DIRECT, MEMORY = (
    "zero",
    "noisy mean of V",
    "noise on every item",
    "Σ w·P(x) directly",
    "memory",
)

# What each kind of accounting asks of `DPCrossAttention`.
TREES: dict[str, dict[str, Any]] = {
    PAPER: {"c": 0.1},
    LARGEST: {"c": "largest"},
    TIGHT: {"accounting": "tight"},
}
METHODS: dict[str, Method] = {
    ZERO: zero,
    MEAN: mean,
    ITEMS: items,
    **{name: trees(**options) for name, options in TREES.items()},
    DIRECT: direct,
    MEMORY: memory,
}


def _attention(setting: Setting, numerator: Floats, denominator: Floats) -> Floats:
    """Divide, clamped to what is public, as `DPCrossAttention.query` does."""
    most = setting.rows * math.exp(setting.upper**2)
    safe = np.clip(denominator, setting.rows, most)
    return np.clip(numerator / safe[:, None], -setting.bound, setting.bound)
