"""Classes that were named: by whom, how often rightly, and what an attacker gets to know."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from discreet._typing import Floats
from discreet.pictures.style import (
    BLUE,
    FAINT,
    FIRST,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PURPLE,
    THIRD,
    Curve,
    Look,
    blank,
    draw,
    dress,
    figure_of,
    legend_below,
    ticks,
)
from discreet.readers.attention.reader import WITHIN

# Private methods, and levels that do not depend on ε.
_METHODS = (FIRST, Look("-", "D", GREEN), Look("-.", "s", PURPLE), THIRD)
_LEVELS = ("--", ":")


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
