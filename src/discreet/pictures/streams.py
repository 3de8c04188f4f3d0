"""The picture of a stream: how its noise grows with the steps, and what its windows can tell."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from discreet.pictures.style import (
    BLUE,
    FIRST,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    Curve,
    Look,
    blank,
    by_ratios,
    draw,
    dress,
    legend_below,
    ticks,
)

_LOOKS = (Look("-", "", BLUE), Look("--", "", GREEN), Look("-.", "", INK), Look(":", "", PURPLE))

# Ticks of a longer axis are powers of ten; of a shorter one, their triples, too.
_LONG = 1000


def noise_of_stream(
    by_step: Mapping[str, Curve],
    by_window: Curve,
    *,
    step: int,
    x_label: str,
    y_label: str,
    level: str,
) -> Figure:
    """Return the noise of a stream's states over the steps, and what its windows can tell.

    Args:
        by_step: named noise over that of one single release; first the stream's own.
        by_window: what is told of windows, over their length.
        step: how many steps there have been; 0 if none.
        x_label: what lengths of windows are.
        y_label: what is told of them.
        level: what 1 means there.
    """
    figure = blank(height=6.6, title="Noise of a stream, and what it can tell")
    above, below = figure.subplots(2, 1, height_ratios=(3, 2))
    for axes in (above, below):
        dress(axes)
    for (name, curve), look in zip(by_step.items(), _LOOKS, strict=False):
        draw(above, curve, name, look)
    if step:
        above.axvline(step, color=ORANGE, linewidth=1.2, linestyle="--")
    ticks(above, _round_numbers(max(max(curve.x) for curve in by_step.values())))
    by_ratios(above)
    above.set_xlabel(f"step ({f'now: {step:,}' if step else 'there is none yet'})")
    above.set_ylabel("noise over one release's")
    draw(below, by_window, "what windows can tell", FIRST)
    below.axhline(1, color=INK, linewidth=1.2, linestyle="--")
    ticks(below, _round_numbers(max(by_window.x)))
    by_ratios(below)
    below.set_ylim(min(*by_window.y, 0.8) / 1.15, max(*by_window.y, 1.25) * 1.15)
    _name_level(below, level, by_window)
    below.set(xlabel=x_label, ylabel=y_label)
    legend_below(figure, above)
    return figure


def _name_level(axes: Axes, level: str, curve: Curve) -> None:
    """Say what 1 means, where the curve is lowest, on the other side of the line."""
    at_left, above = curve.y[0] <= curve.y[-1], min(curve.y) < 1
    axes.annotate(
        level,
        (0.01 if at_left else 0.99, 1),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3 if above else -4),
        textcoords="offset points",
        ha="left" if at_left else "right",
        va="bottom" if above else "top",
        fontsize=9,
        color=INK,
    )


def _round_numbers(last: float) -> list[float]:
    """Return 1, 3, 10 and so on, as far as an axis goes."""
    found, unit = [], 1.0
    while unit <= last:
        found += [unit] if last > _LONG else [each for each in (unit, 3 * unit) if each <= last]
        unit *= 10
    return found
