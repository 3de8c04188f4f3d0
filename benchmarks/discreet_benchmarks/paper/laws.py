"""The laws of the paper's structures: how errors grow and fall, three noises, and one tree's levels."""

import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from discreet import paper
from discreet._typing import Floats
from discreet.noise import Entropy
from discreet.paper.attention import Needs, attention_needs
from discreet.paper.design import node_noise
from discreet.paper.forest import levels_for
from discreet.paper.options import Noise
from discreet.paper.oracle import spread
from discreet.pictures import noise_by_level
from discreet.pictures import save as save_large
from discreet.pictures.style import legend_below
from discreet.readers.attention.planning import plan
from discreet.testing import Seeded, Silent
from discreet_benchmarks.paper import page
from discreet_benchmarks.paper.attention import Setting, rows_and_weights, structure
from discreet_benchmarks.paper.page import Size, claim, number, paragraph, slope, table

# So large that the denominator is not noise: the laws are the same at every ε.
_LARGE_EPSILON = 20_000.0
_FEW = 2048
_QUERIES = 50
_COLUMNS = 4
_NODE_EPSILON = 0.1
# As many rows, of as many numbers and classes, as the demo's digits have.
_DIGITS: dict[str, Any] = {
    "rows": 1350,
    "key_dim": 64,
    "value_dim": 10,
    "epsilon": 1.0,
    "delta": 1e-5,
}

# For each parameter its values, and at each the error that was measured and the predicted one.
Laws = dict[str, tuple[list[float], list[tuple[float, float]]]]
Builder = Callable[[Entropy | None], paper.DPCrossAttention]


def attention(rows: int, *, bound: float = 1.0, epsilon: float = _LARGE_EPSILON) -> Builder:
    """Return a builder of one entry of attention, one copy, c = 0.1, given a source of noise."""
    setting = Setting(rows=rows, columns=_COLUMNS, bound=bound, epsilon=epsilon)
    keys, values = rows_and_weights(rows, setting.dim, _COLUMNS)
    # A net so fine that all queries stay apart.
    options = {"c": 0.1, "eps_0": 1e-3, "copies": 1, "scope": "entry"}
    return lambda entropy: structure(setting, keys, bound * values, entropy, **options)


def attention_error(builder: Builder, builds: int) -> tuple[float, float]:
    """Return the error of AV/D against the same structure without noise: measured, and predicted.

    Neither clamped nor with kernel error. Predicted: to first order, from the exact variances.
    """
    queries = spread(_QUERIES, 2, start=0.5)

    def quotients(entropy: Entropy) -> Floats:
        numerator, denominator = builder(entropy).sums(queries)
        return np.asarray(numerator / denominator[:, None])

    silent = builder(Silent())
    numerator, denominator = silent.sums(queries)
    truth = numerator / denominator[:, None]
    above, below = silent.variance(queries)
    predicted = np.mean((above + truth**2 * below[:, None]) / denominator[:, None] ** 2)
    # Other noise at other points: or all would be off in the same direction.
    first = zlib.crc32(predicted.tobytes())
    errors = [quotients(Seeded(first + build)) - truth for build in range(builds)]
    return math.sqrt(np.mean(np.square(errors))), math.sqrt(predicted)


