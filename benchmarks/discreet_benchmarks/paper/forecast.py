"""The noise and the errors of the paper's cross-attention by formulas: for any size, built or not.

A `Design` is a structure as far as its noise goes. Node variances are in units of a weight, as in
`discreet.paper.design`; `tests/benchmarks` compares all of it with structures that were built.

Forecasts: the answer without noise is the Taylor polynomial's; of trees, at the net's points. The
noise of one copy adds up hundreds of nodes and is drawn here as one normal number of the right
variance; then come the median, the quotient and the clamps. Measured errors are beside it on the
page.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from scipy import integrate, special, stats

from discreet import accounting
from discreet._typing import Floats
from discreet.features.taylor import Taylor
from discreet.paper import bounds
from discreet.paper.bounds import Box, Logits, Net
from discreet.paper.design import compose_equal, tight_node_noise
from discreet.paper.options import Budget, Noise, replace_privacy
from discreet.paper.softmax import (
    MOMENTS,
    NodeBudgets,
    paper_budgets,
    paper_composition,
)
from discreet.privacy import Privacy
from discreet_benchmarks.paper.attention import (
    LARGEST,
    PAPER,
    TIGHT,
    Setting,
    Task,
    direct_change,
    item_change,
    normals,
    sigma,
    task_of,
)

# What a replaced row changes in a tree, in units of a weight: it takes -1 and gives +1.
_CHANGE = 2.0

# From so many nodes on their loss is all but normal, and the variance of one grows as their number:
# from a hundred thousand to a hundred million the ratio changes by less than a thousandth.
_MANY = 10**5

_DRAWS = 200
# Of how many rows the exact sums are taken; more rows are more of the same.
_SAMPLE = 4096

_BUDGET = Budget(1.0, 1e-6, 1e-6)


@dataclass(frozen=True)
class Design:
    """A cross-attention without data.

    Attributes:
        dim: d.
        levels: log2 of the number of rows.
        structures: how many share the budget: d_v + 1, or 2 for one entry.
        copies: l.
        upper: R.
        eps_s: relative error of the kernel.
        p_f: how often any answer may miss its bound.
        budget: of the whole.
    """

    dim: int
    levels: int
    structures: int
    copies: int = 1
    upper: float = 1.0
    eps_s: float = 0.1
    p_f: float = 0.01
    budget: Budget = _BUDGET

    @cached_property
    def _logits(self) -> Logits:
        return Logits.of(self.dim, Box(0.0, self.upper), eps_s=self.eps_s, degree=None, scale=None)

    @property
    def kernel(self) -> Taylor:
        """The feature map."""
        return self._logits.kernel

    @property
    def net(self) -> Net:
        """The net that queries are snapped to."""
        return self._logits.net(None)

    @property
    def one(self) -> Budget:
        """The budget of one structure of one copy."""
        return self.budget.share(self.structures * self.copies)

    @property
    def nodes(self) -> int:
        """How many nodes a row touches, those of the sums of weights included."""
        trees = self.kernel.features * self.structures + self.structures - 1
        return self.levels * MOMENTS * trees * self.copies

    def as_built(self) -> "Design":
        """Return it with the copies of the code: an exact binomial tail over the net in use."""
        failure = self.net.failure_per_point(self.p_f / self.structures)
        return replace(self, copies=bounds.copies_needed(failure))

    def as_proved(self) -> "Design":
        """Return it with the copies of the proof: exp(-0.1²·0.99·l/2) on (5R/ε_0)^d net points."""
        points = self.dim * math.log(5 * self.upper**2 / self.eps_s)
        logarithm = points + math.log(self.structures / self.p_f)
        return replace(self, copies=math.ceil(2 * logarithm / (0.1**2 * 0.99)))

    def with_rows(self, power: int) -> "Design":
        """Return it for 2^power rows."""
        return replace(self, levels=power)


def laplace_variance(epsilon: float, delta: float) -> float:
    """Return the variance of truncated Laplace noise that hides a replaced row.

    The continuous law of the paper, b = Δ/ε on [-B, B]; the integer law is within a lattice step.
    """
    scale = _CHANGE / epsilon
    end = math.log1p(math.expm1(epsilon) / (2 * delta))  # B/b
    tail = math.exp(-end)
    return scale**2 * (2 - tail * (end**2 + 2 * end + 2)) / (1 - tail)


def worst_noise(design: Design, node_variance: float) -> float:
    """Return the standard deviation of one copy's denominator at the worst query, y = (R, ..., R).

    Its answer has nodes of weights ½·Γ²·(1, 2, 1) on the way to y and ½·Γ² on the way to zero.
    """
    squares = float(np.sum(design.kernel.feature_bounds(design.upper) ** 4))
    return math.sqrt(0.25 * node_variance * squares * design.levels * (2 + 4 + 1))


def answer_noise(design: Design, node_variance: float) -> float:
    """Return the standard deviation of the answer, the median of all copies."""
    return worst_noise(design, node_variance) * median_factor(design.copies)


def query_variances(
    design: Design, queries: Floats, *, node: float, totals: float
) -> tuple[Floats, Floats]:
    """Return one copy's noise variances at queries, shape (m,): of a numerator with R_w = 1, and D.

    Nodes on the way to the query and on the way to zero cancel in the second moments, until the two
    paths part. The numerator's sum of weights is private and read from L nodes of its own trees.

    Args:
        design: the structure.
        queries: shape (m, d).
        node: variance of a node of the feature trees.
        totals: variance of a node of the trees for s_w.
    """
    ranges = design.kernel.feature_bounds(design.upper)
    features = design.kernel(queries)
    positions = np.clip(features / ranges, 0.0, 1.0)
    leaf = np.minimum(np.floor(positions * 2.0**design.levels), 2.0**design.levels - 1)
    apart = 2 * np.ceil(np.log2(leaf + 1))
    squares = apart + design.levels * (4 * positions**2 + positions**4)
    denominator = 0.25 * node * np.sum(ranges**4 * squares, axis=-1)
    norms = np.sum(features**2, axis=-1)
    return denominator + 0.25 * norms**2 * totals * design.levels, denominator


@cache
def median_factor(copies: int) -> float:
    """Return the standard deviation of the median of so many standard normal copies.

    One copy adds up hundreds of nodes, so that its noise is close to normal. For many copies by the
    limit, √(π/2l). An even number of them has the mean of the middle two for a median.
    """
    if copies == 1:
        return 1.0
    if copies > 40:
        return math.sqrt(math.pi / (2 * copies))
    if copies % 2 == 0:
        return _even_median_factor(copies)
    half = (copies - 1) // 2

    def density(x: float) -> float:
        below = stats.norm.cdf(x)
        return float(
            (below * (1 - below)) ** half * stats.norm.pdf(x) / special.beta(half + 1, half + 1)
        )

    return math.sqrt(integrate.quad(lambda x: x * x * density(x), -9, 9)[0])


def _even_median_factor(copies: int) -> float:
    """Return the same for an even number, from the joint density of the middle two."""
    half = copies // 2
    log_count = special.gammaln(copies + 1) - 2 * special.gammaln(half)

    def density(y: float, x: float) -> float:
        log = (half - 1) * (stats.norm.logcdf(x) + stats.norm.logsf(y)) + log_count
        square = ((x + y) / 2) ** 2
        return float(square * math.exp(log + stats.norm.logpdf(x) + stats.norm.logpdf(y)))

    return math.sqrt(integrate.dblquad(density, -8, 8, lambda x: x, 8, epsabs=1e-7)[0])


def paper_variance(design: Design, c: float) -> float:
    """Return the variance of a feature node under Algorithm 3's split with this c."""
    node = _split(design, c).features
    return laplace_variance(node.epsilon, node.delta)


