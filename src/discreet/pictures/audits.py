"""The picture of an audit or an attack: what was found, over false alarms, beside the promise."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from discreet.pictures.style import BLUE, INK, ORANGE, Curve, Look, draw, figure_of, legend_below

_PROMISED, _MEASURED = Look("--", "", ORANGE), Look("-", "", BLUE)
_CHANCE = Look(":", "", INK)


def trade_off(
    measured: Curve,
    band: tuple[Sequence[float], Sequence[float]],
    promised: Curve,
    *,
    title: str,
    more: Mapping[str, Curve] | None = None,
) -> Figure:
    """Return how often a unit is found at each share of false alarms, and the most allowed.

    Args:
        measured: shares of hits over shares of false alarms, both above 0.
        band: where the true shares of hits are, 99% of the time: lower and upper ends.
        promised: the most that the promise allows.
        title: of the picture.
        more: other curves, by name.
    """
    figure, axes = figure_of(height=4.8, title=title)
    low, high = band
    axes.fill_between(measured.x, low, high, color=BLUE, alpha=0.25, linewidth=0)
    draw(axes, promised, "the most that such noise, or the promise, allows", _PROMISED)
    draw(axes, measured, "measured, with 99% intervals of what is found", _MEASURED)
    for number, (name, curve) in enumerate((more or {}).items()):
        draw(axes, curve, name, Look("-.", "os^"[number % 3], INK))
    draw(axes, Curve(promised.x, promised.x), "a guess", _CHANCE)
    axes.set(xscale="log", yscale="log", xlim=(min(promised.x), 1))
    axes.set_ylim(min(promised.x), 1.2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    axes.set_xlabel("false alarms: said to be there, and was not")
    axes.set_ylabel("found: said to be there, and was")
    legend_below(figure, axes)
    return figure
