"""Better trees: ranges and ℓ1 distances from the same leaves, under one tight (ε, δ).

With variances of ranges in noisy trees, and what no factorisation with Gaussian noise can beat: in
units of a node's variance, or of a change times σ. The page has the proofs in words.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes

from discreet import accounting, paper
from discreet._typing import Floats, Integers
from discreet.noise import Entropy
from discreet.paper.options import Noise
from discreet.paper.oracle import spread
from discreet.pictures.style import legend_below
from discreet.testing import Seeded, Silent
from discreet_benchmarks.paper import page
from discreet_benchmarks.paper.attention import sigma
from discreet_benchmarks.paper.page import Size, claim, listed, number, paragraph, table

_EPSILON, _DELTA = 1.0, 1e-6
_RANGES = 1000
RANGES, DISTANCES = "ranges", "ℓ1 distances"
Tree = TypeVar("Tree", paper.DPTree, paper.DPTreeDistance)

# Each has what the one before has, and one thing more.
BINARY, GAUSSIAN, CONSISTENT, BEST = (
    "the paper's tree",
    "+ Gaussian noise",
    "+ least squares",
    "+ best width and noise",
)
TREES: dict[str, dict[str, Any]] = {
    BINARY: {},
    GAUSSIAN: {"noise": Noise.GAUSSIAN},
    CONSISTENT: {"noise": Noise.GAUSSIAN, "estimator": "consistent", "branching": 2},
    BEST: {"estimator": "consistent"},
}
_COLOURS = {BINARY: page.ORANGE, GAUSSIAN: page.AMBER, CONSISTENT: page.GREEN, BEST: page.BLUE}


_LAWS: dict[type, str] = {
    accounting.Gaussian: "Gaussian",
    accounting.DiscreteLaplace: "Laplace",
    accounting.TruncatedLaplace: "truncated Laplace",
}


@dataclass(frozen=True)
class Found:
    """Root mean square errors of one kind of query at one n.

    Attributes:
        what: the queries.
        leaves: n.
        measured: of each tree.
        predicted: likewise, from variances.
        design: of the best tree: its width and noise.
        by_theorem: of the paper's tree with the paper's accounting, predicted.
        bound: what no factorisation with Gaussian noise can beat.
        histogram: noise on every leaf, computed.
    """

    what: str
    leaves: int
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    design: str
    by_theorem: float
    bound: float
    histogram: float

    @property
    def ratio(self) -> float:
        """The best tree's error over the paper's."""
        return self.measured[BEST] / self.measured[BINARY]

    @property
    def cells(self) -> list[object]:
        """A row of the table."""
        return [
            self.what,
            self.leaves,
            f"[{number(self.by_theorem)}]",
            *(f"{number(self.measured[t])} [{number(self.predicted[t])}]" for t in TREES),
            f"**{self.ratio:.2f}**",
            number(self.bound),
            f"{self.measured[BEST] / self.bound:.2f}",
            f"[{number(self.histogram)}]",
        ]


def trees_page(out: Path, size: Size) -> list[str]:
    """Compare trees on ranges and on ℓ1 distances, with one another and with what is possible."""
    found = [
        each(leaves, size.builds * (12 if leaves < 2**14 else 8))
        for leaves in ((512,) if size.quick else (4096, 65536))
        for each in (measure_ranges, measure_distances)
    ]
    _picture(found, out / "paper-ranges.png")
    ranges = [each for each in found if each.what == RANGES]
    return page.section(
        "Better trees, and what is possible",
        _takeaway(found, ranges),
        _how(found, tolerance=0.25 if size.quick else 0.05),
        table(
            [
                "queries",
                "n",
                "paper's accounting",
                *TREES,
                "best / paper's tree",
                "lower bound",
                "best / bound",
                "noise on every leaf",
            ],
            [each.cells for each in found],
        ),
        page.image("error of trees for ranges and distances", "paper-ranges.png"),
        _lower_bound(ranges),
    )


def _takeaway(found: Sequence[Found], ranges: Sequence[Found]) -> list[str]:
    distances = [each for each in found if each.what == DISTANCES]
    return paragraph(
        claim(
            all(each.ratio <= 0.6 for each in found),
            "**Least squares over all levels, the right width and the right noise leave "
            + listed([f"{each.ratio:.2f} ({each.what}, n = {each.leaves})" for each in found])
            + " of the error of the paper's binary tree, under the same tight (ε, δ).**",
        ),
        claim(
            all(each.measured[BEST] < min(3 * each.bound, each.histogram / 2) for each in ranges)
            and all(each.measured[BEST] > 5 * each.bound for each in distances),
            "For ranges that is "
            + listed([f"{each.measured[BEST] / each.bound:.2f}" for each in ranges])
            + " times the least that any factorisation with Gaussian noise can have (Laplace noise on few levels can "
            "have less), and far below noise on every leaf: trees are the right tool. For ℓ1 distances it is "
            + listed([f"{each.measured[BEST] / each.bound:.0f}" for each in distances])
            + " times that: they are not (cosine sums, in the section before, have "
            f"{2 * sigma(_EPSILON, _DELTA) / distances[-1].bound:.2f} times).",
        ),
    )


def _how(found: Sequence[Found], *, tolerance: float) -> list[str]:
    """Say what was measured, and how far it is from what was predicted."""
    off = max(abs(f.measured[t] / f.predicted[t] - 1) for f in found for t in TREES)
    return paragraph(
        f"Root mean square error at ε = {_EPSILON:g}, δ = {page.setting(_DELTA)}, tightly accounted; one row is replaced and changes the "
        f"leaves by 2 in L1 norm. *Ranges*: left(y') - left(y) for {_RANGES} random pairs y < y' (`DPTree`). *Distances*: "
        f"Σ |y - x| on [0, 1] at {_RANGES} random y (`DPTreeDistance`, p = 1, weight 1). Each tree has what the one before has and "
        "one thing more; the last chooses its width and noise by predicted variance:",
        "; ".join(f"{each.what}, n = {each.leaves}: {each.design}" for each in found)
        + ". In brackets: predicted.",
        claim(off < tolerance, f"Measured and predicted differ by at most {off:.1%}."),
    )


def _lower_bound(ranges: Sequence[Found]) -> list[str]:
    return paragraph(
        "*The lower bound.* A factorisation W = BA of m queries over N leaves, with Gaussian noise on the A-sums, has root mean "
        "square error `2σ·‖A‖_{1→2}·‖B‖_F/√m`, where 2 is the change of a row, `‖A‖_{1→2}` the largest norm of a column of A, and "
        f"σ = {number(sigma(_EPSILON, _DELTA), 5)}. Let S be the sum of the singular values of W. Since `S ≤ ‖A‖_F·‖B‖_F` and "
        "`‖A‖_F ≤ √N·‖A‖_{1→2}`, that is at least `2σ·S/√(mN)`. All ranges over N leaves have singular values "
        "`√(N+1)/(2·sin(jπ/(2N+2)))`, j = 1, ..., N: WᵀW is (N+1) times the inverse of the second difference. (Prefix sums have "
        "`1/(2·sin((2j-1)π/(4N+2)))`, and S/N is a lower bound on their γ₂: "
        + listed([f"{prefix_bound(each.leaves):.2f} at N = {each.leaves}" for each in ranges])
        + ".) The matrix `|y_i - x_j|` over the middles of N leaves has trace zero and one positive eigenvalue, so that its singular "
        "values add up to twice that."
    )


def measure_ranges(leaves: int, builds: int) -> Found:
    """Measure trees over so many leaves, a row or so in each, on random ranges."""
    counts = np.round(2 * spread(leaves, 1)[:, 0])
    ends = np.sort((spread(_RANGES, 2, start=0.5) * leaves).astype(int), axis=1)
    start, stop = ends[ends[:, 0] < ends[:, 1]].T

    def build(entropy: Entropy, **options: Any) -> paper.DPTree:  # noqa: ANN401
        return paper.DPTree(
            counts,
            sensitivity=2.0,
            epsilon=_EPSILON,
            delta=_DELTA,
            upper=1.0,
            entropy=entropy,
            **options,
        )

    def ask(tree: paper.DPTree) -> Floats:
        left = [tree.query((at + 0.5) / leaves)[0] for at in (start, stop)]
        return left[1] - left[0]

    return _found(
        RANGES,
        leaves,
        builds=builds,
        build=build,
        ask=ask,
        variance=lambda tree: _range_variance(tree, start, stop),
        bound=range_bound(leaves - 1),
        histogram=math.sqrt(np.mean(stop - start)),
    )


def measure_distances(leaves: int, builds: int) -> Found:
    """Measure trees over so many points, weight 1, on random ℓ1 distances."""
    points, weights = spread(leaves, 1)[:, 0], np.ones(leaves)
    queries = spread(_RANGES, 1, start=0.5)[:, 0]
    middles = (np.arange(leaves) + 0.5) / leaves

    def build(entropy: Entropy, **options: Any) -> paper.DPTreeDistance:  # noqa: ANN401
        return paper.DPTreeDistance(
            points,
            weights,
            p=1,
            upper=1.0,
            weight_bound=1.0,
            epsilon=_EPSILON,
            delta=_DELTA,
            entropy=entropy,
            **options,
        )

    return _found(
        DISTANCES,
        leaves,
        builds=builds,
        build=build,
        ask=lambda tree: tree.query(queries),
        variance=lambda tree: tree.variance(queries),
        bound=distance_bound(leaves),
        histogram=math.sqrt(np.mean([np.sum((y - middles) ** 2) for y in queries[:200]])),
    )


def _found(
    what: str,
    leaves: int,
    *,
    builds: int,
    build: Callable[..., Tree],
    ask: Callable[[Tree], Floats],
    variance: Callable[[Tree], Floats],
    bound: float,
    histogram: float,
) -> Found:
    """Measure every tree of `TREES`; bound and histogram are in units of the noise of one row."""
    predicted, measured, design = {}, {}, ""
    for name, options in TREES.items():
        tight = {"accounting": "tight", **options}
        silent = build(Silent(), **tight)
        noisy = [ask(build(Seeded(seed), **tight)) for seed in range(builds)]
        predicted[name] = math.sqrt(np.mean(variance(silent)))
        measured[name] = math.sqrt(np.mean(np.square(np.array(noisy) - ask(silent))))
        design = _design(silent)  # the last is the best
    noise = 2 * sigma(_EPSILON, _DELTA)
    return Found(
        what,
        leaves,
        measured,
        predicted,
        design,
        math.sqrt(np.mean(variance(build(Silent())))),
        noise * bound,
        noise * histogram,
    )


def _design(tree: paper.DPTree | paper.DPTreeDistance) -> str:
    """Say how wide a tree is and what noise it has."""
    forest = tree.state.forest if isinstance(tree, paper.DPTree) else tree.state.trees.forest
    width = " or ".join(str(1 << step) for step in sorted(set(np.diff([0, *forest.depths]))))
    [(mechanism, _)] = tree.receipt.mechanisms
    return f"{width} children a node, {_LAWS[type(mechanism)]}"


def _range_variance(tree: paper.DPTree, start: Integers, stop: Integers) -> Floats:
    """Return the variance of ranges of leaves, from that of the first leaf alone."""
    depths = tree.state.forest.depths

    def in_nodes(start: Integers, stop: Integers) -> Floats:
        if tree.estimator == "paper":
            return binary_range_variance(start, stop, tree.levels)
        return least_squares_range_variance(start, stop, depths)

    first, _ = tree.variance(np.array([1.5]) / 2**tree.levels)
    return in_nodes(start, stop) * first / in_nodes(np.array([0]), np.array([1]))


def binary_range_variance(start: Integers, stop: Integers, levels: int) -> Floats:
    """Return the variance of left(stop) - left(start) in the paper's tree, in nodes'.

    A prefix reads, on every level where its leaf's path turns right, the node to its left. Where
    both read the same node it cancels.
    """
    total = np.zeros(len(start))
    for depth in range(1, levels + 1):
        low, high = start >> (levels - depth), stop >> (levels - depth)
        total += (low & 1) + (high & 1) - 2 * ((low & 1) * (low == high))
    return total


def least_squares_range_variance(start: Integers, stop: Integers, depths: Sequence[int]) -> Floats:
    """Return the variance of the least-squares estimate of leaves start, ..., stop - 1, in nodes'.

    Level by level for all nodes: of the range's part A within a node and the node's total T, the
    variances and covariance add up over children, and then the node's own noisy number corrects
    both by regression. Independent of how `discreet.paper.forest` computes answers.
    """
    leaf = np.arange(1 << depths[-1])
    variances = []
    for first, last in zip(start, stop, strict=True):
        inside = ((leaf >= first) & (leaf < last)).astype(np.float64)
        of_range, both, of_total = inside, inside, 1.0  # after the leaves' own numbers
        for step in np.diff([0, *depths])[::-1]:
            of_range, both = (each.reshape(-1, 1 << step).sum(axis=1) for each in (of_range, both))
            of_total *= 1 << step
            if len(of_range) > 1:
                of_range = of_range - both**2 / (of_total + 1)
                both = both / (of_total + 1)
                of_total = of_total / (of_total + 1)
        variances.append(float(of_range[0]))
    return np.array(variances)


def range_bound(leaves: int) -> float:
    """Return ‖W‖_*/√(mN) for all m = N(N+1)/2 ranges over N leaves."""
    j = np.arange(1, leaves + 1)
    singular = math.sqrt(leaves + 1) / (2 * np.sin(j * math.pi / (2 * leaves + 2)))
    return float(np.sum(singular)) / (leaves * math.sqrt((leaves + 1) / 2))


def prefix_bound(leaves: int) -> float:
    """Return ‖W‖_*/N for all prefix sums over N leaves: a lower bound on γ₂, too."""
    j = np.arange(1, leaves + 1)
    return float(np.sum(1 / (2 * np.sin((2 * j - 1) * math.pi / (4 * leaves + 2))))) / leaves


def distance_bound(leaves: int) -> float:
    """Return ‖W‖_*/N for |y - x| over the middles of N leaves: twice its one positive eigenvalue.

    By power iteration on a product in O(N), from prefix sums.
    """
    x = (np.arange(leaves) + 0.5) / leaves
    vector = np.ones(leaves) / math.sqrt(leaves)
    value = 0.0
    for _ in range(60):
        sums, moments = np.cumsum(vector), np.cumsum(vector * x)
        image = 2 * (x * sums - moments) - x * sums[-1] + moments[-1]
        value = float(np.linalg.norm(image))
        vector = image / value
    return 2 * value / leaves


def _picture(found: Sequence[Found], path: Path) -> None:
    figure, axes = page.panels(len(found), size=(3.1 * len(found) + 0.6, 4.2))
    for axis, each in zip(axes, found, strict=True):
        for place, name in enumerate(TREES):
            _bar(axis, place, name, each)
        axis.plot([], [], color=page.INK, linewidth=1.5, label="predicted")
        axis.axhline(
            each.bound, color=page.PURPLE, linestyle="--", linewidth=1.5, label="lower bound"
        )
        axis.set_xticks([])
        axis.set_ylim(0, 1.12 * max(each.measured.values()))
        page.titled(axis, f"{each.what}, n = {each.leaves}", "")
        axis.grid(visible=False, axis="x")
        axis.grid(visible=True, axis="y", color=page.FAINT)
    axes[0].set_ylabel("root mean square error")
    legend_below(figure, axes[0], 6)
    page.save(figure, path)


def _bar(axis: Axes, place: int, name: str, found: Found) -> None:
    """Draw the error of one tree as a bar with its number, and what was predicted as a line."""
    measured, predicted = found.measured[name], found.predicted[name]
    axis.bar(place, measured, color=_COLOURS[name], width=0.7, label=name)
    axis.plot([place - 0.35, place + 0.35], [predicted] * 2, color=page.INK, linewidth=1.5)
    axis.annotate(
        number(measured),
        (place, max(measured, predicted)),
        (0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color=page.INK,
    )
