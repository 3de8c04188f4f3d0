"""Pictures in one style. Needs the extra `plots`.

Functions take plain numbers and return a figure; `save` writes it and `data_uri` puts it in a page.
Curves differ in line and marker as well as in colour, and the colours (Okabe and Ito's) can be told
apart by colour-blind people. Figures are narrow, so that their letters are legible on a phone.
"""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike

from discreet._files import whole_file
from discreet.errors import InvalidInput
from discreet.memory.reader import WITHIN
from discreet.privacy import rounded_up

OWNERS_EYES = "For the owner's eyes: exact answers are not private."

_INK, _FAINT, _PAPER = "#222222", "#d0d0d0", "#ffffff"
_BLUE, _ORANGE = "#0072b2", "#d55e00"
# What each colour becomes in a page that is dark.
_AT_NIGHT = {
    _INK: "#e6e6e6",
    _FAINT: "#4a4a4a",
    _PAPER: "#171819",
    _BLUE: "#56b4e9",
    _ORANGE: "#ff9e57",
}
Place = Literal["lower right", "best"]

_WIDTH = 4.8  # inches
_MOST_POINTS = 200
_SUFFIXES = (".png", ".svg")


@dataclass(frozen=True)
class Curve:
    """Points to draw, with the standard error of each y if it was measured."""

    x: Sequence[float]
    y: Sequence[float]
    stderr: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    """One of several axes: named predictions, what was measured, and what was the same for all."""

    predicted: Mapping[str, Curve]
    measured: Curve
    fixed: str


@dataclass(frozen=True)
class Look:
    """How a curve is told from others, with and without colour."""

    line: str
    marker: str
    colour: str


_FIRST = Look("-", "o", _BLUE)
_SECOND = Look("--", "s", _INK)
_THIRD = Look(":", "^", _ORANGE)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, as the suffix says: whole, or not at all."""
    check_suffix(path)
    suffix = path.suffix.lower()
    with whole_file(path) as file:
        figure.savefig(file, format=suffix[1:], dpi=160, metadata=_no_metadata(suffix))


def check_suffix(path: Path) -> None:
    """Raise `InvalidInput` if `save` cannot write such a file."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidInput(f"Expected a picture to end in .png or .svg, got {path.name}.")


