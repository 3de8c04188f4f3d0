"""Ways to answer attention privately: the paper's, and what else there is, at equal (ε, δ).

Each is (ε, δ + δ')-private in total when one row is replaced, the trees and the memory by what they
compose themselves, the others by the Gaussian mechanism with the sensitivity that is derived here.
The noise is drawn from seeds: for measurements by the owner, NOT PRIVATE.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np

import discreet
from discreet import paper
from discreet._typing import Floats
from discreet.bench.paper_setup import normals, sigma
from discreet.bench.paper_task import Setting, Task
from discreet.features.taylor import Taylor
from discreet.noise import Entropy
from discreet.testing import Seeded

Method = Callable[[Setting, Task, int], Floats]


def zero(setting: Setting, task: Task, seed: int) -> Floats:  # noqa: ARG001
    """Answer zero: the best constant that needs no data."""
    return np.zeros_like(task.truth)


def mean(setting: Setting, task: Task, seed: int) -> Floats:
    """Answer the noisy mean of V to every query: a replaced row moves it by 2·R_w·√d_v/n."""
    change = 2 * setting.bound * math.sqrt(setting.columns) / setting.rows
    noisy = task.values.mean(axis=0) + _gaussian(setting, change, setting.columns, seed)
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
    noise = scale * _gaussian(setting, change, (len(task.queries), setting.columns + 1), seed)
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
    kernel = Taylor.on_box(setting.dim, upper=setting.upper, eps_s=setting.eps_s)
    bound = setting.bound * math.sqrt(setting.columns)
    weights = np.concatenate([task.values, np.full((setting.rows, 1), bound)], axis=1)
    sums = kernel(task.keys).T @ weights
    sums += _gaussian(setting, direct_change(setting), sums.shape, seed)
    answers = kernel(task.queries) @ sums
    return _attention(setting, answers[:, :-1], answers[:, -1] / bound)


def direct_change(setting: Setting) -> float:
    """Return how far a replaced row moves Σ P(x_i)⊗[w_i; τ], in L2 norm.

    The inner product of [w; τ] and [w'; τ] is not negative, because τ ≥ ‖w‖, nor is that of features
    of points in [0, R]^d. So the squared distance between what two rows add is at most the sum of
    their squared norms, 2·‖P(R, ..., R)‖²·2τ².
    """
    kernel = Taylor.on_box(setting.dim, upper=setting.upper, eps_s=setting.eps_s)
    largest = float(np.linalg.norm(kernel.feature_bounds(setting.upper)))
    return 2 * largest * setting.bound * math.sqrt(setting.columns)


def memory(setting: Setting, task: Task, seed: int) -> Floats:
    """Ask `discreet.build`'s memory: logits ⟨q, k⟩/d of keys and queries of norm R·√d."""
    norm = setting.upper * math.sqrt(setting.dim)
    with quietly():
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
        return structure(setting, task, Seeded(seed), **options).query(task.queries)

    return ask


def structure(
    setting: Setting,
    task: Task,
    entropy: Entropy,
    **options: Any,  # noqa: ANN401
) -> paper.DPCrossAttention:
    """Return the paper's structure for a setting."""
    with quietly():
        return paper.DPCrossAttention(
            task.keys,
            task.values,
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


def _gaussian(setting: Setting, change: float, shape: int | tuple[int, ...], seed: int) -> Floats:
    """Return Gaussian noise for a replaced row that changes what is released by so much (L2)."""
    return change * sigma(setting.epsilon, setting.total_delta) * normals(shape, seed)


def _attention(setting: Setting, numerator: Floats, denominator: Floats) -> Floats:
    """Divide, clamped to what is public, as `DPCrossAttention.query` does."""
    most = setting.rows * math.exp(setting.upper**2)
    safe = np.clip(denominator, setting.rows, most)
    return np.clip(numerator / safe[:, None], -setting.bound, setting.bound)


@contextmanager
def quietly() -> Iterator[None]:
    """Hold back warnings: that answers are noise, or ε too large, is what is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
