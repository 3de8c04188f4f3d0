"""The pictures: errors of answers, classes that were named, what is spent of a budget."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike

from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.pictures.style import (
    BLUE,
    FAINT,
    FIRST,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PURPLE,
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
from discreet.privacy import rounded_up
from discreet.readers.attention.reader import WITHIN

OWNERS_EYES = "For the owner's eyes: exact answers are not private."

_MOST_POINTS = 200

# Private methods, and levels that do not depend on ε.
_METHODS = (FIRST, Look("-", "D", GREEN), Look("-.", "s", PURPLE), THIRD)
_LEVELS = ("--", ":")


@dataclass(frozen=True)
class Panel:
    """One of several axes.

    Attributes:
        predicted: named curves.
        measured: with standard errors.
        fixed: what was the same for all, in words.
    """

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
    axes.set(xlabel="exact attention", ylabel="private memory")
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
    """Return the error of answers, predicted as lines and measured as points, over ε and over n.

    Args:
        by_epsilon: what is drawn over ε.
        by_rows: what is drawn over the number of rows.

    Returns:
        The figure.
    """
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
    """Return errors of several mechanisms against ε, both by ratios, each with its name.

    Args:
        curves: by name, all over the same ε.
        title: of the figure.

    Returns:
        The figure.
    """
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
    first.set_xlabel("length of the question")
    first.set_ylim(bottom=0)
    ticks(second, next(iter(by_epsilon.values())).x)
    by_ratios(second)
    second.axvline(epsilon, color=ORANGE, linewidth=1.2, linestyle="--")
    second.set_xlabel(f"ε (this release: {epsilon:g}), at the longest query")
    legend_below(figure, first)
    return figure


def accuracy_against_epsilon(
    methods: Mapping[str, Curve], *, levels: Mapping[str, float], floor: float, delta: float
) -> Figure:
    """Return the accuracy of private methods over ε, between a floor and a ceiling.

    Args:
        methods: named curves; the first is ours.
        levels: named accuracies that do not depend on ε.
        floor: what a constant reaches.
        delta: of all methods.
    """
    figure, axes = figure_of(height=5.4, title="Accuracy on images never seen")
    for (name, level), line in zip(levels.items(), _LEVELS, strict=False):
        label = f"{name}: {level:.1%}"
        axes.axhline(level, color=INK, linewidth=1.4, linestyle=line, label=label)
    for (name, curve), look in zip(methods.items(), _METHODS, strict=False):
        draw(axes, curve, name, look)
    ticks(axes, next(iter(methods.values())).x)
    axes.set_xlabel(f"ε (δ = {delta:g}, one image added or removed)")
    axes.set_ylabel(f"accuracy (bars: ±{WITHIN} standard errors)")
    lowest = min(min(curve.y) for curve in methods.values())
    axes.set_ylim(max(lowest - 0.08, 0), 1.01)
    axes.annotate(
        f"↓ a constant: {floor:.0%}", (0.97, 0.03), xycoords="axes fraction", ha="right", color=INK
    )
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    legend_below(figure, axes)
    return figure


def votes(image: Floats, *, exact: Floats, private: Floats, stderr: Floats, truth: int) -> Figure:
    """Return an image beside the votes for its class: exact ones, and private ones with their ±.

    Args:
        image: pixels between 0 and 1, shape (8, 8).
        exact: votes of exact attention, (10,). NOT PRIVATE.
        private: votes of a memory, (10,).
        stderr: the standard error that the memory tells of each.
        truth: the class.
    """
    figure = blank(height=4.4, title="One image, and ten votes")
    grid = figure.add_gridspec(1, 2, width_ratios=(1, 2.6))
    picture = figure.add_subplot(grid[0])
    picture.imshow(image, cmap="gray_r", vmin=0, vmax=1)
    picture.set_axis_off()
    picture.set_title(f"a {truth}", fontsize=11, color=INK)
    axes = figure.add_subplot(grid[1])
    dress(axes)
    classes = np.arange(len(exact))
    axes.barh(classes, exact, height=0.8, color=FAINT, label="exact attention (not private)")
    axes.errorbar(
        private,
        classes,
        xerr=WITHIN * stderr,
        linestyle="none",
        marker="o",
        color=BLUE,
        markersize=5.5,
        elinewidth=1.6,
        capsize=3,
        label=f"private memory, ±{WITHIN} standard errors",
    )
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(classes)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_ylabel("class")
    axes.set_xlabel("vote (0: as often as by chance)")
    legend_below(figure, axes)
    return figure


def secrets_found(
    names: Sequence[str],
    shares: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    allowed: Sequence[float],
    *,
    chance: float,
) -> Figure:
    """Return how often an attacker names a secret: a bar for each target of her attack.

    Args:
        names: of what was attacked.
        shares: how often she was right.
        intervals: 95% intervals of these.
        allowed: the most that the guarantee of each allows; NaN where there is none.
        chance: how often a guess is right.
    """
    figure, axes = figure_of(height=4.6, title="How often an attacker names the secret")
    places = np.arange(len(names))
    ends = np.abs(np.transpose(intervals) - np.asarray(shares))
    axes.barh(places, shares, height=0.6, color=BLUE, label="she is right (95% interval)")
    axes.errorbar(shares, places, xerr=ends, linestyle="none", color=INK, elinewidth=1.2, capsize=3)
    axes.plot(
        allowed,
        places,
        linestyle="none",
        marker="|",
        markersize=18,
        color=ORANGE,
        markeredgewidth=2.5,
        label="the most that (ε, δ) allows",
    )
    axes.axvline(chance, color=INK, linestyle=":", linewidth=1.8, label="a guess")
    axes.set_yticks(places, list(names))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.03)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    legend_below(figure, axes, columns=2)
    return figure


def lost_accuracy(epsilons: Sequence[float], losses: Mapping[str, Sequence[float]]) -> Figure:
    """Return what accuracy is lost to, step by step, as bars for each ε.

    Args:
        epsilons: the ε of each bar.
        losses: named shares of images, from the ceiling down, one for each ε.
    """
    figure, axes = figure_of(height=4.4, title="What keeps the memory from the ceiling")
    places = np.arange(len(epsilons))
    looks = zip((FAINT, ORANGE, BLUE), ("", "//", "xx"), strict=True)
    bottom = np.zeros(len(epsilons))
    for (name, loss), (colour, hatch) in zip(losses.items(), looks, strict=False):
        height = np.maximum(loss, 0.0)
        axes.bar(
            places,
            height,
            bottom=bottom,
            width=0.65,
            color=colour,
            hatch=hatch,
            edgecolor=PAPER,
            label=name,
        )
        bottom += height
    axes.set_xticks(places, [f"{each:g}" for each in epsilons])
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("ε")
    axes.set_ylabel("accuracy lost")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    legend_below(figure, axes)
    return figure


def budgets(bars: Sequence[tuple[str, float, float]]) -> Figure:
    """Return what is spent of privacy budgets, and what is left, one bar each.

    Args:
        bars: a name, the ε that is spent, and the ε that is the limit.
    """
    if not bars:
        raise InvalidInput("Expected at least one data set to draw, got none.")
    figure, axes = figure_of(height=1.3 + 0.65 * len(bars), title="Privacy budget")
    places = range(len(bars))
    limits = [limit for _, _, limit in bars]
    spent = [spent for _, spent, _ in bars]
    axes.barh(places, limits, height=0.55, color=PAPER, edgecolor=INK, label="limit")
    axes.barh(places, spent, height=0.55, color=BLUE, hatch="//", edgecolor=PAPER, label="spent")
    for place, (_, used, limit) in enumerate(bars):
        said = f" ε = {rounded_up(used)} of {limit:g}"
        axes.annotate(said, (max(used, limit), place), va="center", fontsize=9, color=INK)
    axes.set_yticks(list(places), [name for name, _, _ in bars])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.35 * max(*limits, *spent))
    axes.set_xlabel("ε of all releases together")
    legend_below(figure, axes, columns=2)
    return figure
