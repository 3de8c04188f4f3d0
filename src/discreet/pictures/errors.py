"""Errors of answers: measured, predicted, and of whom."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from discreet.errors import InvalidInput
from discreet.pictures.style import (
    BLUE,
    FIRST,
    INK,
    ORANGE,
    SECOND,
    THIRD,
    Curve,
    Look,
    blank,
    by_ratios,
    draw,
    dress,
    figure_of,
    legend,
    legend_below,
    ticks,
)
from discreet.readers.attention.reader import WITHIN

OWNERS_EYES = "For the owner's eyes: exact answers are not private."

_MOST_POINTS = 200


@dataclass(frozen=True)
class Panel:
    """One of several axes: named predictions, what was measured, and what was the same for all."""

    predicted: Mapping[str, Curve]
    measured: Curve
    fixed: str


def exact_against_private(
    exact: ArrayLike, private: ArrayLike, stderr: ArrayLike, *, banner: str = OWNERS_EYES
) -> Figure:
    """Return private numbers over exact ones, with their standard errors. NOT PRIVATE.

    Args:
        exact: answers of exact attention, any shape.
        private: answers of a memory, of the same shape.
        stderr: their standard errors, likewise.
        banner: what is written above the picture.
    """
    truth, mine, spread = (np.ravel(np.asarray(each)) for each in (exact, private, stderr))
    if len(truth) == 0:
        raise InvalidInput("Expected at least one number to draw, got none.")
    within = np.mean(np.abs(mine - truth) <= WITHIN * spread)
    # Evenly chosen from all, so that every query and every number has its turn.
    count = min(len(truth), _MOST_POINTS)
    chosen = np.unique(np.linspace(0, len(truth) - 1, count).round().astype(int))
    figure, axes = figure_of(height=5.0, title="Private answers against exact ones")
    axes.set_title(
        f"{within:.1%} of {len(truth):,} numbers are within their bars"
        + (f" ({len(chosen)} are drawn)" if len(chosen) < len(truth) else ""),
        fontsize=9,
        color=INK,
        loc="left",
    )
    axes.errorbar(
        truth[chosen],
        mine[chosen],
        yerr=WITHIN * spread[chosen],
        linestyle="none",
        marker="o",
        markersize=3,
        color=BLUE,
        elinewidth=0.7,
        alpha=0.6,
        label=f"a number of an answer, ±{WITHIN} standard errors",
    )
    ends = [float(truth[chosen].min()), float(truth[chosen].max())]
    axes.plot(ends, ends, linestyle="--", color=INK, linewidth=1.4, label="equal", zorder=3)
    # Where hardly any row matches a query, its bar is longer than all values: cut by the frame.
    shown = np.concatenate([truth[chosen], mine[chosen]])
    room = 0.08 * float(np.ptp(shown)) or 1.0
    axes.set_ylim(float(shown.min()) - room, float(shown.max()) + room)
    axes.set_xlabel("exact attention")
    axes.set_ylabel("private memory")
    legend(axes, "lower right")
    figure.supxlabel(banner, fontsize=10, weight="bold", color=ORANGE, multialignment="center")
    return figure


def noise_by_level(
    levels: Sequence[int],
    stderr: Sequence[float],
    *,
    label: str = "one node",
    reference: tuple[str, float] | None = None,
) -> Figure:
    """Return the noise of a segment tree's nodes, and what a query adds up on its way down.

    Args:
        levels: 1 for the two children of the root, and so on.
        stderr: standard error of a node of each level; a query reads one of each.
        label: what a node is.
        reference: a name and a standard error to compare with.
    """
    figure, axes = figure_of(height=4.2, title="Noise in the paper's tree")
    total = [math.sqrt(sum(each**2 for each in stderr[: k + 1])) for k in range(len(stderr))]
    draw(axes, Curve(levels, stderr), label, SECOND)
    draw(axes, Curve(levels, total), "a query: nodes down to this level", FIRST)
    by_ratios(axes)
    if reference is not None:
        name, value = reference
        axes.axhline(value, linestyle=":", color=ORANGE, linewidth=2, label=name)
    axes.annotate(
        f"{total[-1]:.3g}",
        (levels[-1], total[-1]),
        xytext=(0, 7),
        textcoords="offset points",
        ha="center",
        color=INK,
    )
    axes.margins(y=0.3)
    axes.set_xticks(list(levels))
    axes.set_xlabel("level (1: halves of the data; the last: leaves)")
    axes.set_ylabel("standard error of the noise")
    legend(axes, "best")
    return figure


def error_against_epsilon_and_rows(by_epsilon: Panel, by_rows: Panel) -> Figure:
    """Return the error of answers, predicted as lines and measured as points, over ε and over n."""
    figure = blank(height=6.8, title="Error of answers, predicted and measured")
    panels = figure.subplots(2, 1, sharey=True)
    for axes, panel, name in zip(panels, (by_epsilon, by_rows), ("ε", "rows n"), strict=True):
        dress(axes)
        for (label, curve), line in zip(panel.predicted.items(), ("--", "-", ":"), strict=False):
            draw(axes, curve, f"predicted: {label}", Look(line, "", INK))
        draw(axes, panel.measured, f"measured, ±{WITHIN} standard errors", Look("", "o", BLUE))
        ticks(axes, panel.measured.x)
        by_ratios(axes)
        axes.set_xlabel(f"{name} ({panel.fixed})")
        axes.set_ylabel("error of a number")
    legend_below(figure, panels[0])
    return figure


def errors_of_mechanisms(curves: Mapping[str, Curve], *, title: str) -> Figure:
    """Return errors of several mechanisms against ε, both by ratios, each with its name."""
    figure, axes = figure_of(height=4.4, title=title)
    looks = (FIRST, SECOND, THIRD, Look("-.", "", INK))
    for (name, curve), look in zip(curves.items(), looks, strict=False):
        draw(axes, curve, name, look)
    ticks(axes, next(iter(curves.values())).x)
    by_ratios(axes)
    axes.set_xlabel("ε (δ = 1e-6)")
    axes.set_ylabel("error of a number")
    legend_below(figure, axes, columns=2)
    return figure


def error_against_length_and_epsilon(
    by_length: Mapping[str, Curve], by_epsilon: Mapping[str, Curve], *, epsilon: float
) -> Figure:
    """Return what one release says of its own error: for shorter queries, and had ε been another.

    Args:
        by_length: named errors over the length of queries.
        by_epsilon: the same over ε.
        epsilon: the one that it has.
    """
    figure = blank(height=6.4, title="How far answers are from exact attention")
    panels = figure.subplots(2, 1)
    for axes, curves in zip(panels, (by_length, by_epsilon), strict=True):
        dress(axes)
        for (name, curve), look in zip(curves.items(), (FIRST, SECOND, THIRD), strict=False):
            draw(axes, curve, name, look)
        axes.set_ylabel(f"±, {WITHIN} standard errors")
    first, second = panels
    first.set_xlabel("length of the query")
    first.set_ylim(bottom=0)
    ticks(second, next(iter(by_epsilon.values())).x)
    by_ratios(second)
    second.axvline(epsilon, color=ORANGE, linewidth=1.2, linestyle="--")
    second.set_xlabel(f"ε (this release: {epsilon:g}), at the longest query")
    legend_below(figure, first)
    return figure
