"""The demo's picture: accuracy against ε. Needs the extra `plots`."""

import textwrap
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from discreet.cli.digits import Accuracy


def accuracy_against_epsilon(
    path: Path,
    *,
    private: list[Accuracy],
    exact: list[Accuracy],
    dpsgd: list[Accuracy],
    note: str,
) -> None:
    """Write a PNG with three curves, told apart by line and marker as well as by colour."""
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    curves = (
        (exact, "exact attention, same temperature (not private)", "--", "s", "0.35"),
        (private, "discreet memory, no training", "-", "o", "tab:blue"),
        (dpsgd, "DP-SGD (Opacus), tuned on the test set", ":", "^", "tab:orange"),
    )
    for points, label, line, marker, colour in curves:
        axes.errorbar(
            [each.epsilon for each in points],
            [each.mean for each in points],
            yerr=[2 * each.stderr for each in points],
            label=label,
            linestyle=line,
            marker=marker,
            color=colour,
            capsize=3,
        )
    axes.set_xscale("log", base=2)
    ticks = sorted({each.epsilon for each in private})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("ε (δ = 1e-5, one image added or removed)")
    axes.set_ylabel("accuracy on unseen digits (± 2 standard errors)")
    axes.set_ylim(None, 1.0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower right")
    figure.supxlabel(textwrap.fill(note, 100), fontsize=8)
    figure.savefig(path, dpi=150)
