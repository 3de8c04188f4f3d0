"""How far answers are from exact attention, and how often their ± holds: docs/errors.md, measured.

Run: python benchmarks/errors.py (half an hour on one core; needs scikit-learn and matplotlib). It
prints the measured part of docs/errors.md and, with --write, puts it there, with two pictures.
--quick has few builds of few rows, and takes a minute.

- Data: points of a sphere, evenly spread and in twelve clusters, handwritten digits, and sentences
  of film reviews through a real encoder. Rows of a source are split into queries, public rows
  (landmarks, and the mean of sentences) and private ones; none is two of them.
- Builds: each has frequencies and noise of its own. The noise is `discreet.testing.Seeded`, so that
  a run can be made again.
- Sentences are embedded once, and kept in build/embeddings. That takes some minutes and
  pip install -c constraints.txt -e '.[examples]'; without it, the page goes without them.
"""

import argparse
import importlib.util
import itertools
import math
import pathlib
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

import discreet
from discreet import kernels
from discreet.bench.paper_setup import panels, save
from discreet.kernels import Fourier, Kernel, Minimax
from discreet.memory import Plan, oracle
from discreet.memory.reader import WITHIN
from discreet.pictures import dress
from discreet.testing import Seeded, Silent

# Without them, the page leaves its figures out.
LANDMARKS = getattr(kernels, "Landmarks", None)

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "errors.md"
COVERAGE, AGAINST_EPSILON = "errors-coverage.png", "errors-epsilon.png"
START, END = "<!-- measured: benchmarks/errors.py -->", "<!-- end of measured -->"

DELTA = 1e-6
QUERIES, MOST_PUBLIC = 200, 2_000
RANK = 512
FEW_FREQUENCIES = 1_024
SHARP = 5.0  # the scale at which kernels of as many features are compared
CHECKED = (0.5, 1.0, 4.0)  # ε at which intervals are checked
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
LEAST, MOST = 0.91, 0.99  # intervals that hold as often as this are right

FOURIER, FEWER, MINIMAX, NYSTROM = "Fourier", "Fourier, 1,024", "Minimax", "Landmarks"
OWN, RANDOM, SHUFFLED = "the same source", "random points", "the same source, coordinates shuffled"
LABELS = {FOURIER: "Fourier, as planned", FEWER: FEWER, MINIMAX: MINIMAX, NYSTROM: NYSTROM}
LEGEND = {"loc": "outside lower left", "ncols": 2, "frameon": False, "fontsize": 9}
COLOURS = {FOURIER: "#0072b2", FEWER: "#222222", MINIMAX: "#009e73", NYSTROM: "#d55e00"}


