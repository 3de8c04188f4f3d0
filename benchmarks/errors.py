"""How far answers are from exact attention, and how often their ± holds: docs/errors.md, measured.

Run: python benchmarks/errors.py (up to an hour on one core; needs scikit-learn and matplotlib). It
prints the two measured parts of docs/errors.md and, with --write, puts them there, with pictures.
--only makes one of them: `errors`, or `readout`, one release read in several ways
(`errors_readout.py`). --quick has few builds of few rows, and takes some minutes.

- Data: points of a sphere, evenly spread and in twelve clusters, handwritten digits, and sentences
  of film reviews through a real encoder. Rows of a source are split into queries, public rows
  (landmarks, and the mean of sentences) and private ones; none is two of them.
- Builds: each has frequencies and noise of its own. The noise is `discreet.testing.Seeded`, so that
  a run can be made again.
- Sentences are embedded once, and kept in build/embeddings. That takes some minutes and
  pip install -c constraints.txt -e '.[examples]'; without it, the page goes without them.
"""

import argparse
import pathlib
import time
import warnings
from collections.abc import Sequence

import errors_readout
import numpy as np
from errors_measure import (
    EPSILONS,
    FEWER,
    FOURIER,
    FULL,
    LABELS,
    LEAST,
    MINIMAX,
    MOST,
    NYSTROM,
    OWN,
    QUERIES,
    QUICK,
    RANDOM,
    RANK,
    SHUFFLED,
    Cell,
    Curves,
    Effort,
    Recipe,
    Source,
    by_epsilon,
    cases,
    intervals,
    kernel_without_seed,
    measured,
    recipe,
    said,
    sources,
)
from errors_pictures import draw_epsilon, draw_intervals, draw_readout
from matplotlib.figure import Figure
from sharing import ROOT, replaced, table, tell

from discreet.errors import MostlyNoiseWarning
from discreet.readers.attention.reader import WITHIN
from discreet_benchmarks.paper.page import save

PAGE = ROOT / "docs" / "errors.md"
COVERAGE, AGAINST_EPSILON = "errors-coverage.png", "errors-epsilon.png"
ERRORS, READOUT = PARTS = ("errors", "readout")
SHARP = 5.0  # the scale at which kernels of as many features are compared


def percent(share: float) -> str:
    """Return a share with one digit after the point, since 99.9% is not all."""
    return f"{100 * share:.1f}%"


def intervals_page(by_kernel: dict[str, list[Cell]]) -> list[str]:
    """Return how often intervals hold: a picture, a summary, every cell."""
    head = ["kernel", "cells", "91% to 99%", "below", "above", "lowest", "highest"]
    summary = []
    for kind, cells in by_kernel.items():
        shares = [cell.within for cell in cells]
        right = sum(LEAST <= share <= MOST for share in shares)
        below = sum(share < LEAST for share in shares)
        above = len(shares) - right - below
        noise = min(cell.noise_within for cell in cells)
        summary.append(
            [
                kind,
                *(f"{each}" for each in (len(shares), right, below, above)),
                *(percent(each) for each in (min(shares), max(shares), noise)),
                f"{np.median([cell.wide for cell in cells]):.2g}",
            ]
        )
    lines = [
        "### How often 95% intervals hold",
        "",
        (
            f"The share of numbers within {WITHIN} standard errors of exact attention. Each cell "
            "is one kind of data, number of rows and ε."
        ),
        "",
        f"![How often 95% intervals hold, by the whole ± and by the noise alone]({COVERAGE})",
        *table([*head, "noise alone, lowest", "standard error over error, median"], summary),
        (
            "Every cell: within, and from build to build its own standard error; within by the "
            "noise alone; the median standard error over the root mean square error, which is how "
            "much too wide it is (and below one where a few errors are far larger than most); that "
            "error, and how much exact answers differ from query to query."
        ),
        "",
    ]
    for kind, cells in by_kernel.items():
        lines += [f"#### {kind}", *cells_table(cells)]
    return lines