def as_svg(figure: Figure) -> str:
    """Return an SVG without background, in colours that follow the page into the dark."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata=_no_metadata(".svg"))
    text = file.getvalue()
    text = text[text.index("<svg") :]  # neither a prolog nor the address of a document type
    for number, day in enumerate(_AT_NIGHT):
        text = text.replace(day, f"var(--c{number})")
    return text.replace("<defs>", f"<style>{_colours()}</style><defs>", 1)


def data_uri(figure: Figure) -> str:
    """Return the SVG as an address for `<img src>`: nothing is fetched."""
    return "data:image/svg+xml;base64," + base64.b64encode(as_svg(figure).encode()).decode()


def accuracy_against_epsilon(
    *, private: Curve, exact: Curve, dpsgd: Curve | None = None, delta: float
) -> Figure:
    """Return the accuracy of private and exact attention and of DP-SGD, over ε."""
    figure, axes = _figure(height=4.2, title="Accuracy on images never seen")
    _draw(axes, exact, "exact attention (not private)", _SECOND)
    _draw(axes, private, "private memory, no training", _FIRST)
    if dpsgd is not None:
        _draw(axes, dpsgd, "DP-SGD, tuned on the test set", _THIRD)
    _ticks(axes, private.x)
    axes.set_xlabel(f"ε (δ = {delta:g}, one image added or removed)")
    axes.set_ylabel(f"accuracy (bars: ±{WITHIN} standard errors)")
    axes.set_ylim(top=1.0)
    _legend(axes, "lower right")
    return figure


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
    figure, axes = _figure(height=5.0, title="Private answers against exact ones")
    axes.set_title(
        f"{within:.1%} of {len(truth):,} numbers are within their bars"
        + (f" ({len(chosen)} are drawn)" if len(chosen) < len(truth) else ""),
        fontsize=9,
        color=_INK,
        loc="left",
    )
    axes.errorbar(
        truth[chosen],
        mine[chosen],
        yerr=WITHIN * spread[chosen],
        linestyle="none",
        marker="o",
        markersize=3,
        color=_BLUE,
        elinewidth=0.7,
        alpha=0.6,
        label=f"a number of an answer, ±{WITHIN} standard errors",
    )
    ends = [float(truth[chosen].min()), float(truth[chosen].max())]
    axes.plot(ends, ends, linestyle="--", color=_INK, linewidth=1.4, label="equal", zorder=3)
    # Where hardly any row matches a query, its bar is longer than all values: cut by the frame.
    shown = np.concatenate([truth[chosen], mine[chosen]])
    room = 0.08 * float(np.ptp(shown)) or 1.0
    axes.set_ylim(float(shown.min()) - room, float(shown.max()) + room)
    axes.set_xlabel("exact attention")
    axes.set_ylabel("private memory")
    _legend(axes, "lower right")
    figure.supxlabel(banner, fontsize=10, weight="bold", color=_ORANGE, multialignment="center")
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
    figure, axes = _figure(height=4.2, title="Noise in the paper's tree")
    total = [math.sqrt(sum(each**2 for each in stderr[: k + 1])) for k in range(len(stderr))]
    _draw(axes, Curve(levels, stderr), label, _SECOND)
    _draw(axes, Curve(levels, total), "a query: nodes down to this level", _FIRST)
    _by_ratios(axes)
    if reference is not None:
        name, value = reference
        axes.axhline(value, linestyle=":", color=_ORANGE, linewidth=2, label=name)
    axes.annotate(
        f"{total[-1]:.3g}",
        (levels[-1], total[-1]),
        xytext=(0, 7),
        textcoords="offset points",
        ha="center",
        color=_INK,
    )
    axes.margins(y=0.3)
    axes.set_xticks(list(levels))
    axes.set_xlabel("level (1: halves of the data; the last: leaves)")
    axes.set_ylabel("standard error of the noise")
    _legend(axes, "best")
    return figure


def error_against_epsilon_and_rows(by_epsilon: Panel, by_rows: Panel) -> Figure:
    """Return the error of answers, predicted as lines and measured as points, over ε and over n."""
    figure = _blank(height=6.8, title="Error of answers, predicted and measured")
    panels = figure.subplots(2, 1, sharey=True)
    for axes, panel, name in zip(panels, (by_epsilon, by_rows), ("ε", "rows n"), strict=True):
        dress(axes)
        for (label, curve), line in zip(panel.predicted.items(), ("--", "-", ":"), strict=False):
            _draw(axes, curve, f"predicted: {label}", Look(line, "", _INK))
        _draw(axes, panel.measured, f"measured, ±{WITHIN} standard errors", Look("", "o", _BLUE))
        _ticks(axes, panel.measured.x)
        _by_ratios(axes)
        axes.set_xlabel(f"{name} ({panel.fixed})")
        axes.set_ylabel("error of a number")
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower left",
        fontsize=9,
        frameon=False,
        labelcolor=_INK,
    )
    return figure


def errors_of_mechanisms(curves: Mapping[str, Curve], *, title: str) -> Figure:
    """Return errors of several mechanisms against ε, both by ratios, each with its name."""
    figure, axes = _figure(height=4.4, title=title)
    looks = (_FIRST, _SECOND, _THIRD, Look("-.", "", _INK))
    for (name, curve), look in zip(curves.items(), looks, strict=False):
        _draw(axes, curve, name, look)
    _ticks(axes, next(iter(curves.values())).x)
    _by_ratios(axes)
    axes.set_xlabel("ε (δ = 1e-6)")
    axes.set_ylabel("error of a number")
    figure.legend(loc="outside lower left", fontsize=9, frameon=False, labelcolor=_INK, ncols=2)
    return figure


def budgets(bars: Sequence[tuple[str, float, float]]) -> Figure:
    """Return what is spent of privacy budgets, and what is left, one bar each.

    Args:
        bars: a name, the ε that is spent, and the ε that is the limit.
    """
    if not bars:
        raise InvalidInput("Expected at least one data set to draw, got none.")
    figure, axes = _figure(height=1.3 + 0.65 * len(bars), title="Privacy budget")
    places = range(len(bars))
    limits = [limit for _, _, limit in bars]
    spent = [spent for _, spent, _ in bars]
    axes.barh(places, limits, height=0.55, color=_PAPER, edgecolor=_INK, label="limit")
    axes.barh(places, spent, height=0.55, color=_BLUE, hatch="//", edgecolor=_PAPER, label="spent")
    for place, (_, used, limit) in enumerate(bars):
        said = f" ε = {rounded_up(used)} of {limit:g}"
        axes.annotate(said, (max(used, limit), place), va="center", fontsize=9, color=_INK)
    axes.set_yticks(list(places), [name for name, _, _ in bars])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.35 * max(*limits, *spent))
    axes.set_xlabel("ε of all releases together")
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower left",
        fontsize=9,
        frameon=False,
        labelcolor=_INK,
        ncols=2,
    )
    return figure


def _blank(*, height: float, title: str) -> Figure:
    room = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(_WIDTH, height), layout=room, facecolor=_PAPER)
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, weight="bold", color=_INK, x=0.02, ha="left")
    return figure


def _figure(*, height: float, title: str) -> tuple[Figure, Axes]:
    figure = _blank(height=height, title=title)
    axes = figure.subplots()
    dress(axes)
    return figure, axes


def dress(axes: Axes) -> None:
    """Give axes the common look."""
    axes.grid(visible=True, color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK, labelsize=9.5, which="both")
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set(color=_INK, fontsize=10)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_INK)


def _draw(axes: Axes, curve: Curve, label: str, look: Look) -> None:
    spread = None if curve.stderr is None else [WITHIN * each for each in curve.stderr]
    axes.errorbar(
        curve.x,
        curve.y,
        yerr=spread,
        label=label,
        linestyle=look.line,
        marker=look.marker,
        color=look.colour,
        markersize=5.5,
        linewidth=1.6,
        elinewidth=1.2,
        capsize=3,
    )


def _ticks(axes: Axes, x: Sequence[float]) -> None:
    """Space x by ratios, with a tick for each value that was tried."""
    axes.set_xscale("log")
    axes.set_xticks(list(x), [f"{each:,.6g}" for each in x])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _by_ratios(axes: Axes) -> None:
    """Space y by ratios, in plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.3g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes, place: Place) -> None:
    axes.legend(
        loc=place,
        fontsize=9,
        labelcolor=_INK,
        facecolor=_PAPER,
        edgecolor="none",
        framealpha=0.85,  # bars behind it stay to be guessed
    ).set_zorder(4)


def _no_metadata(suffix: str) -> dict[str, None]:
    names = ("Creator", "Date", "Format", "Type") if suffix == ".svg" else ("Software",)
    return dict.fromkeys(names)


def _colours() -> str:
    """Return a style sheet that names the colours, for the day and for the night."""
    by_day = "".join(f"--c{number}:{day};" for number, day in enumerate(_AT_NIGHT))
    by_night = "".join(f"--c{n}:{night};" for n, night in enumerate(_AT_NIGHT.values()))
    return f":root{{{by_day}}}@media (prefers-color-scheme:dark){{:root{{{by_night}}}}}"
