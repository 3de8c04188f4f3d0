"""Private tables, measured: makes docs/tables.md of what estimators with a schema reach.

Run: python benchmarks/tables.py (a quarter of an hour on two cores; `tables_data.py --fetch` first
downloads the data). What was measured is kept in benchmarks/tables.json, part by part: with
--part some is measured again, and --page only writes the page. Rivals and what there was before are
measured by `tables_rivals.py` and `tables_before.py`.
"""

import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process for each core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sharing import tell
from sklearn.metrics import average_precision_score, roc_auc_score
from tables_data import CLASSIFICATION, REGRESSION, TableData, load
from tables_page import write_page
from tables_shared import DELTA, EPSILONS, SPLITS, classified, in_order, regressed

from discreet.accounting import gaussian_epsilon
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.testing import Seeded, Silent

RESULTS = pathlib.Path(__file__).with_suffix(".json")

# Target ranges that are so much too wide.
WIDE = 4.0

# PrivTab's own sets and budgets: μ under replacement is a promise that half of it keeps under
# adding or removing a row.
PRIVTAB = ("german", "pima", "splice")
BUDGETS = (0.1, 0.2, 0.4, 0.8, 1.6)
PRIVTAB_SPLITS, PRIVTAB_TESTED = 10, 0.2

RARE, RARE_SHARE, RARE_SPLITS = ("adult", "magic", "census"), 0.02, 5

COVERED = (
    *("adult", "german", "magic", "phoneme", "chile", "compas", "splice", "mushroom"),
    *("diamonds", "credit", "bikes", "wage", "abalone", "hours"),
)
FITS = 10

Job = tuple[object, ...]


def estimator(data: TableData, epsilon: float, seed: int | None, **changes: object) -> object:
    """Return an estimator with what is public about a table; without noise if there is no seed."""
    entropy = Silent() if seed is None else Seeded(seed)
    public = {"columns": data.columns, "rows_hint": data.rows_hint, "entropy": entropy}
    if data.is_regression:
        public["target_bounds"] = data.target_bounds
        return PrivateRegressor(epsilon, DELTA, **{**public, **changes})
    return PrivateClassifier(epsilon, DELTA, **{**public, "classes": data.classes, **changes})


def fitted(data: TableData, train: np.ndarray, *given: object, **changes: object) -> object:
    """Return an estimator that was fitted to some rows."""
    made = estimator(data, *given, **changes)
    return made.fit(data.frame.iloc[train], data.target[train])


def scored(data: TableData, made: object, test: np.ndarray) -> dict[str, float]:
    """Return the scores of a fit on the other rows."""
    rows, truth = data.frame.iloc[test], data.target[test]
    if data.is_regression:
        return regressed(made.predict(rows), truth)
    return classified(data, in_order(data, made.predict_proba(rows), made.classes_), truth)


def measure_table(job: Job) -> dict[str, list[float]]:
    """Return the scores of a table, one for each split."""
    name, epsilon, kind = job
    data = load(name)
    changes: dict[str, object] = {}
    if kind == "private":
        changes["columns"] = dict.fromkeys(data.columns, "private")
    if kind == "wide":
        low, high = data.target_bounds
        middle, half = (low + high) / 2, (high - low) / 2 * WIDE
        changes["target_bounds"] = (middle - half, middle + half)
    found: dict[str, list[float]] = {}
    for split in range(SPLITS):
        train, test = data.split(split)
        seed = len(EPSILONS) * split + EPSILONS.index(epsilon)
        made = fitted(data, train, epsilon, seed, **changes)
        for score, number in scored(data, made, test).items():
            found.setdefault(score, []).append(float(f"{number:.5g}"))
    return found


def measure_privtab(job: Job) -> list[float]:
    """Return the areas of one of PrivTab's sets, one for each split."""
    name, budget = job
    data = load(name)
    epsilon = gaussian_epsilon(sigma=2 / budget, delta=DELTA)
    areas = []
    for split in range(PRIVTAB_SPLITS):
        order = np.random.default_rng(1000 + split).permutation(len(data.frame))
        tested = round(PRIVTAB_TESTED * len(order))
        made = fitted(data, order[tested:], epsilon, split)
        areas.append(scored(data, made, order[:tested])["auc"])
    return [float(f"{area:.5g}") for area in areas]


