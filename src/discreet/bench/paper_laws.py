"""The laws of the paper's structures: error, variance, and when they become useful."""

import math
from pathlib import Path

import numpy as np

from discreet.bench.paper_setup import (
    LARGE_EPSILON,
    QUERIES,
    Size,
    attention,
    attention_error,
    panels,
    save,
    slope,
    style,
)
from discreet.errors import DiscreetError
from discreet.kernels import Taylor
from discreet.paper.node import Noise, node_noise
from discreet.paper.softmax_forest import paper_budgets
from discreet.paper.structure import Budget
from discreet.testing import Silent


def errors_page(out: Path, size: Size) -> list[str]:
    """Error against n, ε, R_w and d."""
    figure, axes = panels(4, size=(15, 3.6))
    rows = [2**k for k in range(11, size.largest_power + 1)]
    by_rows = [attention_error(attention(n), 2, size.builds) for n in rows]
    levelled = [e / math.log2(n) ** 1.5 for n, e in zip(rows, by_rows, strict=True)]
    axes[0].plot(rows, levelled, "ko-")
    axes[0].plot(rows, [levelled[0] * rows[0] / n for n in rows], "k:", label="slope -1")
    axes[0].legend()
    style(axes[0], "error / log₂(n)^1.5", "rows n", "rms error of AV/D")

    # The other laws at few rows and a larger ε still, so that many builds can be averaged.
    few, epsilon, builds = 4096, 2 * LARGE_EPSILON, 3 * size.builds
    epsilons = [epsilon / 2, epsilon, 2 * epsilon, 4 * epsilon]
    by_epsilon = [attention_error(attention(few, epsilon=e), 2, builds) for e in epsilons]
    axes[1].plot(epsilons, by_epsilon, "ks-")
    style(axes[1], f"n = {few}", "ε", "", epsilons)
    bounds = [0.5, 1.0, 2.0, 4.0]
    by_bound = [
        attention_error(attention(few, epsilon=epsilon, bound=b), 2, builds) for b in bounds
    ]
    axes[2].plot(bounds, by_bound, "k^-")
    style(axes[2], f"n = {few}", "value bound R_w", "", bounds)
    dims = [1, 2, 3, 4, 6]
    by_dim = [attention_error(attention(few, dim=d, epsilon=epsilon), d, builds) for d in dims]
    axes[3].plot(dims, by_dim, "kD-")
    style(axes[3], f"n = {few}", "dimension d", "", dims)
    save(figure, out / "paper-errors.png")

    features = [Taylor.on_box(d, upper=1.0, eps_s=0.1).features for d in dims]
    copies = [attention(2, dim=d)(Silent()).copies for d in dims]
    lines = [
        "## Error of the unclamped attention",
        "",
        "![error against n, epsilon, value bound and dimension](paper-errors.png)",
        "",
        "Root mean square of AV/D against the same structure without noise; d = 2, one column, one copy,",
        f"ε = {LARGE_EPSILON:g} (so large that the denominator is not noise at these n; the laws are the same",
        f"at every ε), {size.builds} builds, {QUERIES} queries each; for ε, R_w and d: n = {few}, ε = {epsilon:g} unless",
        f"said otherwise, {builds} builds.",
        "",
        f"- against n, divided by log₂(n)^1.5: slope {slope(rows, levelled):.2f} (the theorem: -1)",
        f"- against ε: slope {slope(epsilons, by_epsilon):.2f} (the theorem: -1)",
        f"- against R_w: slope {slope(bounds, by_bound):.2f} (the theorem: 1)",
        f"- against d = {dims} with r = {features} features and l = {copies} copies (the net grows with d): "
        + ", ".join(f"{e:.3g}" for e in by_dim),
        "",
        "| n | rms error | error·n / log₂(n)^1.5 |",
        "|---|---|---|",
    ]
    lines += [
        f"| {n} | {e:.4g} | {e * n / math.log2(n) ** 1.5:.4g} |"
        for n, e in zip(rows, by_rows, strict=True)
    ]
    return [*lines, ""]


