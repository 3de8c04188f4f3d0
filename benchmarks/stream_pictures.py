"""The picture of `stream.py`: noise after each day of a year, for several ways of adding it."""

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from stream_noise import HONAKER, INDEPENDENT, SQUARE_ROOT, THIS, TREE, curves
from stream_shared import YEAR, Report

from discreet_benchmarks.paper.page import AMBER, BLUE, INK, ORANGE, PURPLE, panels

LOOKS = {  # colour, line, width
    INDEPENDENT: (PURPLE, "-.", 1.6),
    TREE: (ORANGE, "-", 0.6),
    HONAKER: (AMBER, "-", 0.6),
    THIS: (BLUE, "-", 3.0),
    SQUARE_ROOT: (INK, "--", 1.2),
}


def draw_noise(report: Report) -> Figure:
    """Draw computed noise as lines, and that of built states as dots."""
    figure, [axis] = panels(1, size=(6.4, 4.6))
    days = range(1, YEAR + 1)
    for name, each in curves(YEAR).items():
        colour, line, width = LOOKS[name]
        axis.plot(days, each, line, color=colour, linewidth=width, label=name)
    built = {int(day): found["measured"] for day, found in report["over_time"].items()}
    axis.plot(
        list(built), list(built.values()), "o", color=BLUE, mec=INK, ms=5, label="stream, measured"
    )
    axis.set_xlabel("days, in a stream for a year")
    axis.set_ylabel("noise of all so far, over one release")
    axis.set(yscale="log", xlim=(-5, 372), ylim=(0.9, 24))
    axis.set_yticks([1, 2, 3, 5, 10, 20], ["1", "2", "3", "5", "10", "20"])
    axis.yaxis.set_minor_locator(NullLocator())
    figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    return figure
