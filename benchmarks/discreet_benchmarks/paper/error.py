"""The error of a private attention against the truth: every method, every parameter."""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from discreet.paper.forest import all_depths, levels_for, node_count
from discreet.paper.softmax import MOMENTS
from discreet.pictures.style import legend_below
from discreet_benchmarks.paper import forecast, page
from discreet_benchmarks.paper.attention import (
    DIRECT,
    ITEMS,
    LARGEST,
    MEAN,
    MEMORY,
    METHODS,
    PAPER,
    QUERIES,
    TIGHT,
    TREES,
    ZERO,
    Setting,
    task_of,
)
from discreet_benchmarks.paper.forecast import sampled_task
from discreet_benchmarks.paper.page import Look, Size, claim, number, paragraph, power_of_two, table

LOOKS = {
    ZERO: Look("", page.INK, "--"),
    MEAN: Look("v", page.GREY, ":"),
    ITEMS: Look("x", page.PURPLE, ":"),
    PAPER: Look("o", page.ORANGE),
    LARGEST: Look("s", page.AMBER),
    TIGHT: Look("^", page.GREEN),
    DIRECT: Look("D", page.SKY, "--"),
    MEMORY: Look("*", page.BLUE),
}

# A signal this clear is half the error of the best constant.
_CLEAR = 0.5


@dataclass(frozen=True)
class Sweep:
    """One parameter that changes while the others stay.

    Attributes:
        letter: its name in the paper.
        field: its name in `Setting`.
        values: what it is set to.
        built: whether trees are built and measured, and not only computed.
    """

    letter: str
    field: str
    values: tuple[float, ...]
    built: bool = False

    def settings(self, base: Setting) -> list[Setting]:
        """Return the setting of each value."""
        return [base.changed(**{self.field: value}) for value in self.values]


