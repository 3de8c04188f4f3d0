"""What is spent of privacy budgets, and what is left."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from discreet.errors import InvalidInput
from discreet.pictures.style import BLUE, INK, PAPER, figure_of, legend_below
from discreet.privacy import rounded_up


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