def laws_page(out: Path, size: Size) -> list[str]:
    """Error against n, ε and R_w, measured and predicted."""
    rows = [2.0**k for k in range(10, max(size.largest_power - 1, 13))]
    epsilons = [_LARGE_EPSILON * times for times in (0.25, 0.5, 1, 2)]
    bounds = [0.5, 1.0, 2.0, 4.0]
    builds = 2 * size.builds
    found = {
        "n": (rows, [attention_error(attention(int(n)), builds) for n in rows]),
        "ε": (epsilons, [attention_error(attention(_FEW, epsilon=e), builds) for e in epsilons]),
        "R_w": (bounds, [attention_error(attention(_FEW, bound=b), builds) for b in bounds]),
    }
    _laws_picture(found, out / "paper-laws.png")
    return page.section(
        "The laws of the error",
        _laws_takeaway(found, tolerance=0.5 if size.quick else 0.1),
        paragraph(
            f"Root mean square of AV/D, not clamped, against the same structure without noise; d = 2, {_COLUMNS} columns, one entry, one "
            f"copy, c = 0.1, R = 1, δ = δ' = 1e-6, ε_s = 0.1, ε = {_LARGE_EPSILON:g} (so large that the denominator is not noise; "
            f"the laws are the same at every ε), n = {_FEW} where it does not change; {builds} builds, {_QUERIES} queries each. "
            "Predicted: to first order from the exact variances."
        ),
        page.image("error against n, epsilon and value bound", "paper-laws.png"),
        table(
            ["n", "measured", "predicted", "measured·n / log₂(n)^1.5"],
            [
                [int(n), error, predicted, number(error * n / math.log2(n) ** 1.5)]
                for n, (error, predicted) in zip(rows, found["n"][1], strict=True)
            ],
        ),
    )


def _laws_takeaway(found: Laws, *, tolerance: float) -> list[str]:
    """Compare slopes with the theorem's, against n after the logarithms."""
    slopes = {}
    for name, (x, errors) in found.items():
        measured = [error for error, _ in errors]
        if name == "n":
            measured = [error / math.log2(n) ** 1.5 for n, error in zip(x, measured, strict=True)]
        slopes[name] = slope(x, measured)
    theorem = {"n": -1, "ε": -1, "R_w": 1}
    return paragraph(
        claim(
            all(abs(slopes[name] - theorem[name]) < tolerance for name in slopes),
            "**The error falls and grows as the theorems say**: divided by log₂(n)^1.5 its slope against n is "
            f"{slopes['n']:.2f} (the theorem: -1), against ε {slopes['ε']:.2f} (-1), against R_w {slopes['R_w']:.2f} (1).",
        )
    )


def _laws_picture(found: Laws, path: Path) -> None:
    figure, axes = page.panels(3, size=(11, 3.8))
    for axis, (name, (x, errors)) in zip(axes, found.items(), strict=True):
        measured, predicted = zip(*errors, strict=True)
        axis.plot(x, predicted, color=page.INK, linewidth=1.3, label="predicted")
        axis.plot(x, measured, linestyle="", marker="o", color=page.BLUE, label="measured")
        page.by_ratios(axis, x[::2] if name == "n" else x)
        page.titled(axis, f"against {name}", name)
    axes[0].set_ylabel("root mean square error of AV/D")
    legend_below(figure, axes[0], 2)
    page.save(figure, path)


def variance_page(out: Path, _: Size) -> list[str]:
    """The paper's comparison of three noises, by their exact variances."""
    deltas = [10.0**-k for k in range(2, 13)]
    found = _variances(deltas)
    _variance_picture(deltas, found, out / "paper-variance.png")
    truncated, laplace, gaussian, _formula = found.values()
    return page.section(
        "Variance of the three noises",
        paragraph(
            claim(
                all(
                    t <= min(v, g) * (1 + 1e-9)
                    for t, v, g in zip(truncated, laplace, gaussian, strict=True)
                ),
                "**For a single node truncated Laplace noise has the least variance of the three, as the paper says**; but it saves "
                f"something over plain Laplace only where δ is not far below ε ({1 - truncated[0] / laplace[0]:.0%} at "
                f"δ = {deltas[0]:g}, {1 - truncated[2] / laplace[2]:.1%} at δ = {deltas[2]:g}, for ε = {_NODE_EPSILON}), and for many nodes "
                'together, tightly accounted, the Gaussian is better (section "The constant c").',
            )
        ),
        page.image(
            "variance of truncated Laplace, Laplace and Gaussian noise", "paper-variance.png"
        ),
        paragraph(
            f"One node with Δ = 2 at ε = {_NODE_EPSILON}; exact variances of the integer laws, in real units."
        ),
        table(
            ["δ", *found],
            [
                [page.setting(d), *(number(each[i], 4) for each in found.values())]
                for i, d in enumerate(deltas)
                if i % 2 == 0
            ],
        ),
    )


