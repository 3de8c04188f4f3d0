"""Pictures of the page: panels in the common style, and one look for each method everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from discreet.pictures import dress

INK, FAINT = "#222222", "#d0d0d0"
# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
)


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


def by_ratios(axis: Axes, ticks: Sequence[float] | None = None) -> None:
    """Space both axes by ratios, in plain numbers; with ticks on x where something was tried."""
    axis.set(xscale="log", yscale="log")
    if ticks is not None:
        axis.set_xticks(list(ticks), [plain(tick) for tick in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
    y_by_ratios(axis)


def y_by_ratios(axis: Axes) -> None:
    """Space y by ratios, in plain numbers."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    subs = (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
    axis.yaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    plain_ticks(axis.yaxis)


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis in plain numbers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_formatter(NullFormatter())


def plain(value: float) -> str:
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


def draw(
    axis: Axes, x: Sequence[float], series: Mapping[str, Sequence[float]], looks: Mapping[str, Look]
) -> None:
    """Draw named series over x, each in its look."""
    for name, y in series.items():
        look = looks[name]
        axis.plot(
            x,
            y,
            linestyle=look.line,
            marker=look.marker,
            color=look.colour,
            markersize=5,
            linewidth=1.5,
            label=name,
        )


def save(figure: Figure, path: Path) -> None:
    """Write one PNG, small enough to commit."""
    figure.savefig(path, dpi=80, metadata={"Software": None}, pil_kwargs={"optimize": True})
