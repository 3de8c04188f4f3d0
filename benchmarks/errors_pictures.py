"""The three pictures of `errors.py`."""

from collections.abc import Sequence

from errors_measure import (
    CHECKED,
    EPSILONS,
    FEWER,
    FOURIER,
    LABELS,
    LEAST,
    MOST,
    NYSTROM,
    Cell,
    Curves,
)
from errors_readout import AFTER, ALIKE, BEFORE
from errors_readout import Cell as ReadoutCell
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from discreet.pictures import dress
from discreet.readers.attention.reader import WITHIN
from discreet_benchmarks.paper.page import panels

LOOKS = {FOURIER: ("o-", "#0072b2"), FEWER: ("s--", "#222222"), NYSTROM: ("^:", "#d55e00")}
READ_LOOKS = {BEFORE: ("s--", "#222222"), AFTER: ("o-", "#0072b2"), ALIKE: ("^-", "#009e73")}
LEGEND = {"loc": "outside upper left", "ncols": 4, "frameon": False, "fontsize": 9}


def draw_intervals(by_kernel: dict[str, list[Cell]]) -> Figure:
    """Draw one line for each cell: from the noise alone to the whole ±."""
    count = len(next(iter(by_kernel.values())))
    figure, axes = panels(len(by_kernel), size=(2.2 + 2.6 * len(by_kernel), 1.5 + 0.165 * count))
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    for axis, (kind, cells) in zip(axes, by_kernel.items(), strict=True):
        draw_kernel(axis, kind, cells)
    for axis in axes[1:]:
        axis.set_yticklabels([])
    figure.supxlabel(
        f"numbers within {WITHIN} standard errors of exact attention; "
        f"for each number of rows, ε = {', '.join(f'{each:g}' for each in CHECKED)}, downwards",
        fontsize=9,
    )
    figure.legend(*axes[0].get_legend_handles_labels(), **LEGEND)
    return figure


def draw_kernel(axis: Axes, kind: str, cells: Sequence[Cell]) -> None:
    """Draw the cells of one kernel, with room between sources and between numbers of rows."""
    places, labels, place = [], {}, 0.0
    for before, cell in zip([None, *cells], cells, strict=False):
        if before is not None and before.source is not cell.source:
            place += 1.0
        elif before is not None and before.rows != cell.rows:
            place += 0.4
        if before is None or (before.source, before.rows) != (cell.source, cell.rows):
            labels[place + 1] = f"{cell.source.name}, {cell.rows:,}"
        places.append(place)
        place += 1
    whole, noise = [cell.within for cell in cells], [cell.noise_within for cell in cells]
    axis.axvspan(LEAST, MOST, color="#e3eef5", zorder=0, label=f"{LEAST:.0%} to {MOST:.0%}")
    axis.hlines(places, noise, whole, color="#bbbbbb", linewidth=0.8, zorder=1)
    axis.plot(noise, places, "o", mfc="white", mec="#666666", ms=3.6, label="noise alone")
    axis.plot(whole, places, "o", color="#0072b2", ms=4.2, label="noise and kernel: ±")
    axis.grid(visible=False, axis="y")
    axis.set_xlim(-0.03, 1.03)
    axis.set_title(kind, fontsize=10, loc="left")
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    axis.set_yticks(list(labels), list(labels.values()))
    axis.set_ylim(place, -1)
    axis.tick_params(axis="y", length=0)


def draw_epsilon(curves: Curves) -> Figure:
    """Draw error over spread against ε, one panel for the most rows of each source."""
    names = list(dict.fromkeys(name for name, _, _ in curves))
    figure = Figure(figsize=(6.4, 6.2), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for axis, name in zip(axes.flat, names, strict=False):
        draw_source(axis, name, curves)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    figure.supxlabel("ε", fontsize=10)
    figure.supylabel("error over spread of exact answers", fontsize=10)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), **LEGEND)
    return figure


def draw_source(axis: Axes, name: str, curves: Curves) -> None:
    """Draw the most rows of one source."""
    count = max(rows for source, _, rows in curves if source == name)
    for kind, (mark, colour) in LOOKS.items():
        if (name, kind, count) in curves:
            ratios = [cell.error / cell.spread for cell in curves[name, kind, count]]
            axis.plot(EPSILONS, ratios, mark, color=colour, ms=4.5, label=LABELS[kind])
    dress(axis)
    axis.axhline(1.0, color="#777777", linewidth=1.0, label="as good as a constant")
    axis.set(xscale="log", yscale="log")
    axis.set_title(f"{name}, {count:,} rows", fontsize=10, loc="left")
    axis.set_xticks(EPSILONS, [f"{each:g}" for each in EPSILONS])
    axis.xaxis.set_minor_locator(NullLocator())
    plain_numbers(axis)


def plain_numbers(axis: Axes) -> None:
    """Write 0.02 instead of a power of ten."""
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.3g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def draw_readout(grown: Sequence[ReadoutCell]) -> Figure:
    """Draw errors against rows for each way of reading, above the noise alone."""
    figure, [axis] = panels(1, size=(6.4, 4.4))
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    counts = [cell.rows for cell in grown]
    for way, (mark, colour) in READ_LOOKS.items():
        axis.plot(counts, [cell.error[way] for cell in grown], mark, color=colour, ms=5, label=way)
    noise = [cell.noise for cell in grown]
    axis.plot(counts, noise, ":", color="#777777", linewidth=1.5, label="noise alone")
    axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="error")
    axis.set_xticks(counts, [f"{each:,}" for each in counts])
    axis.xaxis.set_minor_locator(NullLocator())
    plain_numbers(axis)
    figure.legend(*axis.get_legend_handles_labels(), **(LEGEND | {"ncols": 2}))
    return figure
