"""What errors will be, from exact variances: for structures of any size.

The answer without noise is the Taylor polynomial's; of trees, at the net's points. The noise of one
copy adds up hundreds of nodes and is drawn here as one normal number of the right variance; then
come the median, the quotient and the clamps. Measured errors are beside it on the page.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet._typing import Floats
from discreet.bench import paper_noise
from discreet.bench.paper_methods import LARGEST, PAPER, TIGHT, direct_change, item_change
from discreet.bench.paper_noise import Design
from discreet.bench.paper_setup import normals, sigma
from discreet.bench.paper_task import Setting, Task, task_of
from discreet.kernels import Taylor
from discreet.paper.options import Budget

_DRAWS = 200
# Of how many rows the exact sums are taken; more rows are more of the same.
_SAMPLE = 4096


@dataclass(frozen=True)
class _Sums:
    """A numerator and a denominator without noise, and the noise of one copy, at each query.

    For R_w = 1 and the sampled rows; noise is for all rows.
    """

    numerator: Floats
    denominator: Floats
    spreads: tuple[Floats, Floats]
    copies: int = 1


def design_of(setting: Setting) -> Design:
    """Return the design of one copy for the whole vector of a setting."""
    return Design(
        setting.dim,
        int(math.log2(setting.rows)),
        setting.columns + 1,
        upper=setting.upper,
        eps_s=setting.eps_s,
        p_f=setting.p_f,
        budget=Budget(setting.epsilon, setting.delta, setting.delta_prime),
    )


def forecast_trees(setting: Setting, name: str) -> float:
    """Return the relative error that trees of this name (`paper_methods.TREES`) will have."""
    task, design = _sample(setting), design_of(setting)
    if name == TIGHT:
        node = totals = paper_noise.tight_variance(design)
    else:
        design = design.as_built()
        c = {PAPER: 0.1, LARGEST: paper_noise.largest_c(design)}[name]
        node, totals = paper_noise.paper_variance(design, c), paper_noise.totals_variance(design)
    at = design.net.snap(task.queries)
    variances = paper_noise.query_variances(design, at, node=node, totals=totals)
    spreads = (np.sqrt(variances[0]), np.sqrt(variances[1]))
    sums = _polynomial_sums(design.kernel, task, at, setting.bound)
    return _relative_error(setting, task, _Sums(*sums, spreads, design.copies))


def without_noise(setting: Setting) -> float:
    """Return the relative error that trees have without any noise: kernel and snapping."""
    task, design = _sample(setting), design_of(setting)
    at = design.net.snap(task.queries)
    none = np.zeros(len(at))
    sums = _polynomial_sums(design.kernel, task, at, setting.bound)
    return _relative_error(setting, task, _Sums(*sums, (none, none)))


def forecast_direct(setting: Setting) -> float:
    """Return the relative error that Σ w·P(x), released directly, will have."""
    task, kernel = _sample(setting), design_of(setting).kernel
    noise = _sigma(setting, direct_change(setting) / setting.bound)
    spread = noise * np.linalg.norm(kernel(task.queries), axis=1)
    sums = _polynomial_sums(kernel, task, task.queries, setting.bound)
    both = (spread, spread / math.sqrt(setting.columns))
    return _relative_error(setting, task, _Sums(*sums, both))


def forecast_items(setting: Setting) -> float:
    """Return the relative error that noise on every item will have."""
    task = _sample(setting)
    change = math.sqrt(len(task.queries)) * item_change(setting) / setting.bound
    spread = np.full(len(task.queries), math.sqrt(setting.rows) * _sigma(setting, change))
    numerator, denominator = task.sums
    sums = _Sums(numerator[:, 0] / setting.bound, denominator, (spread, spread))
    return _relative_error(setting, task, sums)


def _sample(setting: Setting) -> Task:
    return task_of(setting.changed(rows=min(setting.rows, _SAMPLE)))


def _sigma(setting: Setting, change: float) -> float:
    return change * sigma(setting.epsilon, setting.total_delta)


def _polynomial_sums(
    kernel: Taylor, task: Task, queries: Floats, bound: float
) -> tuple[Floats, Floats]:
    """Return the first column of AV, with R_w = 1, and D, with the kernel's polynomial for exp."""
    products = kernel(queries) @ kernel(task.keys).T
    return products @ task.values[:, 0] / bound, products.sum(axis=1)


def _relative_error(setting: Setting, task: Task, sums: _Sums) -> float:
    """Return the error of the first column's clamped quotient, in units of the best constant's."""
    more = setting.rows / len(task.keys)
    numerator, denominator = (
        more * exact[:, None] + spread[:, None] * _medians(sums.copies, len(task.queries), seed)
        for seed, (exact, spread) in enumerate(
            zip((sums.numerator, sums.denominator), sums.spreads, strict=True)
        )
    )
    safe = np.clip(denominator, setting.rows, setting.rows * math.exp(setting.upper**2))
    answers = setting.bound * np.clip(numerator / safe, -1, 1)
    return float(np.sqrt(np.mean((answers - task.truth[:, :1]) ** 2))) / task.spread


@cache
def _medians(copies: int, queries: int, seed: int) -> Floats:
    """Return medians of standard normal copies, shape (queries, draws)."""
    return np.asarray(np.median(normals((copies, queries, _DRAWS), seed), axis=0))
