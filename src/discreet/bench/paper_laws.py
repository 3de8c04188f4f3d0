"""The laws of the paper's structures: how errors grow and fall, and the three noises."""

import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from discreet import paper
from discreet._typing import Floats
from discreet.bench.paper_methods import quietly
from discreet.bench.paper_pictures import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    by_ratios,
    panels,
    save,
    titled,
)
from discreet.bench.paper_setup import Size, slope
from discreet.bench.paper_task import rows_and_weights
from discreet.bench.paper_words import claim, number, paragraph, setting, table
from discreet.bench.points import spread
from discreet.noise import Entropy
from discreet.paper.design import node_noise
from discreet.paper.options import Noise
from discreet.pictures.style import legend_below
from discreet.testing import Seeded, Silent

# So large that the denominator is not noise: the laws are the same at every ε.
_LARGE_EPSILON = 20_000.0
_FEW = 2048
_QUERIES = 50
_COLUMNS = 4

Builder = Callable[[Entropy | None], paper.DPCrossAttention]


def attention(rows: int, *, bound: float = 1.0, epsilon: float = _LARGE_EPSILON) -> Builder:
    """Return a builder of one entry of attention, one copy, c = 0.1, given a source of noise."""
    keys, values = rows_and_weights(rows, 2, _COLUMNS)
    settings: dict[str, Any] = {
        "upper": 1.0,
        "value_bound": bound,
        "epsilon": epsilon,
        "delta": 1e-6,
        "delta_prime": 1e-6,
        "c": 0.1,
        "eps_s": 0.1,
        "eps_0": 1e-3,  # so fine that all queries stay apart
        "p_f": 0.01,
        "copies": 1,
        "scope": "entry",
    }

    def build(entropy: Entropy | None) -> paper.DPCrossAttention:
        with quietly():
            return paper.DPCrossAttention(keys, bound * values, entropy=entropy, **settings)

    return build


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
    rows = [2**k for k in range(10, max(size.largest_power - 1, 13))]
    epsilons = [_LARGE_EPSILON * times for times in (0.25, 0.5, 1, 2)]
    bounds = [0.5, 1.0, 2.0, 4.0]
    builds = 2 * size.builds
    found = {
        "n": (rows, [attention_error(attention(n), builds) for n in rows]),
        "ε": (epsilons, [attention_error(attention(_FEW, epsilon=e), builds) for e in epsilons]),
        "R_w": (bounds, [attention_error(attention(_FEW, bound=b), builds) for b in bounds]),
    }
    levelled = [
        error / math.log2(n) ** 1.5 for n, (error, _) in zip(rows, found["n"][1], strict=True)
    ]
    slopes = {
        "n": slope(rows, levelled),
        "ε": slope(epsilons, [error for error, _ in found["ε"][1]]),
        "R_w": slope(bounds, [error for error, _ in found["R_w"][1]]),
    }
    theorem = {"n": -1, "ε": -1, "R_w": 1}
    _laws_picture(found, out / "paper-laws.png")
    return [
        "## The laws of the error",
        "",
        *paragraph(
            claim(
                all(
                    abs(slopes[name] - theorem[name]) < (0.5 if size.quick else 0.1)
                    for name in slopes
                ),
                "**The error falls and grows as the theorems say**: divided by log₂(n)^1.5 its slope against n is "
                f"{slopes['n']:.2f} (the theorem: -1), against ε {slopes['ε']:.2f} (-1), against R_w {slopes['R_w']:.2f} (1).",
            )
        ),
        *paragraph(
            f"Root mean square of AV/D, not clamped, against the same structure without noise; d = 2, {_COLUMNS} columns, one entry, one "
            f"copy, c = 0.1, R = 1, δ = δ' = 1e-6, ε_s = 0.1, ε = {_LARGE_EPSILON:g} (so large that the denominator is not noise; "
            f"the laws are the same at every ε), n = {_FEW} where it does not change; {builds} builds, {_QUERIES} queries each. "
            "Predicted: to first order from the exact variances."
        ),
        "![error against n, epsilon and value bound](paper-laws.png)",
        "",
        *table(
            ["n", "measured", "predicted", "measured·n / log₂(n)^1.5"],
            [
                [str(n), error, predicted, number(error * n / math.log2(n) ** 1.5)]
                for n, (error, predicted) in zip(rows, found["n"][1], strict=True)
            ],
        ),
    ]


def _laws_picture(
    found: dict[str, tuple[list[int] | list[float], list[tuple[float, float]]]], path: Path
) -> None:
    figure, axes = panels(3, size=(11, 3.8))
    for axis, (name, (x, errors)) in zip(axes, found.items(), strict=True):
        axis.plot(
            x, [predicted for _, predicted in errors], color=INK, linewidth=1.3, label="predicted"
        )
        axis.plot(
            x,
            [error for error, _ in errors],
            linestyle="",
            marker="o",
            color=BLUE,
            label="measured",
        )
        by_ratios(axis, x[::2] if name == "n" else x)
        titled(axis, f"against {name}", name)
    axes[0].set_ylabel("root mean square error of AV/D")
    legend_below(figure, axes[0], 2)
    save(figure, path)


def variance_page(out: Path) -> list[str]:
    """The paper's comparison of three noises, by their exact variances."""
    deltas = [10.0**-k for k in range(2, 13)]
    epsilon = 0.1
    series = {
        "truncated Laplace": (Noise.TRUNCATED_LAPLACE, "o-", ORANGE),
        "Laplace (δ = 0)": (Noise.LAPLACE, "--", INK),
        "Gaussian, exact": (Noise.GAUSSIAN, "s-", BLUE),
    }
    figure, [axis] = panels(1, size=(6.4, 4.2))
    values: dict[str, list[float]] = {}
    for name, (kind, mark, colour) in series.items():
        values[name] = [node_noise(kind, epsilon=epsilon, delta=d).variance for d in deltas]
        axis.plot(deltas, values[name], mark, color=colour, markersize=5, label=name)
    formula = "Gaussian, the paper's formula"
    values[formula] = [2 * 4 * math.log(1.25 / d) / epsilon**2 for d in deltas]
    axis.plot(deltas, values[formula], ":", color=GREEN, linewidth=1.8, label=formula)
    by_ratios(axis, deltas[::2])
    titled(axis, f"one node, Δ = 2, ε = {epsilon}", "δ", "variance")
    legend_below(figure, axis, 2)
    save(figure, out / "paper-variance.png")
    truncated, laplace, gaussian = (values[name] for name in series)
    return [
        "## Variance of the three noises",
        "",
        *paragraph(
            claim(
                all(
                    t <= min(v, g) * (1 + 1e-9)
                    for t, v, g in zip(truncated, laplace, gaussian, strict=True)
                ),
                "**For a single node truncated Laplace noise has the least variance of the three, as the paper says**; but it saves "
                f"something over plain Laplace only where δ is not far below ε ({1 - truncated[0] / laplace[0]:.0%} at "
                f"δ = {deltas[0]:g}, {1 - truncated[2] / laplace[2]:.1%} at δ = {deltas[2]:g}, for ε = {epsilon}), and for many nodes "
                'together, tightly accounted, the Gaussian is better (section "The constant c").',
            )
        ),
        "![variance of truncated Laplace, Laplace and Gaussian noise](paper-variance.png)",
        "",
        f"One node with Δ = 2 at ε = {epsilon}; exact variances of the integer laws, in real units.",
        "",
        *table(
            ["δ", *values],
            [
                [setting(d), *(number(each[i], 4) for each in values.values())]
                for i, d in enumerate(deltas)
                if i % 2 == 0
            ],
        ),
    ]
