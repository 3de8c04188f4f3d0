"""Distance sums Σ w·‖y - x‖_p^p: against p on made-up points, and on real data."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from discreet.paper.oracle import spread
from discreet.pictures.style import legend_below
from discreet_benchmarks.paper import distance_methods as methods
from discreet_benchmarks.paper import page
from discreet_benchmarks.paper.attention import LARGEST, PAPER, TIGHT
from discreet_benchmarks.paper.distance_methods import (
    HILLS,
    METRES,
    Data,
    Distances,
    Method,
    data_sets,
)
from discreet_benchmarks.paper.page import Look, Size, claim, number, paragraph, table

_QUERIES = 100
CONSISTENT = "trees, consistent"
_TREES = (PAPER, LARGEST, TIGHT, CONSISTENT)
_MANY_ROWS = 50_000
COARSE, FINE = "histogram, 64 cells", "histogram, n cells"
COSINES, MOMENTS, SINGLE = "cosine sums", "moments", f"{_QUERIES} queries only"

LOOKS = {
    PAPER: Look("o", page.ORANGE),
    LARGEST: Look("s", page.AMBER),
    TIGHT: Look("^", page.GREEN),
    CONSISTENT: Look("v", "#005f45"),
    FINE: Look("P", page.GREY),
    COARSE: Look("p", page.INK),
    COSINES: Look("*", page.BLUE),
    MOMENTS: Look("D", page.SKY),
    SINGLE: Look("x", page.PURPLE),
}


def methods_for(data: Distances) -> dict[str, Method]:
    """Return the methods that answer these distances; c counts where there are coordinates."""
    cells = 1 << max(len(data.points) - 1, 1).bit_length()
    found: dict[str, Method] = {
        PAPER: methods.trees(c=0.1),
        LARGEST: methods.trees(c="largest"),
        TIGHT: methods.trees(accounting="tight"),
        CONSISTENT: methods.trees(accounting="tight", estimator="consistent"),
        FINE: methods.histogram(cells),
        COARSE: methods.histogram(64),
        COSINES: methods.cosines,
        MOMENTS: methods.moments,
        SINGLE: methods.one_by_one,
    }
    if data.dim == 1:
        del found[PAPER]
    if data.power % 2:
        del found[MOMENTS]
    return found


def measured(data: Distances, size: Size) -> dict[str, float]:
    """Return the error of each method, in units of the best constant's."""
    errors = {}
    for name, method in methods_for(data).items():
        # The queries of one tree read many nodes; of the others, the same few numbers.
        builds = size.builds if name in _TREES or name == FINE else 4 * size.builds
        if len(data.points) > _MANY_ROWS:
            builds //= 2
        squares = [data.error(method(data, seed)) ** 2 for seed in range(builds)]
        errors[name] = math.sqrt(np.mean(squares)) / data.spread
    return errors


def distances_page(out: Path, size: Size) -> list[str]:
    """Compare all methods against p, and on real data."""
    rows = size.base_rows // 4
    made_up = Data("made up", "", spread(rows, 2) ** 2, np.ones(rows))
    by_power = {
        p: measured(_distances(made_up, p), size) for p in ((1, 2) if size.quick else (1, 2, 3, 4))
    }
    sets = data_sets(every=32 if size.quick else 1)
    if size.quick:
        sets = [sets[0], *(each for each in sets if each.name == HILLS)]
    hills = next(each for each in sets if each.name == HILLS)
    real = {(each.name, p): measured(_distances(each, p), size) for each in sets for p in (1, 2)}
    _picture(sets, real, hills, out / "paper-distances.png")
    return page.section(
        "Distance sums, on real data too",
        _takeaway(hills, sets[0], real),
        _METHODS,
        _cosine_words(),
        paragraph(
            f"**Against p** (n = {rows}, d = 2, points made up: squares of evenly spread ones, weight 1):"
        ),
        _table("p", {str(p): found for p, found in by_power.items()}),
        paragraph("**On data**:", "; ".join(f"*{each.name}*: {each.about}" for each in sets) + "."),
        page.image(
            "error of the mean distance, and relative errors on all data sets",
            "paper-distances.png",
        ),
        _table(
            "data, n, d, p", {_label(each, p): real[each.name, p] for each in sets for p in (1, 2)}
        ),
    )


_METHODS = paragraph(
    f"Root mean square error of Σ w·‖y - x‖_p^p over {_QUERIES} queries spread over the whole box, in units of the best "
    "constant's (the standard deviation of the exact answers). ε = 1, δ = 1e-6 in total for every method (DPTreeHighDim: "
    "δ = δ' = 5e-7), one row is replaced, weights in [-1, 1] are private as well. d = 1: DPTreeDistance, which has no c; "
    "d = 2: DPTreeHighDim. Beside the trees: a histogram with Gaussian noise, read at the middles of its cells; the moments "
    f"Σ w·x^q for even p; cosine sums; and Gaussian noise on the answers of all {_QUERIES} queries, after which no more can be "
    "asked."
)