def cells_table(cells: Sequence[Cell]) -> list[str]:
    """Return every cell of one kernel."""
    size = {FOURIER: "frequencies", MINIMAX: "degree", NYSTROM: "rank"}[cells[0].recipe.kind]
    names = ["within", "noise alone", "standard error over error", "error", "spread"]
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
            "recommends at ε = 1: at 1, an answer says no more than a constant would. Errors fall "
            "with ε until the kernel's own is all that is left."
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
    head = [f"### Landmarks against Fourier at scale {SHARP:g}", ""]
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
            kernel = kernel_without_seed(Recipe(NYSTROM, SHARP, RANK, public), source)
            arrays = kernel.reading(np.zeros((1, kernel.features, 1)))
            known = bool(kernel.knows(source.queries[None, :16], arrays))
            rows.append([*cells, "" if known else "warned"])
    names = ["Landmarks", "Fourier", "ratio"]
    return [
        *head,
        (
            f"Root mean square errors with {RANK} features each: {RANK} landmarks, or {RANK // 2} "
            "frequencies. Landmarks serve rows that are like the public ones they were made from; "
            "where `attend` warns that queries are not, the last column says so."
        ),
        *table(
            [
                "data, rows",
                "public rows",
                *names,
                *(f"ε = 1: {each}" for each in names),
                "noticed",
            ],
            rows,
        ),
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
                f"±{advice.centred:.2g}",
                f"±{advice.in_common:.2g}",
                f"±{advice.with_public_rows:.2g}",
                f"±{WITHIN * cell.error:.2g}",
            ]
        )
    names = [
        "plan: centred rows",
        "plan: rows with much in common",
        "plan with public rows",
        "measured",
    ]
    return [
        "### What `plan` said, and what was measured",
        "",
        (
            "How far 95% of numbers are from exact attention at ε = 1, by `plan`, which knows "
            "public numbers only, or public rows besides; and measured: "
            f"{WITHIN} times the root mean square error."
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
        about.append("- Sentences are missing: they were neither cached nor installed.")
    else:
        about.append(
            "- *Sentences*: of film reviews, embedded in 384 dimensions; values are good or bad."
        )
    about += [
        (
            "- *Fourier* and *Landmarks* are at the scale that `plan` recommends. *Minimax* is at "
            "half of it, a quarter and so on, until 4,096 features reach 5%."
        ),
        (
            "- Random features are read as they are (`memory.plain`), and predicted so. What "
            "reading near points makes of them is in [Before and after](#before-and-after)."
        ),
        "",
    ]
    return ["", "## Measured", "", *about]


def errors_part(effort: Effort, cache: pathlib.Path) -> tuple[str, dict[str, Figure]]:
    """Measure intervals, errors and plans; return the part of the page and its pictures."""
    data = sources(effort, cache)
    by_kernel, curves = intervals(data, effort), by_epsilon(data, effort)
    lines = [
        *introduction(data, effort),
        *intervals_page(by_kernel),
        *epsilon_page(curves),
        *features_page(data, effort),
        *plan_page(data, effort),
    ]
    pictures = {COVERAGE: draw_intervals(by_kernel), AGAINST_EPSILON: draw_epsilon(curves)}
    return "\n".join(lines), pictures


def readout_part(
    amount: errors_readout.Amount, data: pathlib.Path | None
) -> tuple[str, dict[str, Figure]]:
    """Measure one release in several ways; return the part of the page and its picture."""
    found, grown = errors_readout.cells(amount, data), errors_readout.growing(amount)
    lines = errors_readout.page(amount, found, grown)
    return "\n".join(lines), {errors_readout.PICTURE: draw_readout(grown)}


def write(folder: pathlib.Path, name: str, part: str, pictures: dict[str, Figure]) -> None:
    """Put a part into the page of a folder, and its pictures beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE.name
    text = (page if page.exists() else PAGE).read_text(encoding="utf-8")
    section = None if name == ERRORS else name
    page.write_text(replaced(text, "errors", part, section), encoding="utf-8")
    for file, figure in pictures.items():
        save(figure, folder / file)


def given() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few builds of few rows")
    parser.add_argument("--only", choices=PARTS, help="measure and write one part of the page")
    parser.add_argument("--write", action="store_true", help="write docs/errors.md, with pictures")
    parser.add_argument(
        "--out", type=pathlib.Path, default=PAGE.parent, help="folder of the page to write"
    )
    parser.add_argument(
        "--cache", type=pathlib.Path, default=ROOT / "build" / "embeddings", help="of sentences"
    )
    parser.add_argument(
        "--data", type=pathlib.Path, help="folder of more rows to read out (errors_readout.py)"
    )
    return parser.parse_args()


def main() -> None:
    """Measure, print, and write the page and its pictures if asked."""
    options = given()
    warnings.simplefilter("ignore", MostlyNoiseWarning)  # the page shows where they are
    start = time.monotonic()
    for name in PARTS if options.only is None else (options.only,):
        if name == ERRORS:
            part, pictures = errors_part(QUICK if options.quick else FULL, options.cache)
        else:
            amount = errors_readout.QUICK if options.quick else errors_readout.FULL
            part, pictures = readout_part(amount, options.data)
        tell(f"{(time.monotonic() - start) / 60:.1f} minutes")
        print(part)
        if options.write:
            write(options.out, name, part, pictures)


if __name__ == "__main__":
    main()