def sweeps(size: Size) -> list[Sweep]:
    """Return what is tried: all of it, or the ends and the base."""
    rows = size.base_rows
    full = [
        Sweep("n", "rows", (rows // 16, rows // 4, rows, 4 * rows, 2**20, 2**24), built=True),
        Sweep("ε", "epsilon", (0.25, 1.0, 4.0, 16.0, 64.0, 256.0), built=True),
        Sweep("R", "upper", (0.5, 0.75, 1.0, 1.5, 2.0)),
        Sweep("R_w", "bound", (1.0, 4.0)),
        Sweep("ε_s", "eps_s", (0.3, 0.1, 0.03, 0.01)),
        Sweep("d", "dim", (1, 2, 4, 8)),
        Sweep("d_v", "columns", (1, 2, 4)),
        Sweep("δ'", "delta_prime", (1e-4, 1e-6, 1e-10)),
    ]
    if not size.quick:
        return full
    return [replace(each, values=each.values[:2]) for each in full]


@dataclass(frozen=True)
class Point:
    """The relative errors of one setting: measured, and computed where there is a formula."""

    setting: Setting
    measured: dict[str, float]
    computed: dict[str, float]
    floor: float

    def error(self, name: str) -> float:
        """Return what was computed for trees, which has no luck in it, and measured for others."""
        if name in TREES or name not in self.measured:
            return self.computed.get(name, math.nan)
        return self.measured[name]


class Experiment:
    """Measures settings, each once."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.base = Setting(rows=size.base_rows)
        self._points: dict[Setting, Point] = {}

    def point(self, setting: Setting, *, built: bool = False) -> Point:
        """Return the errors of a setting, of trees that are built only if it says so."""
        if setting not in self._points:
            self._points[setting] = self._point(setting, built=built)
        return self._points[setting]

    def _point(self, setting: Setting, *, built: bool) -> Point:
        computed = {name: forecast.forecast_trees(setting, name) for name in TREES}
        computed |= {
            DIRECT: forecast.forecast_direct(setting),
            ITEMS: forecast.forecast_items(setting),
        }
        names = [
            name
            for name in METHODS
            if _nodes(setting, name) <= self.size.most_nodes and (built or name not in TREES)
        ]
        return Point(
            setting,
            {name: self._measured(setting, name) for name in names},
            computed,
            forecast.without_noise(setting),
        )

    def _measured(self, setting: Setting, name: str) -> float:
        """Return the root mean square relative error over some builds."""
        task = task_of(setting)
        first = zlib.crc32(repr(setting).encode())  # other noise at other points
        squares = [
            task.relative_error(METHODS[name](setting, task, first + build)) ** 2
            for build in range(builds_of(self.size, setting, name))
        ]
        return math.sqrt(np.mean(squares))


def builds_of(size: Size, setting: Setting, name: str) -> int:
    """Return how often a method is measured: as often as so many draws allow."""
    most = size.builds * (2 if name == MEMORY else 5 if name in TREES else 10)
    return max(1, min(most, size.draws // _nodes(setting, name)))


def _nodes(setting: Setting, name: str) -> int:
    """Return how much there is to draw, or to add up, for one answer of this method."""
    design = forecast.design_of(setting)
    if name not in TREES:
        return setting.rows * design.kernel.features
    copies = 1 if name == TIGHT else design.as_built().copies
    trees = design.kernel.features * MOMENTS * copies * (setting.columns + 1)
    return node_count(all_depths(levels_for(setting.rows))) * trees


def error_page(out: Path, size: Size) -> list[str]:
    """Sweep every parameter around the base setting."""
    experiment = Experiment(size)
    found = [
        (sweep, [experiment.point(s, built=sweep.built) for s in sweep.settings(experiment.base)])
        for sweep in sweeps(size)
    ]
    _picture(found, out / "paper-error.png")
    base = experiment.point(experiment.base)
    return page.section(
        "Error against the truth",
        _takeaway(base),
        _words_of_task(experiment, base.setting),
        _agreement(found, size),
        page.image(
            "relative error of every method against n, ε, R, R_w, ε_s, d, d_v and δ'",
            "paper-error.png",
        ),
        *(_sweep_table(sweep, points) for sweep, points in found),
        _needed(experiment),
    )


def _takeaway(base: Point) -> list[str]:
    paper, largest, tight, direct, memory = (
        base.error(name) for name in (PAPER, LARGEST, TIGHT, DIRECT, MEMORY)
    )
    setting = base.setting
    return paragraph(
        claim(
            max(direct, memory) < min(tight, 1.0)
            and min(paper, largest) > 1
            and abs(base.error(ZERO) - 1) < 0.02,
            f"**At ε = {setting.epsilon:g} and n = {setting.rows} the paper's trees, at c = 0.1 and at the largest c, are worse than "
            f"answering zero**: {number(paper)} and {number(largest)} times the error of the best constant. Tight accounting of the "
            f"same trees has {number(tight)} times; the r sums Σ w·P(x) that a query needs, released directly, {number(direct)}; the "
            f"memory {number(memory)}. All have the same (ε, δ) for the same neighbours.",
        )
    )


def _words_of_task(experiment: Experiment, base: Setting) -> list[str]:
    size, task = experiment.size, task_of(base)
    builds = "; ".join(
        f"{name}: {builds_of(size, base, name)}" for name in (*TREES, MEMORY, DIRECT)
    )
    return [
        *paragraph(
            "*Task.* Rows lie near two opposite corners of [0, R]^d and their values, -R_w or R_w, say near which; queries lie near "
            "the corners, too (`discreet_benchmarks.paper.attention`). Attention with logits ⟨q, k⟩/d is nearly flat, so the signal is how "
            f"much exact answers differ between queries: their standard deviation is {number(task.spread)} in the base setting, and "
            f"no task can have more than R_w·tanh(R²/4) = {number(base.largest_spread)}."
        ),
        *paragraph(
            "*Error.* Root mean square of `query` (clamped: what a user gets) against exact attention over the same rows, for "
            f"{QUERIES} fresh queries, in units of the best constant's error (that standard deviation): 1 is no better than a "
            "constant, and zero is such a constant here. The kernel's error is part of it; ε_s bounds it relative to the "
            "denominator, not to the signal."
        ),
        *paragraph(
            f"*Base setting.* n = {base.rows}, d = {base.dim}, d_v = {base.columns}, R = {base.upper:g}, R_w = {base.bound:g}, "
            f"ε = {base.epsilon:g}, δ = {page.setting(base.delta)}, δ' = {page.setting(base.delta_prime)}, ε_s = {base.eps_s:g}, "
            f"p_f = {base.p_f:g}; one parameter changes at a time. Every method has ε and δ + δ' in total, one row is replaced, and "
            "the whole vector is covered. Means over several builds, the more the smaller they are; at the base setting "
            f"{builds}."
        ),
        *paragraph(
            "*Methods.* The noisy mean of V: Gaussian, sensitivity 2·R_w·√d_v/n. Noise on every item w·exp(⟨x, y⟩/d), as in the "
            f"paper's Discussion: Gaussian for all {QUERIES} queries together, after which no more can be asked. Σ w·P(x): Gaussian, "
            "sensitivity 2·‖P(R, ..., R)‖·R_w·√d_v for numerators and denominator together (`discreet_benchmarks.paper.attention` has the "
            'proofs). The memory: `discreet.build` with neighbours="replace", key_norm = query_norm = R·√d, scale 1/d.'
        ),
    ]


def _agreement(found: Sequence[tuple[Sweep, list[Point]]], size: Size) -> list[str]:
    """Say how far what was measured is from what was computed."""
    points = {point.setting: point for _, points in found for point in points}.values()
    ratios = [
        point.measured[name] / value
        for point in points
        for name, value in point.computed.items()
        if name in point.measured and name in TREES
    ]
    middle = math.sqrt(np.mean(np.square(ratios)))
    low, high = np.quantile(ratios, [0.1, 0.9])
    return paragraph(
        "*Computed and measured.* Errors of trees are computed from their exact variances (`discreet_benchmarks.paper.forecast`; lines "
        "in the picture), and where n or ε changes also measured on structures that were built, if they have at most "
        f"{size.most_nodes / 10**6:g} million nodes (in brackets; marks in the picture).",
        claim(
            0.8 < middle < 1.25,
            f"Over all {len(ratios)} cases in which there are both, measured is {middle:.2f} times computed in root mean square, and "
            f"from {low:.2f} to {high:.2f} times in four of five (few builds, and the queries of one build share its noise).",
        ),
    )


def _sweep_table(sweep: Sweep, points: Sequence[Point]) -> list[str]:
    rows = []
    for value, point in zip(sweep.values, points, strict=True):
        cells = [_cell(point, name) for name in METHODS]
        rows.append(
            [
                page.setting(value),
                number(sampled_task(point.setting).spread),
                *cells,
                number(point.floor),
            ]
        )
    return [
        *paragraph(_sentence(sweep, points)),
        *table([sweep.letter, "signal", *METHODS, "trees without noise"], rows),
    ]


def _sentence(sweep: Sweep, points: Sequence[Point]) -> str:
    """Say how the errors of the three best change from the first value to the last."""
    parts = []
    for name, words in (
        (TIGHT, "tight trees have"),
        (DIRECT, "the direct release"),
        (MEMORY, "the memory"),
    ):
        known = [(v, p.error(name)) for v, p in zip(sweep.values, points, strict=True)]
        there = [(value, error) for value, error in known if not math.isnan(error)]
        (low, first), (high, last) = there[0], there[-1]
        parts.append(
            f"{words} {number(first)} at {page.setting(low)} and {number(last)} at {page.setting(high)}"
        )
    return f"**Against {sweep.letter}**: " + "; ".join(parts) + "."


def _cell(point: Point, name: str) -> str:
    """Return the error, and for trees that were built what was measured in brackets."""
    beside = (
        f" [{number(point.measured[name])}]" if name in TREES and name in point.measured else ""
    )
    return number(point.error(name)) + beside


def _needed(experiment: Experiment) -> list[str]:
    """Say from which n on each method has half the error of the best constant."""
    base = experiment.base
    forecasts: dict[str, Callable[[Setting], float]] = {
        ITEMS: forecast.forecast_items,
        **{name: partial(forecast.forecast_trees, name=name) for name in TREES},
        DIRECT: forecast.forecast_direct,
    }
    powers = {name: _first_power(base, error) for name, error in forecasts.items()}
    parts = [f"{name}: {power_of_two(power)}" for name, power in powers.items()]
    return paragraph(
        "Rows from which the error is at most half of the best constant's, everything else as in the base setting (powers of two, "
        f"computed): {'; '.join(parts)}.",
        claim(
            powers[DIRECT] < powers[TIGHT] < powers[LARGEST] < powers[PAPER],
            f"c = 0.1 needs {2 ** (powers[PAPER] - powers[LARGEST])} times as many rows as the largest c, that one "
            f"{2 ** (powers[LARGEST] - powers[TIGHT])} times as many as tight accounting, and that one "
            f"{2 ** (powers[TIGHT] - powers[DIRECT])} times as many as the direct release.",
        ),
    )


def _first_power(base: Setting, error: Callable[[Setting], float]) -> int:
    """Return the first power of two of rows at which an error, which falls with n, is clear."""
    low, high = 3, 60
    while high - low > 1:
        middle = (low + high) // 2
        if error(base.changed(rows=2**middle)) <= _CLEAR:
            high = middle
        else:
            low = middle
    return high


def _picture(found: Sequence[tuple[Sweep, list[Point]]], path: Path) -> None:
    figure, axes = page.panels(len(found), size=(13.5, 7.2), columns=4)
    for axis, (sweep, points) in zip(axes, found, strict=True):
        axis.axhline(1, color=page.FAINT, linewidth=3, zorder=1)
        for name, look in LOOKS.items():
            line = [point.error(name) for point in points]
            measured = [point.measured.get(name, math.nan) for point in points]
            axis.plot(sweep.values, line, linestyle=look.line, color=look.colour, linewidth=1.4)
            page.marks(axis, sweep.values, measured, look, 5)
            # For the legend: both in one.
            axis.plot(
                [], [], linestyle=look.line, marker=look.marker, color=look.colour, label=name
            )
        page.by_ratios(axis, sweep.values[::2] if len(sweep.values) > 5 else sweep.values)
        page.titled(axis, f"against {sweep.letter}", sweep.letter)
    for axis in axes[::4]:
        axis.set_ylabel("error / best constant's")
    legend_below(figure, axes[0], 4)
    page.save(figure, path)
