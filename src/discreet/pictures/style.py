"""What all pictures have in common: size, colours, axes, and how they become files and pages."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from discreet._files import whole_file
from discreet.errors import InvalidInput
from discreet.readers.attention.reader import WITHIN

INK, FAINT, PAPER = "#222222", "#d0d0d0", "#ffffff"
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
# What each colour becomes in a page that is dark.
_AT_NIGHT = {
    INK: "#e6e6e6",
    FAINT: "#4a4a4a",
    PAPER: "#171819",
    BLUE: "#56b4e9",
    ORANGE: "#ff9e57",
    GREEN: "#4fd6a8",
    PURPLE: "#e3a5c7",
}
Place = Literal["lower right", "best"]

_WIDTH = 4.8  # inches
_SUFFIXES = (".png", ".svg")


@dataclass(frozen=True)
class Curve:
    """Points to draw.

    Attributes:
        x: where.
        y: how high.
        stderr: the standard error of each y, if it was measured.
    """

    x: Sequence[float]
    y: Sequence[float]
    stderr: Sequence[float] | None = None


@dataclass(frozen=True)
class Look:
    """How a curve is told from others, with and without colour."""

    line: str
    marker: str
    colour: str


FIRST = Look("-", "o", BLUE)
SECOND = Look("--", "s", INK)
THIRD = Look(":", "^", ORANGE)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, as the suffix says: whole, or not at all.

    An SVG follows whoever looks at it into the dark, background and all.

    Args:
        figure: to write.
        path: ends in .png or .svg.

    Raises:
        InvalidInput: if it has another suffix.
        OSError: if it cannot be written.
    """
    check_suffix(path)
    with whole_file(path) as file:
        if path.suffix.lower() == ".svg":
            file.write(b'<?xml version="1.0" encoding="utf-8"?>\n')
            file.write(_svg(figure, transparent=False).encode())
        else:
            figure.savefig(file, format="png", dpi=160, metadata={"Software": None})


def check_suffix(path: Path) -> None:
    """Raise `InvalidInput` if `save` cannot write such a file.

    Args:
        path: that is meant to be written.

    Raises:
        InvalidInput: if its suffix is neither .png nor .svg.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidInput(f"Expected a picture to end in .png or .svg, got {path.name}.")


def as_svg(figure: Figure) -> str:
    """Return an SVG without background, in colours that follow the page into the dark.

    Args:
        figure: to show.

    Returns:
        One `<svg>` element.
    """
    return _svg(figure, transparent=True)


def _svg(figure: Figure, *, transparent: bool) -> str:
    """Return an SVG whose colours have names, the same for the same figure."""
    file = io.StringIO()
    nobody = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.hashsalt": "discreet"}):
        figure.savefig(file, format="svg", transparent=transparent, metadata=nobody)
    text = file.getvalue()
    text = text[text.index("<svg") :]  # neither a prolog nor the address of a document type
    for number, day in enumerate(_AT_NIGHT):
        text = text.replace(day, f"var(--c{number})")
    return text.replace("<defs>", f"<style>{_colours()}</style><defs>", 1)


def data_uri(figure: Figure) -> str:
    """Return the SVG as an address for `<img src>`: nothing is fetched.

    Args:
        figure: to show.

    Returns:
        A data URI.
    """
    return "data:image/svg+xml;base64," + base64.b64encode(as_svg(figure).encode()).decode()


def blank(*, height: float, title: str) -> Figure:
    """Return a figure with a title and no axes."""
    room = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(_WIDTH, height), layout=room, facecolor=PAPER)
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, weight="bold", color=INK, x=0.02, ha="left")
    return figure


def figure_of(*, height: float, title: str) -> tuple[Figure, Axes]:
    """Return a figure with a title and one pair of axes."""
    figure = blank(height=height, title=title)
    axes = figure.subplots()
    dress(axes)
    return figure, axes


def dress(axes: Axes) -> None:
    """Give axes the common look.

    Args:
        axes: to change.
    """
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9.5, which="both")
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set(color=INK, fontsize=10)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def draw(axes: Axes, curve: Curve, label: str, look: Look) -> None:
    """Draw a curve, with bars where it was measured."""
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


def ticks(axes: Axes, x: Sequence[float]) -> None:
    """Space x by ratios, with a tick for each value that was tried."""
    axes.set_xscale("log")
    axes.set_xticks(list(x), [f"{each:,.6g}" for each in x])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def by_ratios(axes: Axes) -> None:
    """Space y by ratios, in plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.3g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def legend_below(figure: Figure, axes: Axes, columns: int = 1, *, caption: str = "") -> None:
    """Name what is on some axes, below all of them, under a caption if there is one."""
    made = figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower left",
        fontsize=9,
        frameon=False,
        labelcolor=INK,
        ncols=columns,
        title=caption or None,
        title_fontsize=9,
        alignment="left",
    )
    made.get_title().set_color(INK)


def legend(axes: Axes, place: Place) -> None:
    """Name what is on some axes, on top of them."""
    axes.legend(
        loc=place,
        fontsize=9,
        labelcolor=INK,
        facecolor=PAPER,
        edgecolor="none",
        framealpha=0.85,  # bars behind it stay to be guessed
    ).set_zorder(4)


def _colours() -> str:
    """Return a style sheet that names the colours, for the day and for the night."""
    by_day = "".join(f"--c{number}:{day};" for number, day in enumerate(_AT_NIGHT))
    by_night = "".join(f"--c{n}:{night};" for n, night in enumerate(_AT_NIGHT.values()))
    return f":root{{{by_day}}}@media (prefers-color-scheme:dark){{:root{{{by_night}}}}}"