def totals_variance(design: Design) -> float:
    """Return the variance of a node of the trees for s_w under Algorithm 3's split."""
    node = _split(design, 1.0).totals
    return laplace_variance(node.epsilon, node.delta)


def _split(design: Design, c: float) -> NodeBudgets:
    return paper_budgets(design.one, c=c, features=design.kernel.features, levels=design.levels)


def largest_c(design: Design) -> float:
    """Return the largest c whose composition by the theorems stays within the whole budget."""

    def spent(c: float) -> float:
        column, denominator = (_one_structure(design, c, private_total=p) for p in (True, False))
        parts = [(column, (design.structures - 1) * design.copies), (denominator, design.copies)]
        return accounting.basic(parts).epsilon

    return _largest(spent, design.budget.epsilon)


def largest_c_of_third(design: Design) -> float:
    """Return the largest c whose feature trees stay within the third of ε that is theirs."""

    def spent(c: float) -> float:
        return _one_structure(design, c, private_total=False).epsilon

    return _largest(spent, design.one.epsilon / 3)


def _one_structure(design: Design, c: float, *, private_total: bool) -> Privacy:
    return paper_composition(
        _split(design, c),
        design.one,
        features=design.kernel.features,
        levels=design.levels,
        private_total=private_total,
    )


def spent_variance(design: Design) -> float:
    """Return the variance of a node if the theorems spend all of the budget on nodes alike.

    Each structure is r DPTreeDistance, and one more for s_w where it is private, all alike.
    """
    lines, one = design.kernel.features + 1, design.one

    def spent(epsilon: float) -> float:
        line = replace_privacy(epsilon, one.delta / lines)
        column, denominator = (
            compose_equal(line, count, delta_prime=one.prime) for count in (lines, lines - 1)
        )
        parts = [(column, (design.structures - 1) * design.copies), (denominator, design.copies)]
        return accounting.basic(parts).epsilon

    share = design.levels * MOMENTS
    epsilon = _largest(spent, design.budget.epsilon)
    return laplace_variance(epsilon / share, one.delta / lines / share)


