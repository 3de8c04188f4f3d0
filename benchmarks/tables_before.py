"""What private estimators reached on tables before they knew columns: numbers and one-hots.

Run: python benchmarks/tables_before.py (two minutes on one core), with the library as it was at
commit 1d9e4de: git worktree add FOLDER 1d9e4de, and PYTHONPATH=FOLDER/src. What was measured is
kept in benchmarks/tables_before.json fit by fit, so that a run goes on where another was stopped.

Estimators have their defaults, what is public, and the number of rows rounded to two digits. They
are given numbers as they are, and one column from 0 to 1 for each category.
"""

import argparse
import importlib.metadata
import pathlib
import time
import warnings
from collections.abc import Callable, Sequence

from sharing import tell
from tables_data import CLASSIFICATION, REGRESSION, TableData, load
from tables_packages import FOLDER
from tables_shared import (
    DELTA,
    EPSILONS,
    SPLITS,
    Scores,
    classified,
    in_order,
    keep,
    known,
    measure,
    one_hot,
    regressed,
)

from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.testing import Seeded

RESULTS = pathlib.Path(__file__).with_suffix(".json")
COMMIT = "1d9e4de"


def before(data: TableData, epsilon: float) -> Callable[[int], Scores]:
    """Return fits of an estimator. No two have the same noise."""
    rows, bounds = one_hot(data)

    def fit(split: int) -> Scores:
        seed = len(EPSILONS) * split + EPSILONS.index(epsilon)
        public = {"bounds": bounds, "rows_hint": data.rows_hint, "entropy": Seeded(seed)}
        train, test = data.split(split)
        if data.is_regression:
            made = PrivateRegressor(epsilon, DELTA, target_bounds=data.target_bounds, **public)
            made.fit(rows[train], data.target[train])
            return regressed(made.predict(rows[test]), data.target[test])
        made = PrivateClassifier(epsilon, DELTA, classes=data.classes, **public)
        made.fit(rows[train], data.target[train])
        found = in_order(data, made.predict_proba(rows[test]), made.classes_)
        return classified(data, found, data.target[test])

    return fit


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for and was not measured before."""
    names = (*CLASSIFICATION, *REGRESSION)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=FOLDER, help="folder of packages")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these tables")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="JSON to add to")
    options = parser.parse_args(arguments)
    # That seeds are for tests, and that small tables at a small ε are mostly noise.
    warnings.simplefilter("ignore")
    report = known(options.results)
    wanted = ("numpy", "pandas", "scikit-learn")
    report["commit"] = COMMIT
    report["versions"] = {name: importlib.metadata.version(name) for name in wanted}
    for name in options.only:
        start, data = time.monotonic(), load(name, options.data)
        for epsilon in EPSILONS:
            fit = before(data, epsilon)
            if measure(report, data, ("before", epsilon), options.splits, fit):
                keep(report, options.results)
        tell(f"{name}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