def measure_rare(job: Job) -> list[list[float]]:
    """Return average precision, area, log loss, a constant's, and mean probability of 2%."""
    name, epsilon = job
    data = load("adult-whole" if name == "adult" else name)
    found = []
    for split in range(RARE_SPLITS):
        rng = np.random.default_rng(split)
        labels, counts = np.unique(data.target, return_counts=True)
        rare = labels[np.argmin(counts)]
        some, others = np.flatnonzero(data.target == rare), np.flatnonzero(data.target != rare)
        kept = int(len(others) * RARE_SHARE / (1 - RARE_SHARE))
        order = rng.permutation(np.concatenate([rng.choice(some, kept, replace=False), others]))
        train, test = np.split(order, [int(0.75 * len(order))])
        hint = int(float(f"{len(train):.1e}"))
        made = fitted(data, train, epsilon, split, rows_hint=hint)
        likely = made.predict_proba(data.frame.iloc[test])[:, list(made.classes_).index(rare)]
        truth = data.target[test] == rare
        base = float(truth.mean())
        sure = np.clip(np.where(truth, likely, 1 - likely), 1e-6, 1)
        constant = -(base * math.log(base) + (1 - base) * math.log(1 - base))
        found.append(
            [
                float(average_precision_score(truth, likely)),
                float(roc_auc_score(truth, likely)),
                float(-np.mean(np.log(sure))),
                constant,
                float(likely.mean()) / base,
            ]
        )
    return found


def measure_coverage(job: Job) -> dict[str, float]:
    """Return how often 95% intervals of shapes and predictions hold what has no noise."""
    name, epsilon = job
    data = load(name)
    train, test = data.split(0)
    rows = data.frame.iloc[test[:500]]
    exact = fitted(data, train, epsilon, None)
    fits = [fitted(data, train, epsilon, 100 + seed) for seed in range(FITS)]
    steps = [
        np.abs(fit.shapes_[column].values - exact.shapes_[column].values)
        <= 1.96 * fit.shapes_[column].stderr + 1e-12
        for fit in fits
        for column in data.columns
    ]
    # Predictions around their own mean over fits: what noise alone does.
    answers, errors = zip(*(_answers(data, fit, rows) for fit in fits), strict=True)
    around = (np.array(answers) - np.mean(answers, axis=0)) / math.sqrt(1 - 1 / FITS)
    within = np.abs(around) <= 1.96 * np.array(errors)
    return {
        "shapes": float(np.mean(np.concatenate([step.ravel() for step in steps]))),
        "predictions": float(np.mean(within)),
    }


def _answers(data: TableData, fit: object, rows: object) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted numbers or logits, and their errors."""
    if data.is_regression:
        return fit.predict(rows, return_std=True)
    keys = fit.keys(rows)
    logits = fit.release_.logits(keys)
    error = fit.release_.stderr(keys) * math.sqrt(1 - 1 / logits.shape[1])
    return logits, np.broadcast_to(error, logits.shape)


def measure_time(job: Job) -> dict[str, float]:
    """Return the seconds that a fit on Adult takes: with a schema, and with one-hots as before."""
    from tables_shared import one_hot

    del job
    data = load("adult")
    rows, bounds = one_hot(data)
    every = np.arange(len(rows))
    calls: dict[str, Callable[[], object]] = {
        "schema": lambda: fitted(data, every, 1.0, 0),
        "one-hots": lambda: PrivateClassifier(
            1.0, DELTA, bounds=bounds, classes=data.classes, rows_hint=33_000, entropy=Seeded(0)
        ).fit(rows, data.target),
    }
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(5):  # in turns: neighbours come and go
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in found.items()}


PARTS: dict[str, tuple[Callable[[Job], object], list[Job]]] = {
    "public": (
        measure_table,
        [(name, each, "public") for name in (*CLASSIFICATION, *REGRESSION) for each in EPSILONS],
    ),
    "private": (
        measure_table,
        [(name, each, "private") for name in (*CLASSIFICATION, *REGRESSION) for each in EPSILONS],
    ),
    "wide": (measure_table, [(name, each, "wide") for name in REGRESSION for each in EPSILONS]),
    "privtab": (measure_privtab, [(name, each) for name in PRIVTAB for each in BUDGETS]),
    "rare": (measure_rare, [(name, each) for name in RARE for each in EPSILONS]),
    "coverage": (measure_coverage, [(name, each) for name in COVERED for each in EPSILONS]),
    "time": (measure_time, [("adult",)]),
}


def measure(part: str, workers: int) -> dict[str, object]:
    """Return what a part measures, by its jobs."""
    work, jobs = PARTS[part]
    start = time.monotonic()
    with ProcessPoolExecutor(1 if part == "time" else workers, initializer=_quiet) as pool:
        found = dict(zip([_key(job) for job in jobs], pool.map(work, jobs), strict=True))
    tell(f"{part}: {time.monotonic() - start:.0f} s")
    return found


def _key(job: Job) -> str:
    return " ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in job[:2])


def _quiet() -> None:
    # That seeds are for tests, and that small tables at a small ε are mostly noise.
    warnings.simplefilter("ignore")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=tuple(PARTS))
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    report = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if not options.page:
        for part in options.part:
            report[part] = measure(part, options.workers)
            wanted = ("numpy", "scikit-learn", "pandas")
            report["versions"] = {name: importlib.metadata.version(name) for name in wanted}
            RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    write_page(report)


if __name__ == "__main__":
    main()