def variance_page(out: Path) -> list[str]:
    """The paper's comparison of three noises, by their exact variances."""
    deltas = [10.0**-k for k in range(2, 13)]
    epsilon = 0.1
    series = {
        "truncated Laplace": (Noise.TRUNCATED_LAPLACE, "ko-"),
        "Laplace (δ = 0)": (Noise.LAPLACE, "k--"),
        "Gaussian, exact": (Noise.GAUSSIAN, "ks-"),
    }
    figure, [axis] = panels(1, size=(6, 3.8))
    table: dict[str, list[float]] = {}
    for name, (kind, mark) in series.items():
        table[name] = [node_noise(kind, epsilon=epsilon, delta=d).variance for d in deltas]
        axis.plot(deltas, table[name], mark, label=name)
    table["Gaussian, the paper's formula"] = [
        2 * 4 * math.log(1.25 / d) / epsilon**2 for d in deltas
    ]
    axis.plot(
        deltas, table["Gaussian, the paper's formula"], "k:", label="Gaussian, paper's formula"
    )
    style(axis, f"one node, Δ = 2, ε = {epsilon}", "δ", "variance")
    axis.legend(fontsize=8)
    save(figure, out / "paper-variance.png")
    lines = [
        "## Variance of the three noises",
        "",
        "![variance of truncated Laplace, Laplace and Gaussian noise](paper-variance.png)",
        "",
        f"One node with Δ = 2 at ε = {epsilon}; exact variances of the integer laws, in real units. Truncation saves",
        "variance only where δ is not far below ε. For a single node the truncated Laplace is the best of the three,",
        "as the paper says; for many nodes together, tightly accounted, the Gaussian is (two sections below).",
        "",
        "| δ | " + " | ".join(table) + " |",
        "|---|" + "---|" * len(table),
    ]
    lines += [
        f"| {d:g} | " + " | ".join(f"{values[i]:.5g}" for values in table.values()) + " |"
        for i, d in enumerate(deltas)
        if i % 2 == 0
    ]
    return [*lines, ""]


def predicted_noise(power: int, dim: int) -> float:
    """Return the standard deviation of the denominator's noise at y = (1, ..., 1) for 2^power rows.

    From the formulas, for one copy with an entry's budget (ε/2): n may be larger than memory.
    """
    kernel = Taylor.on_box(dim, upper=1.0, eps_s=0.1)
    entry = Budget(1.0, 1e-6, 1e-6).share(2)
    budgets = paper_budgets(entry, c=0.1, features=kernel.features, levels=power)
    node = node_noise(
        Noise.TRUNCATED_LAPLACE, epsilon=budgets.features.epsilon, delta=budgets.features.delta
    )
    squares = float(np.sum(kernel.feature_bounds(1.0) ** 4))
    return math.sqrt(0.25 * node.variance * squares * power * (2 + 4 + 1))


def useful_page() -> list[str]:
    """The number of rows at which the literal construction first says something."""
    built = attention(1024, epsilon=1.0)(Silent())
    real = math.sqrt(built._sums.variance(np.ones((1, 2)))[0, -1])  # noqa: SLF001
    if not math.isclose(real, predicted_noise(10, 2), rel_tol=1e-3):
        raise DiscreetError("The extrapolated noise is not the one of a structure that was built.")
    lines = [
        "## When the literal construction becomes useful (extrapolated)",
        "",
        "The smallest n (a power of two) at which the noise of the denominator, one copy, one entry, ε = 1, c = 0.1, is",
        "below a tenth of n. Not measured: computed from the same variance formula that the tests check at small n,",
        "because such structures do not fit a machine.",
        "",
        "| d | features r | noise at n = 4096 | first useful n |",
        "|---|---|---|---|",
    ]
    for dim in (1, 2, 4, 8, 16):
        power = next(k for k in range(10, 60) if predicted_noise(k, dim) < 0.1 * 2**k)
        features = Taylor.on_box(dim, upper=1.0, eps_s=0.1).features
        lines.append(
            f"| {dim} | {features} | {predicted_noise(12, dim):.3g} | 2^{power} ≈ {2**power:.1e} |"
        )
    return [*lines, ""]
