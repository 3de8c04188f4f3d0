"""What every section is made with: an amount of work, words that must be true, and one look."""

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from discreet._typing import Floats
from discreet.errors import DiscreetError
from discreet.pictures import dress

INK, FAINT, GREY = "#222222", "#d0d0d0", "#888888"
# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
)
_GLUE = "\u00a0"  # a space at which no line ends


@dataclass(frozen=True)
class Size:
    """How much work to do.

    Attributes:
        quick: whether to leave out what takes long.
        builds: of each structure, where the number is not by its size.
        draws: of noise for each method and point; at least one build is done.
        base_rows: n of the base setting.
        most_nodes: structures with more are computed and not built.
        largest_power: of the number of rows, where laws and times are measured.
        crossing_powers: of the number of rows, where the useful n is measured.
    """

    quick: bool
    builds: int
    draws: int
    base_rows: int
    most_nodes: int
    largest_power: int
    crossing_powers: tuple[int, ...]


FULL = Size(
    quick=False,
    builds=4,
    draws=12 * 10**6,
    base_rows=16384,
    most_nodes=7 * 10**6,
    largest_power=16,
    crossing_powers=(16, 17, 18),
)
QUICK = Size(
    quick=True,
    builds=2,
    draws=3 * 10**5,
    base_rows=1024,
    most_nodes=5 * 10**5,
    largest_power=13,
    crossing_powers=(12,),
)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of a straight line through log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def section(title: str, *parts: Sequence[str]) -> list[str]:
    """Return the lines of a section: its heading, and those of its parts."""
    return [f"## {title}", "", *(line for part in parts for line in part)]


def claim(holds: bool, sentence: str) -> str:  # noqa: FBT001 (reads as: claim that so is so)
    """Return a sentence of the page if what it says is so, or refuse to write the page."""
    if not holds:
        raise DiscreetError(f"The measurements do not support a sentence of the page: {sentence}")
    return sentence


def paragraph(*sentences: str) -> list[str]:
    """Return the lines of a paragraph, wrapped, and an empty one after it.

    No line begins with a sign that would make it an item of a list.
    """
    text = re.sub(r" (?=[-+*#>|] )", _GLUE, " ".join(sentences))
    lines = textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines] + [""]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table; floats are shown to three digits."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(_cell(each) for each in line) + " |" for line in lines] + [""]


def _cell(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def image(alt: str, name: str) -> list[str]:
    """Return the lines that show a picture."""
    return [f"![{alt}]({name})", ""]


def number(value: float, digits: int = 3) -> str:
    """Return a number in plain digits where they are few: 0.0123, 1.50, 1456, 2.69e6; – for none."""
    if value == 0:
        return "0"
    if math.isnan(value):
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    size = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if -4 <= size < 4:
        return f"{value:.{max(digits - 1 - size, 0)}f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def times(value: float) -> str:
    """Return a factor: 1456×, 5.0×, 1.16×."""
    return f"{number(value, 3 if value < 100 else 4)}×"


def power_of_two(power: int) -> str:
    """Return 2^17 ≈ 1.3e5."""
    return f"2^{power} ≈ {2.0**power:.1e}".replace("e+0", "e").replace("e+", "e")


def setting(value: float) -> str:
    """Return the value of a parameter: 16384, 2^20, 0.25, 1e-6."""
    if value >= 2**17 and float(value).is_integer() and int(value).bit_count() == 1:
        return f"2^{int(value).bit_length() - 1}"
    return f"{value:g}".replace("e-0", "e-")


def listed(items: Sequence[str]) -> str:
    """Return a, b and c."""
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


@dataclass(frozen=True)
class Look:
    """How a series is told from others, with and without colour."""

    marker: str
    colour: str
    line: str = "-"


def panels(
    count: int, *, size: tuple[float, float], columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure, in inches, with some axes side by side, in rows of `columns`."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    across = columns or count
    down = -(-count // across)
    grid = figure.subplots(down, across, squeeze=False)
    axes = list(grid.reshape(-1))
    for axis in axes[count:]:
        axis.remove()
    for axis in axes[:count]:
        dress(axis)
    return figure, axes[:count]


def marks(
    axis: Axes, x: Sequence[float] | Floats, y: Sequence[float] | Floats, look: Look, size: float
) -> None:
    """Draw a series as marks, without a line."""
    axis.plot(x, y, linestyle="", marker=look.marker, color=look.colour, markersize=size)


def by_ratios(axis: Axes, ticks: Sequence[float] | None = None) -> None:
    """Space both axes by ratios, in plain numbers; with ticks on x where something was tried."""
    axis.set(xscale="log", yscale="log")
    if ticks is not None:
        axis.set_xticks(list(ticks), [_tick(tick) for tick in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
    low, high = axis.get_ylim()
    subs = (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
    axis.yaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    plain_ticks(axis.yaxis)


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis in plain numbers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float) -> str:
    """Return a tick: 0.25, 16, 4096, 1e-6, 2^16 for large powers of two."""
    if value >= 8192 and float(value).hex().startswith("0x1.0000000000000p"):
        return f"2^{int(value).bit_length() - 1}"
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def titled(axis: Axes, title: str, x: str, y: str = "") -> None:
    """Name a picture and its axes."""
    axis.set_title(title, fontsize=10.5, color=INK, loc="left")
    axis.set(xlabel=x, ylabel=y)


def save(figure: Figure, path: Path) -> None:
    """Write one PNG, small enough to commit."""
    figure.savefig(path, dpi=80, metadata={"Software": None}, pil_kwargs={"optimize": True})
