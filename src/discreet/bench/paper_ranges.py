"""Better trees: ranges and ℓ1 distances from the same leaves, under one tight (ε, δ)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet import accounting, paper
from discreet._typing import Floats, Integers
from discreet.bench.paper_bounds import (
    binary_range_variance,
    distance_bound,
    least_squares_range_variance,
    prefix_bound,
    range_bound,
)
from discreet.bench.paper_pictures import (
    AMBER,
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    panels,
    save,
    titled,
)
from discreet.bench.paper_setup import Size, sigma
from discreet.bench.paper_words import claim, listed, number, paragraph, setting, table
from discreet.bench.points import spread
from discreet.noise import Entropy
from discreet.paper.forest import Forest
from discreet.paper.options import Noise
from discreet.paper.structure import Structure
from discreet.testing import Seeded, Silent

_EPSILON, _DELTA = 1.0, 1e-6
_RANGES = 1000
RANGES, DISTANCES = "ranges", "ℓ1 distances"

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
_COLOURS = {BINARY: ORANGE, GAUSSIAN: AMBER, CONSISTENT: GREEN, BEST: BLUE}


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


def ranges_page(out: Path, size: Size) -> list[str]:
    """Compare trees on ranges and on ℓ1 distances, with one another and with what is possible."""
    found = [
        each(leaves, size.builds * (12 if leaves < 2**14 else 8))
        for leaves in ((512,) if size.quick else (4096, 65536))
        for each in (measure_ranges, measure_distances)
    ]
    _picture(found, out / "paper-ranges.png")
    tolerance = 0.25 if size.quick else 0.05
    off = max(abs(f.measured[t] / f.predicted[t] - 1) for f in found for t in TREES)
    ranges = [each for each in found if each.what == RANGES]
    distances = [each for each in found if each.what == DISTANCES]
    return [
        "## Better trees, and what is possible",
        "",
        *paragraph(
            claim(
                all(each.ratio <= 0.6 for each in found),
                "**Least squares over all levels, the right width and the right noise leave "
                + listed([f"{each.ratio:.2f} ({each.what}, n = {each.leaves})" for each in found])
                + " of the error of the paper's binary tree, under the same tight (ε, δ).**",
            ),
            claim(
                all(
                    each.measured[BEST] < min(3 * each.bound, each.histogram / 2) for each in ranges
                )
                and all(each.measured[BEST] > 5 * each.bound for each in distances),
                "For ranges that is "
                + listed([f"{each.measured[BEST] / each.bound:.2f}" for each in ranges])
                + " times the least that any factorisation with Gaussian noise can have (Laplace noise on few levels can "
                "have less), and far below noise on every leaf: trees are the right tool. For ℓ1 distances it is "
                + listed([f"{each.measured[BEST] / each.bound:.0f}" for each in distances])
                + " times that: they are not (cosine sums, in the section before, have "
                f"{2 * sigma(_EPSILON, _DELTA) / distances[-1].bound:.2f} times).",
            ),
        ),
        *paragraph(
            f"Root mean square error at ε = {_EPSILON:g}, δ = {setting(_DELTA)}, tightly accounted; one row is replaced and changes the "
            f"leaves by 2 in L1 norm. *Ranges*: left(y') - left(y) for {_RANGES} random pairs y < y' (`DPTree`). *Distances*: "
            f"Σ |y - x| on [0, 1] at {_RANGES} random y (`DPTreeDistance`, p = 1, weight 1). Each tree has what the one before has and "
            "one thing more; the last chooses its width and noise by predicted variance:",
            "; ".join(f"{each.what}, n = {each.leaves}: {each.design}" for each in found)
            + ". In brackets: predicted.",
            claim(off < tolerance, f"Measured and predicted differ by at most {off:.1%}."),
        ),
        *table(
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
            [
                [
                    each.what,
                    str(each.leaves),
                    f"[{number(each.by_theorem)}]",
                    *(f"{number(each.measured[t])} [{number(each.predicted[t])}]" for t in TREES),
                    f"**{each.ratio:.2f}**",
                    number(each.bound),
                    f"{each.measured[BEST] / each.bound:.2f}",
                    f"[{number(each.histogram)}]",
                ]
                for each in found
            ],
        ),
        "![error of trees for ranges and distances](paper-ranges.png)",
        "",
        *paragraph(
            "*The lower bound.* A factorisation W = BA of m queries over N leaves, with Gaussian noise on the A-sums, has root mean "
            "square error `2σ·‖A‖_{1→2}·‖B‖_F/√m`, where 2 is the change of a row, `‖A‖_{1→2}` the largest norm of a column of A, and "
            f"σ = {number(sigma(_EPSILON, _DELTA), 5)}. Let S be the sum of the singular values of W. Since `S ≤ ‖A‖_F·‖B‖_F` and "
            "`‖A‖_F ≤ √N·‖A‖_{1→2}`, that is at least `2σ·S/√(mN)`. All ranges over N leaves have singular values "
            "`√(N+1)/(2·sin(jπ/(2N+2)))`, j = 1, ..., N: WᵀW is (N+1) times the inverse of the second difference. (Prefix sums have "
            "`1/(2·sin((2j-1)π/(4N+2)))`, and S/N is a lower bound on their γ₂: "
            + listed([f"{prefix_bound(each.leaves):.2f} at N = {each.leaves}" for each in ranges])
            + ".) The matrix `|y_i - x_j|` over the middles of N leaves has trace zero and one positive eigenvalue, so that its singular "
            "values add up to twice that."
        ),
    ]


def measure_ranges(leaves: int, builds: int) -> Found:
    """Measure trees over so many leaves, a row or so in each, on random ranges."""
    counts = np.round(2 * spread(leaves, 1)[:, 0])
    ends = np.sort((spread(_RANGES, 2, start=0.5) * leaves).astype(int), axis=1)
    start, stop = ends[ends[:, 0] < ends[:, 1]].T

    def ask(tree: paper.DPTree) -> Floats:
        left = [tree.query((at + 0.5) / leaves)[0] for at in (start, stop)]
        return left[1] - left[0]

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

    predicted, measured, designs = {}, {}, {}
    for name, options in TREES.items():
        tight = {"accounting": "tight", **options}
        tree = build(Silent(), **tight)
        truth = ask(tree)
        predicted[name] = math.sqrt(np.mean(_range_variance(tree, start, stop)))
        measured[name] = _rms([ask(build(Seeded(seed), **tight)) - truth for seed in range(builds)])
        designs[name] = _design(tree, tree.state.forest)
    noise = 2 * sigma(_EPSILON, _DELTA)
    return Found(
        RANGES,
        leaves,
        measured,
        predicted,
        designs[BEST],
        math.sqrt(np.mean(_range_variance(build(Silent()), start, stop))),
        noise * range_bound(leaves - 1),
        noise * math.sqrt(np.mean(stop - start)),
    )


def measure_distances(leaves: int, builds: int) -> Found:
    """Measure trees over so many points, weight 1, on random ℓ1 distances."""
    points, weights = spread(leaves, 1)[:, 0], np.ones(leaves)
    queries = spread(_RANGES, 1, start=0.5)[:, 0]

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

    predicted, measured, designs = {}, {}, {}
    for name, options in TREES.items():
        tight = {"accounting": "tight", **options}
        tree = build(Silent(), **tight)
        truth = tree.query(queries)
        predicted[name] = math.sqrt(np.mean(tree.variance(queries)))
        designs[name] = _design(tree, tree.state.trees.forest)
        measured[name] = _rms(
            [build(Seeded(seed), **tight).query(queries) - truth for seed in range(builds)]
        )
    noise = 2 * sigma(_EPSILON, _DELTA)
    middles = (np.arange(leaves) + 0.5) / leaves
    squares = [np.sum((y - middles) ** 2) for y in queries[:200]]
    return Found(
        DISTANCES,
        leaves,
        measured,
        predicted,
        designs[BEST],
        math.sqrt(np.mean(build(Silent()).variance(queries))),
        noise * distance_bound(leaves),
        noise * math.sqrt(np.mean(squares)),
    )


def _design(structure: Structure, forest: Forest) -> str:
    """Say how wide a tree is and what noise it has."""
    width = " or ".join(str(1 << step) for step in sorted(set(np.diff([0, *forest.depths]))))
    [(mechanism, _)] = structure.receipt.mechanisms
    law = _LAWS[type(mechanism)]
    return f"{width} children a node, {law}"


def _range_variance(tree: paper.DPTree, start: Integers, stop: Integers) -> Floats:
    """Return the variance of ranges of leaves, from that of the first leaf alone."""
    depths = tree.state.forest.depths

    def in_nodes(start: Integers, stop: Integers) -> Floats:
        if tree.estimator == "paper":
            return binary_range_variance(start, stop, tree.levels)
        return least_squares_range_variance(start, stop, depths)

    first, _ = tree.variance(np.array([1.5]) / 2**tree.levels)
    return in_nodes(start, stop) * first / in_nodes(np.array([0]), np.array([1]))


def _rms(errors: Sequence[Floats]) -> float:
    return math.sqrt(np.mean(np.square(errors)))


def _picture(found: Sequence[Found], path: Path) -> None:
    figure, axes = panels(len(found), size=(3.1 * len(found) + 0.6, 4.2))
    for axis, each in zip(axes, found, strict=True):
        for place, name in enumerate(TREES):
            axis.bar(place, each.measured[name], color=_COLOURS[name], width=0.7, label=name)
            axis.plot(
                [place - 0.35, place + 0.35], [each.predicted[name]] * 2, color=INK, linewidth=1.5
            )
            top = max(each.measured[name], each.predicted[name])
            said = number(each.measured[name])
            axis.annotate(
                said,
                (place, top),
                (0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                color=INK,
            )
        axis.plot([], [], color=INK, linewidth=1.5, label="predicted")
        axis.axhline(each.bound, color=PURPLE, linestyle="--", linewidth=1.5, label="lower bound")
        axis.set_xticks([])
        axis.set_ylim(0, 1.12 * max(each.measured.values()))
        titled(axis, f"{each.what}, n = {each.leaves}", "")
        axis.grid(visible=False, axis="x")
        axis.grid(visible=True, axis="y", color=FAINT)
    axes[0].set_ylabel("root mean square error")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower left",
        fontsize=9,
        frameon=False,
        labelcolor=INK,
        ncols=6,
    )
    save(figure, path)