def _variances(deltas: list[float]) -> dict[str, list[float]]:
    """Return the variance of each noise at each δ."""
    kinds = {
        "truncated Laplace": Noise.TRUNCATED_LAPLACE,
        "Laplace (δ = 0)": Noise.LAPLACE,
        "Gaussian, exact": Noise.GAUSSIAN,
    }
    found = {
        name: [node_noise(kind, epsilon=_NODE_EPSILON, delta=d).variance for d in deltas]
        for name, kind in kinds.items()
    }
    formula = [2 * 4 * math.log(1.25 / d) / _NODE_EPSILON**2 for d in deltas]
    return found | {"Gaussian, the paper's formula": formula}


def _variance_picture(deltas: list[float], found: dict[str, list[float]], path: Path) -> None:
    figure, [axis] = page.panels(1, size=(6.4, 4.2))
    looks = (("o-", page.ORANGE), ("--", page.INK), ("s-", page.BLUE), (":", page.GREEN))
    for (name, values), (mark, colour) in zip(found.items(), looks, strict=True):
        width = {"linewidth": 1.8} if mark == ":" else {"markersize": 5}
        axis.plot(deltas, values, mark, color=colour, label=name, **width)
    page.by_ratios(axis, deltas[::2])
    page.titled(axis, f"one node, Δ = 2, ε = {_NODE_EPSILON}", "δ", "variance")
    legend_below(figure, axis, 2)
    page.save(figure, path)


def levels_page(out: Path, _: Size) -> list[str]:
    """Why attention is not answered from trees: one tree, level by level, beside a memory.

    All in rows, under the paper's relation and one budget. A query reads a node of each level; the
    memory's noise is that of a denominator, in rows that match the query.
    """
    rows, key_dim, epsilon, delta = (
        _DIGITS[each] for each in ("rows", "key_dim", "epsilon", "delta")
    )
    levels = levels_for(rows)
    law = node_noise(Noise.TRUNCATED_LAPLACE, epsilon=epsilon / levels, delta=delta / levels)
    node = math.sqrt(law.variance)
    query = node * math.sqrt(levels)
    memory, needs = _memory_and_needs()
    figure = noise_by_level(
        range(1, levels + 1),
        [node] * levels,
        label="one node of the tree",
        reference=("the memory, same budget: a denominator", memory),
    )
    save_large(figure, out / "paper-levels.png")
    return page.section(
        "Noise of one tree, level by level",
        paragraph(
            claim(
                memory < query,
                f"**A query of one tree over {rows:,} rows has a noise of ±{query:.0f} rows, a denominator of the "
                f"memory ±{memory:.0f}**, for the same (ε = {epsilon:g}, δ = {delta:g}) and the same relation, "
                "replacement of one row.",
            )
        ),
        page.image(
            "noise of the nodes of a tree, and of a query that reads one of each level",
            "paper-levels.png",
        ),
        paragraph(
            f"Each of {levels} levels gets a share of the budget, so a node carries ±{node:.0f} rows, and a query "
            "adds up one node of each level, just to count rows on one side of a number. The memory adds noise once to all sums "
            "that attention needs.",
            f"Attention by the paper needs many such trees, which share the budget: for {rows:,} rows of {key_dim} numbers at "
            f"the same temperature, {number(needs.state_bytes)} bytes of state, and {number(needs.rows)} rows before "
            "an answer means anything.",
        ),
    )


def _memory_and_needs() -> tuple[float, Needs]:
    """Return a memory's noise, in rows, and what the paper's attention needs for the same rows."""
    planned = plan(**_DIGITS, neighbours="replace")
    logit = planned.kernel.largest_logit
    needs = attention_needs(**_DIGITS, largest_logit=logit)
    return planned.denominator_stderr / math.exp(logit), needs
