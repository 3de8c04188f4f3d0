"""The picture of a model of a table: what each column adds to a score, one panel a column."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.pictures.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    Look,
    blank,
    dress,
    legend_below,
)

# One score after the other: colours first, then lines, so that few scores differ in both.
_COLOURS, _LINES, _MARKERS = (BLUE, ORANGE, GREEN, PURPLE, INK), ("-", "--", "-.", ":"), "osD^v"

_PANEL_WIDTH, _PANEL_HEIGHT, _ROOM = 3.7, 2.35, 1.3  # inches

# So many categories of a column are drawn, and so many letters of a name.
_MOST_CATEGORIES, _LETTERS, _TITLE_LETTERS = 10, 20, 30

# Letters in a line of the caption, for each panel side by side.
_CAPTION = 58


@dataclass(frozen=True, eq=False)
class ShapePanel:
    """What one column adds to scores.

    Attributes:
        name: of the column.
        share: of what all columns do to scores.
        edges: where bins of numbers end, rising; None for categories.
        ends: the range that the first and the last bin end at; None if nobody knows it.
        dates: whether edges are seconds since 1970.
        labels: of bins or categories.
        values: shape (bins or categories, outputs).
        margins: the ± of each.
        clear: whether any of them is larger than its ±.
    """

    name: str
    share: float
    edges: Floats | None
    ends: tuple[float, float] | None
    dates: bool
    labels: Sequence[str]
    values: Floats
    margins: Floats
    clear: bool


def shapes_of_columns(panels: Sequence[ShapePanel], *, outputs: Sequence[str], adds: str) -> Figure:
    """Return what each column adds: steps with a band for numbers, dots with bars for categories.

    Scores have the same axis in all panels, upright for numbers and level for categories, so that
    columns can be compared.

    Args:
        panels: the most important column first.
        outputs: the name of each score; empty if there is one.
        adds: what columns add to, in words.
    """
    if not panels:
        raise InvalidInput("Expected at least one column to draw, got none.")
    across = 1 if len(panels) == 1 else 2
    down = math.ceil(len(panels) / across)
    figure = blank(height=_ROOM + _PANEL_HEIGHT * down, title="What each column adds")
    figure.set_size_inches(_PANEL_WIDTH * across + 0.3, _ROOM + _PANEL_HEIGHT * down)
    grid = figure.subplots(down, across, squeeze=False)
    limits = _limits(panels)
    for axes, panel in zip(grid.flat, panels, strict=False):
        dress(axes)
        _title(axes, panel)
        if panel.edges is None:
            _dots(axes, panel, outputs, limits)
        else:
            _steps(axes, panel, outputs, limits)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    caption = f"Added to {adds}. Bands and bars: ±1.96 standard errors of the noise."
    wrapped = textwrap.fill(caption, _CAPTION * across)
    legend_below(figure, grid[0, 0], columns=2 * across, caption=wrapped)
    return figure


def _look(place: int) -> Look:
    colours, lines = len(_COLOURS), len(_LINES)
    return Look(
        _LINES[(place + place // colours) % lines],
        _MARKERS[place % len(_MARKERS)],
        _COLOURS[place % colours],
    )


def _limits(panels: Sequence[ShapePanel]) -> tuple[float, float]:
    """Return a range that holds all values, and all but the longest bars."""
    values = np.concatenate([panel.values.ravel() for panel in panels])
    margins = np.concatenate([panel.margins.ravel() for panel in panels])
    low, high = min(float(np.min(values)), 0.0), max(float(np.max(values)), 0.0)
    # Bars of what hardly any row has are longer than all else: those the frame may cut.
    most = 0.75 * (high - low) or np.inf
    low, high = (
        max(min(low, float(np.min(values - margins))), low - most),
        min(max(high, float(np.max(values + margins))), high + most),
    )
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _title(axes: Axes, panel: ShapePanel) -> None:
    name = _cut(panel.name, _TITLE_LETTERS)
    axes.set_title(f"{name}  ({panel.share:.0%})", fontsize=10, color=INK, loc="left")
    if not panel.clear:
        axes.set_xlabel("not clear of the noise", color=ORANGE, fontsize=9)


def _steps(
    axes: Axes, panel: ShapePanel, outputs: Sequence[str], limits: tuple[float, float]
) -> None:
    """Draw a function that is constant between edges."""
    ends = _all_ends(panel)
    axes.axhline(0, color=INK, linewidth=0.8)
    for place, (values, margins) in enumerate(zip(panel.values.T, panel.margins.T, strict=True)):
        look = _look(place)
        low, high = (np.append(each, each[-1]) for each in (values - margins, values + margins))
        axes.fill_between(ends, low, high, step="post", color=look.colour, alpha=0.2, linewidth=0)
        axes.stairs(
            values,
            ends,
            baseline=None,
            color=look.colour,
            linestyle=look.line,
            linewidth=1.6,
            label=outputs[place] if outputs else None,
        )
    axes.set_xlim(ends[0], ends[-1])
    axes.set_ylim(*limits)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if panel.dates:
        locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(formatter)
        axes.xaxis.get_offset_text().set(fontsize=8.5, color=INK)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(FuncFormatter(_number))


def _number(x: float, _: object) -> str:
    """Return a number as on other axes, whose minus is a minus."""
    return f"{x:,.6g}".replace("-", "\N{MINUS SIGN}")


def _all_ends(panel: ShapePanel) -> Floats:
    """Return where bins begin and end, the first and the last included."""
    edges = np.asarray(panel.edges, dtype=float)
    if panel.ends is not None:
        low, high = panel.ends
    elif len(edges):  # open ends are as wide as the bins beside them
        low = edges[0] - (edges[1] - edges[0] if len(edges) > 1 else 1.0)
        high = edges[-1] + (edges[-1] - edges[-2] if len(edges) > 1 else 1.0)
    else:
        low, high = 0.0, 1.0
    whole = np.concatenate([[low], edges, [high]])
    # matplotlib counts days since 1970.
    return whole / 86_400 if panel.dates else whole


def _dots(
    axes: Axes, panel: ShapePanel, outputs: Sequence[str], limits: tuple[float, float]
) -> None:
    """Draw categories below each other, the largest on top; of many, those furthest from zero."""
    size = np.max(np.abs(panel.values), axis=1)
    kept = np.argsort(-size, kind="stable")[:_MOST_CATEGORIES]
    kept = kept[np.argsort(-panel.values[kept, 0], kind="stable")]
    places = np.arange(len(kept))
    count = panel.values.shape[1]
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, (values, margins) in enumerate(zip(panel.values.T, panel.margins.T, strict=True)):
        look = _look(place)
        axes.errorbar(
            values[kept],
            places + 0.5 * ((place + 0.5) / count - 0.5),
            xerr=margins[kept],
            linestyle="none",
            marker=look.marker,
            color=look.colour,
            markersize=4.5,
            elinewidth=1.2,
            capsize=2.5,
            label=outputs[place] if outputs else None,
        )
    axes.set_yticks(places, [_cut(panel.labels[each], _LETTERS) for each in kept])
    axes.tick_params(axis="y", labelsize=8.5)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(max(len(kept), 3) - 0.4, -0.6)
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if len(kept) < len(panel.labels):
        said = f"{len(kept)} of {len(panel.labels)} categories"
        axes.set_xlabel(said if panel.clear else f"{said}; not clear of the noise")


def _cut(name: str, letters: int) -> str:
    """Return a name that is not too long, and no formula."""
    short = name if len(name) <= letters else f"{name[: letters - 1]}…"
    return short.replace("$", r"\$")