def _cosine_words() -> list[str]:
    return paragraph(
        "*Cosine sums*: on [-1, 1] |t|^p = Σ c_k·cos(kπt), so that Σ w·cos(kπx) and Σ w·sin(kπx), weighed by √|c_k|, are all that "
        "a query needs.",
        claim(
            all(abs(np.abs(methods.cosine_series(p)).sum() - 1) < 0.01 for p in range(1, 5)),
            "Rows and queries have norm √(d·Σ|c_k|), and Σ|c_k| = 1 for p from 1 to 4: the noise is 2σ·d, the price of one single "
            "worst-case query, at any n and for any number of queries. No factorisation does better over the whole box (γ₂ is at "
            "least the largest entry).",
        ),
    )


def _distances(data: Data, power: int) -> Distances:
    dim = data.points.shape[1]
    return Distances(data.points, data.weights, spread(_QUERIES, dim, start=0.5), power)


def _label(data: Data, power: int) -> str:
    rows, dim = data.points.shape
    return f"{data.name}, {rows}, {dim}, {power}"


def _takeaway(large: Data, small: Data, real: dict[tuple[str, int], dict[str, float]]) -> list[str]:
    here, there = real[large.name, 1], real[small.name, 1]
    return paragraph(
        claim(
            here[LARGEST] < there[LARGEST]
            and all(
                min(found[n] for n in _TREES if n in found) > max(found[COARSE], found[COSINES])
                for found in real.values()
            ),
            f"**With many rows trees answer ℓ1 distances well, but others answer them better.** On {len(large.points)} elevations "
            f"the paper's trees are off by {number(here[LARGEST])} of the best constant's error, tightly accounted by {number(here[TIGHT])}, read "
            f"by least squares by {number(here[CONSISTENT])}; a histogram of 64 cells by {number(here[COARSE])} and cosine sums, which cost what one "
            f"query costs, by {number(here[COSINES])}. On {len(small.points)} rows ({small.name}) it is {number(there[LARGEST])}, {number(there[TIGHT])} and "
            f"{number(there[CONSISTENT])} for trees, {number(there[COARSE])} and {number(there[COSINES])} for the others. On all of these data, for p = 1 and "
            "for p = 2, every tree is behind both.",
        ),
        claim(
            all(found[SINGLE] < min(found[LARGEST], found[TIGHT]) for found in real.values()),
            f"Even noise on {_QUERIES} answers one by one is less than that of binary trees (on the elevations, tight trees would be better "
            f"from {_enough(here, TIGHT)} queries on, read by least squares from {_enough(here, CONSISTENT)}); but trees, histograms and sums answer "
            "any number of queries. Where trees win is ranges, not distances: see the next section.",
        ),
    )


def _enough(found: dict[str, float], name: str) -> int:
    """Return from how many queries on noise on each answer is more than that of a structure."""
    return math.ceil(_QUERIES * (found[name] / found[SINGLE]) ** 2)


def _table(head: str, rows: dict[str, dict[str, float]]) -> list[str]:
    return table(
        [head, *LOOKS],
        [
            [label, *(number(found.get(name, math.nan)) for name in LOOKS)]
            for label, found in rows.items()
        ],
    )


def _picture(
    sets: Sequence[Data],
    real: dict[tuple[str, int], dict[str, float]],
    hills: Data,
    path: Path,
) -> None:
    figure, (left, right) = page.panels(2, size=(12, 5))
    _draw_release(left, hills)
    labels = []
    for place, each in enumerate(sets):
        for name, value in real[each.name, 1].items():
            page.marks(right, [value], [place], LOOKS[name], 8)
        rows, dim = each.points.shape
        labels.append(f"{each.name}\nn = {rows}, d = {dim}")
    for name, look in LOOKS.items():
        if name != MOMENTS:  # of even powers only
            right.plot([], [], linestyle="", marker=look.marker, color=look.colour, label=name)
    right.axvline(1, color=page.FAINT, linewidth=3, zorder=1)
    right.set_xscale("log")
    page.plain_ticks(right.xaxis)
    right.set_yticks(range(len(sets)), labels)
    right.set_ylim(-0.5, len(sets) - 0.5)
    page.titled(right, "ℓ1 distances: error / best constant's", "(1: no better than a constant)")
    legend_below(figure, right, 4)
    page.save(figure, path)


def _draw_release(axis: Axes, hills: Data) -> None:
    """Draw the answers of one release of each method, around the middle of the hills."""
    at = np.linspace(430, 560, 60)  # metres
    data = Distances(hills.points, hills.weights, at[:, None] / METRES)
    mean = METRES / len(hills.points)
    for name in (LARGEST, CONSISTENT, COSINES):
        page.marks(axis, at, mean * methods_for(data)[name](data, 1), LOOKS[name], 6)
    axis.plot(at, mean * data.truth, color=page.INK, linewidth=1.2, zorder=1.5)
    page.titled(
        axis,
        f"one release of {len(hills.points)} elevations (line: exact)",
        "query y, metres",
        "mean distance to y, metres",
    )
