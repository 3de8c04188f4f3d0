"""Whether twice the rows, or twice ε, ever make a classifier worse: from 100 rows and ε = 0.1."""

import itertools
import warnings

import numpy as np
from estimators_data import CASES, Dataset, Places, Split
from sharing import tell

from discreet import NotPrivateWarning, PrivacyLeakWarning
from discreet.sklearn import PrivateClassifier
from discreet.testing import Seeded

DELTA = 1e-5
EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 32.0)
ROWS = (100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200)
# So many rows are fitted for one cell, by several seeds: few rows are largely luck.
_FITTED, _MOST_SEEDS, _LEAST_SEEDS = 24_000, 60, 2
_NAMES = ("digits", "cancer", "adult", "mnist")
_TESTED = 4_000


def stability(places: Places, known: dict[str, object]) -> dict[str, object]:
    """Return, for each data set, the mean accuracy and its standard error by rows and ε."""
    warnings.simplefilter("ignore", NotPrivateWarning)
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # of a large ε
    found = dict(known)
    for case in CASES:
        if case.name in _NAMES:
            found[case.name] = _measured(case.load(places))
            tell(f"stability of {case.name}")
    return found


def _measured(dataset: Dataset) -> list[dict[str, float]]:
    most = dataset.private_rows
    sizes = [*(rows for rows in ROWS if rows < most), most]
    seeds = {rows: int(np.clip(_FITTED // rows, _LEAST_SEEDS, _MOST_SEEDS)) for rows in sizes}
    scores: dict[tuple[int, float], list[float]] = {
        cell: [] for cell in itertools.product(sizes, EPSILONS)
    }
    for seed in range(_MOST_SEEDS):
        split = dataset.split(seed)
        for (rows, epsilon), found in scores.items():
            if seed < seeds[rows]:
                found.append(_score(dataset, split, rows, epsilon, seed))
    return [
        {
            "rows": rows,
            "epsilon": epsilon,
            "mean": float(np.mean(each)),
            "error": float(np.std(each, ddof=1) / np.sqrt(len(each))),
        }
        for (rows, epsilon), each in scores.items()
    ]


def _score(dataset: Dataset, split: Split, rows: int, epsilon: float, seed: int) -> float:
    """Return the accuracy of a classifier of the first so many rows."""
    public = {"norm": dataset.norm} if dataset.bounds is None else {"bounds": dataset.bounds}
    made = PrivateClassifier(
        epsilon,
        DELTA,
        classes=dataset.classes,
        rows_hint=rows,
        entropy=Seeded(seed),
        **public,
    )
    made.fit(split.train_x[:rows], split.train_y[:rows])
    predicted = made.predict(split.test_x[:_TESTED])
    return float(np.mean(predicted == split.test_y[:_TESTED]))


def falls(cells: list[dict[str, float]]) -> list[tuple[float, dict[str, float], str]]:
    """Return by how much accuracy falls where ε or rows double, the most first."""
    by_place = {(each["rows"], each["epsilon"]): each for each in cells}
    sizes = sorted({rows for rows, _ in by_place})
    found = []
    for (rows, epsilon), each in by_place.items():
        at, place = sizes.index(rows), EPSILONS.index(epsilon)
        if place + 1 < len(EPSILONS):
            more = by_place[rows, EPSILONS[place + 1]]
            found.append((each["mean"] - more["mean"], each, "ε"))
        if at + 1 < len(sizes):
            more = by_place[sizes[at + 1], epsilon]
            found.append((each["mean"] - more["mean"], each, "rows"))
    return sorted(found, key=lambda fall: -fall[0])