def tight_variance(design: Design, kind: Noise = Noise.TRUNCATED_LAPLACE) -> float:
    """Return the variance of a node by the privacy loss distribution of all of them together."""
    count = min(design.nodes, _MANY)
    node = tight_node_noise(kind, target=design.budget.total, count=count)
    return node.variance * design.nodes / count


def _largest(spent: Callable[[float], float], budget: float) -> float:
    """Return the largest argument of a growing function within a budget, by halving."""
    low, high = 1e-9, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) <= budget else (low, middle)
    return low


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
    """Return the relative error that trees of this name (`attention.TREES`) will have."""
    task, design = sampled_task(setting), design_of(setting)
    if name == TIGHT:
        node = totals = tight_variance(design)
    else:
        design = design.as_built()
        c = {PAPER: 0.1, LARGEST: largest_c(design)}[name]
        node, totals = paper_variance(design, c), totals_variance(design)
    at = design.net.snap(task.queries)
    variances = query_variances(design, at, node=node, totals=totals)
    spreads = (np.sqrt(variances[0]), np.sqrt(variances[1]))
    sums = _polynomial_sums(design.kernel, task, at, setting.bound)
    return _relative_error(setting, task, _Sums(*sums, spreads, design.copies))


def without_noise(setting: Setting) -> float:
    """Return the relative error that trees have without any noise: kernel and snapping."""
    task, design = sampled_task(setting), design_of(setting)
    at = design.net.snap(task.queries)
    none = np.zeros(len(at))
    sums = _polynomial_sums(design.kernel, task, at, setting.bound)
    return _relative_error(setting, task, _Sums(*sums, (none, none)))


def forecast_direct(setting: Setting) -> float:
    """Return the relative error that Σ w·P(x), released directly, will have."""
    task, kernel = sampled_task(setting), design_of(setting).kernel
    noise = _sigma(setting, direct_change(setting) / setting.bound)
    spread = noise * np.linalg.norm(kernel(task.queries), axis=1)
    sums = _polynomial_sums(kernel, task, task.queries, setting.bound)
    both = (spread, spread / math.sqrt(setting.columns))
    return _relative_error(setting, task, _Sums(*sums, both))


def forecast_items(setting: Setting) -> float:
    """Return the relative error that noise on every item will have."""
    task = sampled_task(setting)
    change = math.sqrt(len(task.queries)) * item_change(setting) / setting.bound
    spread = np.full(len(task.queries), math.sqrt(setting.rows) * _sigma(setting, change))
    numerator, denominator = task.sums
    sums = _Sums(numerator[:, 0] / setting.bound, denominator, (spread, spread))
    return _relative_error(setting, task, sums)


def sampled_task(setting: Setting) -> Task:
    """Return the task of a setting with fewer rows: its signal is the same, to three digits."""
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