@dataclass(frozen=True)
class Effort:
    """How much work to do.

    Attributes:
        builds: of a cell whose intervals are checked, at least.
        few: of the other ones.
        most_rows: larger data sets are left out.
    """

    builds: int
    few: int
    most_rows: int

    def builds_of(self, count: int) -> int:
        """Return how many builds of so many rows: more of few, which take no time.

        All queries share a build's noise, so few builds know little about it.
        """
        return self.builds * max(1, min(4, 20_000 // count))


FULL = Effort(builds=8, few=4, most_rows=100_000)
QUICK = Effort(builds=2, few=1, most_rows=2_000)


@dataclass(frozen=True, eq=False)
class Source:
    """Rows of one kind: first the queries, then public rows, then private ones."""

    name: str
    keys: np.ndarray
    values: np.ndarray
    value_norm: float
    public_rows: int
    counts: tuple[int, ...]

    @property
    def dim(self) -> int:
        """The width of keys."""
        return self.keys.shape[1]

    @property
    def queries(self) -> np.ndarray:
        """Rows that are not in the memory."""
        return self.keys[:QUERIES]

    def public(self, which: str) -> np.ndarray:
        """Return public rows: of the same source, or others that have nothing to do with it."""
        rows = self.keys[QUERIES : QUERIES + self.public_rows]
        if which == RANDOM:
            return unit(np.random.default_rng(3).normal(size=rows.shape))
        if which == SHUFFLED:
            return rows[:, np.random.default_rng(3).permutation(self.dim)]
        return rows

    def private(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return keys and values of a memory."""
        start = QUERIES + self.public_rows
        return self.keys[start : start + count], self.values[start : start + count]


@dataclass(frozen=True)
class Recipe:
    """A kernel but for its seed: frequencies, degree or rank, and where landmarks come from."""

    kind: str
    scale: float
    size: int
    public: str = OWN


@dataclass(frozen=True)
class Cell:
    """What was measured for one source, number of rows, kernel and ε.

    Attributes:
        within: the share of numbers within 1.96 standard errors of exact attention.
        within_stderr: its own standard error, from build to build.
        noise_within: the share within 1.96 standard errors of the noise alone.
        error: root mean square of private less exact.
        wide: the median standard error over it.
        spread: how much exact answers differ from query to query, root mean square.
    """

    source: Source
    rows: int
    recipe: Recipe
    epsilon: float | None
    within: float
    within_stderr: float
    noise_within: float
    error: float
    wide: float
    spread: float


# Cells at growing ε, by source, kernel and number of rows.
Curves = dict[tuple[str, str, int], list[Cell]]


@dataclass(frozen=True)
class Said:
    """What `plan` says of Fourier's kernel: 95% of numbers within so much of exact attention."""

    scale: float
    frequencies: int
    usual: float
    worst: float


def unit(rows: np.ndarray) -> np.ndarray:
    """Return rows of length one."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rms(numbers: np.ndarray) -> float:
    """Return the root mean square."""
    return math.sqrt(np.mean(np.square(numbers)))


def tell(text: str) -> None:
    """Say how far the run is."""
    print(text, file=sys.stderr, flush=True)


def even(count: int) -> np.ndarray:
    """Return points of a sphere in 16 dimensions."""
    return unit(np.random.default_rng(1).normal(size=(count, 16)))


def clusters(count: int) -> np.ndarray:
    """Return points around twelve centres, as tests/statistical/test_standard_errors.py does."""
    centres = unit(np.random.default_rng(2).normal(size=(12, 16)))
    return unit(centres[np.arange(count) % 12] + 0.7 * even(count))


def sphere(name: str, keys: np.ndarray, counts: tuple[int, ...]) -> Source:
    """Return points with four signs as values."""
    return Source(name, keys, np.sign(keys[:, :4]) / 2, 1.0, MOST_PUBLIC, counts)


def digits(counts: tuple[int, ...]) -> Source:
    """Return handwritten digits with their classes."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    keys, values = unit(images / 16 - 0.5)[order], (np.eye(10)[classes] - 0.1)[order]
    return Source("digits", keys, values, math.sqrt(0.9), len(keys) - QUERIES - 1_000, counts)


def sentences(
    cache_folder: pathlib.Path, counts: tuple[int, ...], *, embed: bool = True
) -> Source | None:
    """Return sentences of reviews, good or bad; None if they are neither cached nor installed.

    The mean of public sentences is subtracted, as examples/private_text.py does.

    Args:
        cache_folder: where vectors are kept.
        counts: of private rows.
        embed: whether to embed what is not in the cache.
    """
    path = ROOT / "examples" / "review_embeddings.py"
    spec = importlib.util.spec_from_file_location("review_embeddings", path)
    reviews = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reviews)
    cached = (cache_folder / f"rotten_tomatoes-{reviews.TOKENS}-tokens.npz").exists()
    if not cached and not embed:
        return None
    try:
        vectors, labels = reviews.embedded_reviews("rotten_tomatoes", 8_530, cache_folder)
    except SystemExit as missing:
        tell(str(missing))
        return None
    keys = unit(vectors - vectors[QUERIES : QUERIES + MOST_PUBLIC].mean(axis=0))
    return Source("sentences", keys, 2.0 * labels[:, None] - 1, 1.0, MOST_PUBLIC, counts)


def sources(effort: Effort, cache_folder: pathlib.Path) -> list[Source]:
    """Return the data, with as many rows as there are and as the effort allows."""

    def allowed(*counts: int) -> tuple[int, ...]:
        return tuple(count for count in counts if count <= effort.most_rows)

    counts = allowed(300, 2_000, 20_000, 100_000)
    total = QUERIES + MOST_PUBLIC + counts[-1]
    found = [
        sphere("evenly spread", even(total), counts),
        sphere("12 clusters", clusters(total), counts),
        digits(allowed(300, 1_000)),
        sentences(cache_folder, allowed(300, 2_000, 6_000), embed=effort is FULL),
    ]
    return [each for each in found if each is not None]


@cache
def said(source: Source, count: int, epsilon: float) -> Said:
    """Return what `plan` says. All that this page knows of its figures is here."""
    plan = plan_of(source, count, epsilon, kernel="fourier")
    usual = math.hypot(plan.stderr, plan.kernel_stderr)
    return Said(
        plan.scale, plan.kernel.frequencies, WITHIN * usual, WITHIN * float(plan.worst_stderr)
    )


def plan_of(source: Source, count: int, epsilon: float, **options: object) -> Plan:
    """Return the plan of a memory."""
    return discreet.plan(
        rows=count,
        key_dim=source.dim,
        value_dim=source.values.shape[1],
        value_norm=source.value_norm,
        epsilon=epsilon,
        delta=DELTA,
        **options,
    )


@cache
def recipe(kind: str, source: Source, count: int, epsilon: float) -> Recipe:
    """Return a kernel at the recommended scale; Minimax at half of it, a quarter, and so on.

    As many times as it takes until a polynomial of at most 4,096 features is offered.
    """
    advice = said(source, count, epsilon)
    sizes = {FOURIER: advice.frequencies, FEWER: FEW_FREQUENCIES, NYSTROM: RANK}
    if kind in sizes:
        return Recipe(kind, advice.scale, sizes[kind])
    for halvings in itertools.count():
        scale = advice.scale / 2**halvings
        offered = plan_of(source, count, epsilon, scale=scale).kernel
        if isinstance(offered, Minimax):
            return Recipe(kind, scale, offered.degree)
    raise AssertionError


def kernel_of(wanted: Recipe, source: Source, seed: int) -> Kernel:
    """Return the kernel of a recipe."""
    if wanted.kind in (FOURIER, FEWER):
        bounds = {"scale": wanted.scale, "key_norm": 1.0, "query_norm": 1.0}
        return Fourier(source.dim, frequencies=wanted.size, seed=seed, **bounds)
    return kernel_without_seed(wanted, source)


@cache
def kernel_without_seed(wanted: Recipe, source: Source) -> Kernel:
    """Return a kernel that is the same for every build."""
    bounds = {"scale": wanted.scale, "key_norm": 1.0, "query_norm": 1.0}
    if wanted.kind == MINIMAX:
        return Minimax(source.dim, degree=wanted.size, **bounds)
    return LANDMARKS(source.public(wanted.public), rank=wanted.size, **bounds)


@cache
def exact_answers(source: Source, count: int, scale: float) -> np.ndarray:
    """Return exact attention."""
    return oracle.attention(source.queries, *source.private(count), scale=scale)


@cache
def measured(
    source: Source, count: int, wanted: Recipe, epsilon: float | None, builds: int
) -> Cell:
    """Build some memories and compare their answers with exact attention.

    Args:
        source: of the rows.
        count: of rows.
        wanted: the kernel.
        epsilon: None for no noise.
        builds: each with its own frequencies and noise.
    """
    start = time.monotonic()
    exact = exact_answers(source, count, wanted.scale)
    keys, values = source.private(count)
    answers, stderrs, noises = [], [], []
    for build in range(builds):
        seed = zlib.crc32(f"{source.name} {count} {wanted} {epsilon} {build}".encode())
        memory = discreet.build(
            keys,
            values,
            epsilon=epsilon or 1.0,
            delta=DELTA,
            value_norm=source.value_norm,
            rows_hint=count,
            kernel=kernel_of(wanted, source, seed),
            entropy=Seeded(seed) if epsilon else Silent(),
        )
        out, stderr = memory.attend(source.queries, stderr=True)
        answers.append(out)
        stderrs.append(stderr)
        noises.append(memory.noise_stderr(source.queries))
    off = np.abs(np.array(answers) - exact)
    inside = off <= WITHIN * np.array(stderrs)
    cell = Cell(
        source,
        count,
        wanted,
        epsilon,
        within=float(inside.mean()),
        within_stderr=float(np.std(inside.mean(axis=(1, 2)), ddof=builds > 1) / math.sqrt(builds)),
        noise_within=float(np.mean(off <= WITHIN * np.array(noises))),
        error=rms(off),
        wide=float(np.median(stderrs)) / rms(off),
        spread=rms(exact - exact.mean(axis=0)),
    )
    tell(
        f"{source.name}, {count:,} rows, {wanted.kind} {wanted.size:,} at scale "
        f"{wanted.scale:.3g}, ε = {epsilon}: {cell.within:.1%} within, error {cell.error:.3g} "
        f"({time.monotonic() - start:.1f} s)"
    )
    return cell


def kinds(*every: str) -> list[str]:
    """Return those that there are."""
    return [kind for kind in every if kind != NYSTROM or LANDMARKS is not None]


def cases(data: Sequence[Source]) -> list[tuple[Source, int]]:
    """Return every source with every number of rows."""
    return [(source, count) for source in data for count in source.counts]


def intervals(data: Sequence[Source], effort: Effort) -> dict[str, list[Cell]]:
    """Measure how often intervals hold, by kernel."""
    return {
        kind: [
            measured(
                source,
                count,
                recipe(kind, source, count, epsilon),
                epsilon,
                effort.builds_of(count),
            )
            for source, count in cases(data)
            for epsilon in CHECKED
        ]
        for kind in kinds(FOURIER, MINIMAX, NYSTROM)
    }


def by_epsilon(data: Sequence[Source], effort: Effort) -> Curves:
    """Measure errors at growing ε, by source, kernel and number of rows."""

    def builds(kind: str, count: int, epsilon: float) -> int:
        checked = epsilon in CHECKED and kind != FEWER
        return effort.builds_of(count) if checked else effort.few

    return {
        (source.name, kind, count): [
            measured(
                source,
                count,
                recipe(kind, source, count, epsilon),
                epsilon,
                builds(kind, count, epsilon),
            )
            for epsilon in EPSILONS
        ]
        for source, count in cases(data)
        for kind in kinds(FOURIER, FEWER, NYSTROM)
    }


def percent(share: float) -> str:
    """Return a share with one digit after the point, since 99.9% is not all."""
    return f"{100 * share:.1f}%"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return ["", lines[0], "|" + "---|" * len(head), *lines[1:], ""]


def intervals_page(by_kernel: dict[str, list[Cell]]) -> list[str]:
    """Return how often intervals hold: a picture, a summary, every cell."""
    head = ["kernel", "cells", "91% to 99%", "below", "lowest", "highest", "noise alone, lowest"]
    summary = []
    for kind, cells in by_kernel.items():
        shares = [cell.within for cell in cells]
        right = sum(LEAST <= share <= MOST for share in shares)
        below = sum(share < LEAST for share in shares)
        worst = min(cell.noise_within for cell in cells)
        ends = [percent(each) for each in (min(shares), max(shares), worst)]
        summary.append([kind, f"{len(cells)}", f"{right}", f"{below}", *ends])
    lines = [
        "### How often 95% intervals hold",
        "",
        (
            f"The share of numbers within {WITHIN} standard errors of exact attention. Each cell "
            "is one kind of data, number of rows and ε."
        ),
        "",
        f"![How often 95% intervals hold, by the whole ± and by the noise alone]({COVERAGE})",
        *table(
            [*head, "± over error, median"],
            [
                [*row, f"{np.median([cell.wide for cell in cells]):.2g}"]
                for row, cells in zip(summary, by_kernel.values(), strict=True)
            ],
        ),
        (
            "Every cell: within, and from build to build its own standard error; within by the "
            "noise alone; the median ± over the root mean square error, which is how much too wide "
            "it is; that error, and how much exact answers differ from query to query."
        ),
        "",
    ]
    for kind, cells in by_kernel.items():
        lines += [f"#### {kind}", *cells_table(cells)]
    return lines


def cells_table(cells: Sequence[Cell]) -> list[str]:
    """Return every cell of one kernel."""
    size = {FOURIER: "frequencies", MINIMAX: "degree", NYSTROM: "rank"}[cells[0].recipe.kind]
    names = ["within", "noise alone", "± over error", "error", "spread"]
    return table(
        ["data", "rows", "ε", "scale", size, *names],
        [
            [
                cell.source.name,
                f"{cell.rows:,}",
                f"{cell.epsilon:g}",
                f"{cell.recipe.scale:.3g}",
                f"{cell.recipe.size:,}",
                f"{percent(cell.within)} ± {100 * cell.within_stderr:.1f}",
                percent(cell.noise_within),
                f"{cell.wide:.2f}",
                f"{cell.error:.2g}",
                f"{cell.spread:.2g}",
            ]
            for cell in cells
        ],
    )


def epsilon_page(curves: Curves) -> list[str]:
    """Return errors against ε and rows: a picture, the headline, a table."""
    return [
        "### Error against ε and rows",
        "",
        (
            "The root mean square error over the spread of exact answers, at the scale that `plan` "
            "recommends for each ε: at 1, an answer says no more than a constant would. The "
            "spread grows with the scale, and the scale with ε and rows."
        ),
        "",
        f"![Error over spread, against ε]({AGAINST_EPSILON})",
        *table(
            ["data", "rows", "kernel", *(f"ε = {each:g}" for each in EPSILONS)],
            [
                [
                    name,
                    f"{count:,}",
                    LABELS[kind],
                    *(f"{cell.error / cell.spread:.2g}" for cell in cells),
                ]
                for (name, kind, count), cells in curves.items()
            ],
        ),
        *headline(curves),
    ]


def headline(curves: Curves) -> list[str]:
    """Return what more frequencies bring, where rows are many and in clusters."""
    count = max(rows for name, _, rows in curves if name == "12 clusters")
    planned, fewer = (
        curves["12 clusters", kind, count][EPSILONS.index(4.0)] for kind in (FOURIER, FEWER)
    )
    return [
        (
            f"**{count:,} rows in 12 clusters, 16 dimensions, ε = 4:** the error of the default, "
            f"{planned.recipe.size:,} frequencies, is {planned.error / fewer.error:.2f} times that "
            f"of {fewer.recipe.size:,} at the same scale."
        ),
        "",
    ]


def features_page(data: Sequence[Source], effort: Effort) -> list[str]:
    """Return Landmarks against as many Fourier features."""
    head = [
        f"### Landmarks against Fourier at scale {SHARP:g}",
        "",
    ]
    if LANDMARKS is None:
        return [*head, "Landmarks are not in this version.", ""]
    rows = []
    for source in data:
        if source.name not in ("digits", "sentences"):
            continue
        count = source.counts[-1]
        for public in (OWN, SHUFFLED, RANDOM):
            cells = [f"{source.name}, {count:,}", public]
            for epsilon in (None, 1.0):
                nystrom, fourier = (
                    measured(source, count, each, epsilon, effort.few).error
                    for each in (
                        Recipe(NYSTROM, SHARP, RANK, public),
                        Recipe(FOURIER, SHARP, RANK // 2),
                    )
                )
                cells += [f"{nystrom:.2g}", f"{fourier:.2g}", f"{nystrom / fourier:.2f}"]
            rows.append(cells)
    names = ["Landmarks", "Fourier", "ratio"]
    return [
        *head,
        (
            f"Root mean square errors with {RANK} features each: {RANK} landmarks, or {RANK // 2} "
            "frequencies. Landmarks serve rows that are like the public ones they were made from."
        ),
        *table(["data, rows", "public rows", *names, *(f"ε = 1: {each}" for each in names)], rows),
    ]


def plan_page(data: Sequence[Source], effort: Effort) -> list[str]:
    """Return what `plan` said beside what was measured."""
    rows = []
    for source, count in cases(data):
        advice = said(source, count, 1.0)
        cell = measured(
            source, count, recipe(FOURIER, source, count, 1.0), 1.0, effort.builds_of(count)
        )
        rows.append(
            [
                source.name,
                f"{count:,}",
                f"{advice.scale:.3g}",
                f"±{advice.usual:.2g}",
                f"±{advice.worst:.2g}",
                f"±{WITHIN * cell.error:.2g}",
                f"{advice.usual / (WITHIN * cell.error):.2g}",
            ]
        )
    names = ["plan: usual rows", "plan: all of space", "measured", "usual over measured"]
    return [
        "### What `plan` said, and what was measured",
        "",
        (
            f"How far 95% of numbers are from exact attention at ε = 1, by `plan`, which knows "
            f"public numbers only, and measured: {WITHIN} times the root mean square error."
        ),
        *table(["data", "rows", "scale", *names], rows),
    ]


def introduction(data: Sequence[Source], effort: Effort) -> list[str]:
    """Return what was measured, and how."""
    missing = {"sentences"} - {source.name for source in data}
    about = [
        (
            f"Made by `benchmarks/errors.py`. δ = 1e-6; {effort.builds} builds a cell or more, "
            "each with frequencies and noise (`discreet.testing.Seeded`) of its own, and "
            f"{QUERIES} queries that are not in the memory."
        ),
        "",
        "- *Evenly spread*, *12 clusters*: points of a sphere in 16 dimensions; values are signs.",
        "- *Digits*: handwritten ones of scikit-learn, 64 pixels; values are classes.",
    ]
    if missing:
        about.append("- Sentences are missing: their packages are not installed.")
    else:
        about.append(
            "- *Sentences*: of film reviews, embedded in 384 dimensions; values are good or bad."
        )
    about += [
        (
            "- *Fourier* and *Landmarks* are at the scale that `plan` recommends. *Minimax* is at "
            "half of it, a quarter and so on, until 4,096 features reach 5%."
        ),
        "",
    ]
    if LANDMARKS is None:
        about += ["Landmarks are not in this version.", ""]
    return ["", "## Measured", "", *about]


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
    figure.legend(*axes[0].get_legend_handles_labels(), **{**LEGEND, "ncols": 3})
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
    axis.plot(whole, places, "o", color=COLOURS[FOURIER], ms=4.2, label="noise and kernel: ±")
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
    for kind, mark in {FOURIER: "o-", FEWER: "s--", NYSTROM: "^:"}.items():
        if (name, kind, count) in curves:
            ratios = [cell.error / cell.spread for cell in curves[name, kind, count]]
            axis.plot(EPSILONS, ratios, mark, color=COLOURS[kind], ms=4.5, label=LABELS[kind])
    dress(axis)
    axis.axhline(1.0, color="#777777", linewidth=1.0, label="as good as a constant")
    axis.set(xscale="log", yscale="log")
    axis.set_title(f"{name}, {count:,} rows", fontsize=10, loc="left")
    axis.set_xticks(EPSILONS, [f"{each:g}" for each in EPSILONS])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.3g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def replaced(page: str, part: str) -> str:
    """Return a page with another measured part; at its end if it had none."""
    before, start, rest = page.partition(START)
    _, _, after = rest.partition(END)
    if not start:
        before = before.rstrip() + "\n\n"
    return f"{before}{START}\n{part.strip()}\n\n{END}{after or chr(10)}"


def main() -> None:
    """Measure, print, and write the page and its pictures if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few builds of few rows")
    parser.add_argument("--write", action="store_true", help="write docs/errors.md, with pictures")
    parser.add_argument(
        "--out", type=pathlib.Path, default=PAGE.parent, help="folder of the page to write"
    )
    parser.add_argument(
        "--cache", type=pathlib.Path, default=ROOT / "build" / "embeddings", help="of sentences"
    )
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    start = time.monotonic()
    data = sources(effort, options.cache)
    by_kernel, curves = intervals(data, effort), by_epsilon(data, effort)
    part = "\n".join(
        [
            *introduction(data, effort),
            *intervals_page(by_kernel),
            *epsilon_page(curves),
            *features_page(data, effort),
            *plan_page(data, effort),
        ]
    )
    tell(f"{(time.monotonic() - start) / 60:.1f} minutes")
    print(part)
    if options.write:
        page = options.out / PAGE.name
        known = page if page.exists() else PAGE
        page.write_text(replaced(known.read_text(encoding="utf-8"), part), encoding="utf-8")
        save(draw_intervals(by_kernel), options.out / COVERAGE)
        save(draw_epsilon(curves), options.out / AGAINST_EPSILON)


if __name__ == "__main__":
    main()
