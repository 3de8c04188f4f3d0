"""What tables are compared with: DP-EBM, and methods that are not private.

Run: python benchmarks/tables_rivals.py (five minutes on one core), by an interpreter that
has interpret-core, scikit-learn and pandas; the library is not needed. What was measured is kept in
benchmarks/tables_rivals.json fit by fit, so that a run goes on where another was stopped.

- DP-EBM (Nori et al., 2021; the package interpret) has its defaults, the same ε and δ, and what is
  public: kinds and ranges of columns, and the range of the target. It cannot be told the list of
  categories, and looks into the rows for those that occur; nothing is charged for that here. It
  refuses missing values: numbers are put in the middle of their range, categories are a word of
  their own. It starts from zero, so that targets are moved by the middle of their public range.
  More than two classes are not supported.
- Not private: logistic regression (ridge for numbers) on scaled numbers and one column for each
  category, and gradient boosting by histograms on raw columns.
"""

import argparse
import importlib.metadata
import pathlib
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from sharing import tell
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
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

RESULTS = pathlib.Path(__file__).with_suffix(".json")
METHODS = ("linear", "boosting", "dp-ebm")
WORD = "missing"

Fit = Callable[[int], Scores]


def scored(data: TableData, split: int, estimator: object, rows: pd.DataFrame) -> Scores:
    """Return the scores of something like scikit-learn's, fitted on one split."""
    train, test = data.split(split)
    estimator.fit(rows.iloc[train], data.target[train])
    if data.is_regression:
        return regressed(estimator.predict(rows.iloc[test]), data.target[test])
    found = in_order(data, estimator.predict_proba(rows.iloc[test]), estimator.classes_)
    return classified(data, found, data.target[test])


def linear(data: TableData) -> Fit:
    """Return fits of a linear model."""
    rows = pd.DataFrame(one_hot(data)[0])

    def fit(split: int) -> Scores:
        last = Ridge() if data.is_regression else LogisticRegression(max_iter=1_000)
        return scored(data, split, make_pipeline(StandardScaler(), last), rows)

    return fit


def boosting(data: TableData) -> Fit:
    """Return fits of gradient boosting, which knows missing values and categories."""
    rows = data.frame.copy()
    for name in data.categories:
        rows[name] = pd.Categorical(rows[name], categories=data.columns[name])
    kind = HistGradientBoostingRegressor if data.is_regression else HistGradientBoostingClassifier

    def fit(split: int) -> Scores:
        made = kind(categorical_features=data.categories or None, random_state=split)
        return scored(data, split, made, rows)

    return fit


def filled(data: TableData) -> pd.DataFrame:
    """Return columns without missing values."""
    made = {}
    for name, public in data.columns.items():
        column = data.frame[name]
        if isinstance(public, tuple):
            made[name] = column.fillna(sum(public) / 2)
        else:
            words = [WORD if word is None else word for word in column]
            made[name] = pd.Series(words, dtype=object)
    return pd.DataFrame(made)


def dp_ebm(data: TableData, epsilon: float) -> Fit:
    """Return fits of DP-EBM. Each has a seed of its own, so that a run can be made again."""
    rows = filled(data)
    ranges = {name: data.columns[name] for name in data.numbers}
    public = {
        "feature_names": list(data.columns),
        "feature_types": ["continuous" if name in ranges else "nominal" for name in data.columns],
        "privacy_bounds": ranges,
        "epsilon": epsilon,
        "delta": DELTA,
        "n_jobs": 1,
    }

    def fit(split: int) -> Scores:
        seed = 1 + len(EPSILONS) * split + EPSILONS.index(epsilon)
        if not data.is_regression:
            made = DPExplainableBoostingClassifier(**public, random_state=seed)
            return scored(data, split, made, rows)
        low, high = data.target_bounds
        middle = (low + high) / 2
        made = DPExplainableBoostingRegressor(
            **public,
            privacy_target_min=low - middle,
            privacy_target_max=high - middle,
            random_state=seed,
        )
        train, test = data.split(split)
        made.fit(rows.iloc[train], data.target[train] - middle)
        found, truth = made.predict(rows.iloc[test]) + middle, data.target[test]
        clipped = regressed(np.clip(found, low, high), truth)
        return regressed(found, truth) | {f"{name}_clipped": each for name, each in clipped.items()}

    return fit


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for and was not measured before."""
    names = (*CLASSIFICATION, *REGRESSION)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=FOLDER, help="folder of packages")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these tables")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="JSON to add to")
    options = parser.parse_args(arguments)
    # That seeds are for tests, and that a table of few rows has fewer than its folds.
    warnings.simplefilter("ignore")
    report = known(options.results)
    wanted = ("numpy", "pandas", "scikit-learn", "interpret-core")
    report["versions"] = {name: importlib.metadata.version(name) for name in wanted}
    for name in options.only:
        start, data = time.monotonic(), load(name, options.data)
        fits: list[tuple[str, float | None, Fit]] = [
            ("linear", None, linear(data)),
            ("boosting", None, boosting(data)),
        ]
        if data.is_regression or data.is_binary:
            fits += [("dp-ebm", epsilon, dp_ebm(data, epsilon)) for epsilon in EPSILONS]
        for method, epsilon, fit in fits:
            if method in options.methods and measure(
                report, data, (method, epsilon), options.splits, fit
            ):
                keep(report, options.results)
        tell(f"{name}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
