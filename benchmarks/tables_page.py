"""The page docs/tables.md, written from what `tables.py`, its rivals and what was before measured."""

import json
import pathlib
from collections.abc import Sequence

import numpy as np
from sharing import ROOT, table
from tables_data import CLASSIFICATION, REGRESSION
from tables_shared import EPSILONS

PAGE = ROOT / "docs" / "tables.md"
HERE = pathlib.Path(__file__).parent

# AUC of PrivTab and of its private logistic regression, at μ = .1, .2, .4, .8 and 1.6 under
# replacement, as its authors print them.
PRIVTAB = {
    "german": (
        "Credit-g",
        (0.602, 0.687, 0.707, 0.727, 0.733),
        (0.641, 0.675, 0.688, 0.705, 0.710),
    ),
    "pima": ("Diabetes", (0.703, 0.771, 0.814, 0.824, 0.828), (0.743, 0.774, 0.811, 0.831, 0.836)),
    "splice": ("Splice", (0.720, 0.853, 0.894, 0.915, 0.926), (0.757, 0.860, 0.902, 0.921, 0.930)),
}
BUDGETS = ("0.1", "0.2", "0.4", "0.8", "1.6")

# What was aimed at, at ε = .3, 1 and 4.
AREAS, SQUARES = (0.825, 0.853, 0.869), (0.33, 0.41, 0.45)

# Differences smaller than this are luck.
BEYOND = 0.005

Report = dict[str, dict[str, object]]


def write_page(report: Report) -> None:
    """Write docs/tables.md."""
    rivals, before = (
        json.loads((HERE / f"tables_{name}.json").read_text(encoding="utf-8"))["tables"]
        for name in ("rivals", "before")
    )
    figures = Figures(report, rivals, before)
    parts = [
        _begin(figures),
        _classes(figures),
        _numbers(figures),
        _unknown(figures),
        _privtab(figures),
        _rare(figures),
        _errors(figures),
        _speed(figures),
        _all(figures),
        _how(figures),
    ]
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")


class Figures:
    """Means over splits, of any method."""

    def __init__(self, report: Report, rivals: Report, before: Report) -> None:
        self.report = report
        self.others = {"before": before, "dp-ebm": rivals, "linear": rivals, "boosting": rivals}
        self.tables = rivals

    def mean(self, method: str, name: str, epsilon: float | None, score: str) -> float:
        """Return the mean of a score over splits; NaN if it was not measured."""
        if method in {"public", "private", "wide"}:
            found = self.report[method].get(f"{name} {epsilon:g}", {})
        else:
            methods = self.others[method].get(name, {}).get("methods", {})
            found = methods.get(method, {}).get("exact" if epsilon is None else f"{epsilon:g}", {})
        return float(np.mean(found[score])) if score in found else float("nan")

    def over(
        self, method: str, names: Sequence[str], score: str, *, exact: bool = False
    ) -> list[float]:
        """Return the mean over tables at each ε; R² of each is floored at -1."""
        epsilons = (None,) if exact else EPSILONS
        floor = -1.0 if score == "r2" else -np.inf
        return [
            float(np.mean([max(self.mean(method, name, each, score), floor) for name in names]))
            for each in epsilons
        ]

    def rows(self, name: str) -> int:
        """Return how many rows a table has."""
        return int(self.tables[name]["rows"])

    @property
    def binary(self) -> list[str]:
        """Tables with two classes, which DP-EBM can do."""
        return [name for name in CLASSIFICATION if "dp-ebm" in self.tables[name]["methods"]]

    def cells(self, names: Sequence[str], score: str) -> list[tuple[str, float, float]]:
        """Return the difference to DP-EBM in each cell: name, ε, and how far ahead."""
        return [
            (
                name,
                each,
                self.mean("public", name, each, score) - self.mean("dp-ebm", name, each, score),
            )
            for name in names
            for each in EPSILONS
        ]


def _slashed(numbers: Sequence[float], digits: int = 3) -> str:
    return " / ".join(f"{number:.{digits}f}" for number in numbers)


def _verdict(found: Sequence[float], asked: Sequence[float]) -> str:
    missed = [f"{b:g}" for a, b in zip(found, asked, strict=True) if a < b]
    return f"aimed at: {_slashed(asked)}" + (f"; **missed** {', '.join(missed)}" if missed else "")


def _ahead(cells: Sequence[tuple[str, float, float]]) -> tuple[int, int]:
    """Return how many cells are ahead, and behind, by more than luck."""
    return sum(c[2] > BEYOND for c in cells), sum(c[2] < -BEYOND for c in cells)


def _begin(figures: Figures) -> str:
    areas, squares = (
        figures.over("public", names, score)
        for names, score in ((CLASSIFICATION, "auc"), (REGRESSION, "r2"))
    )
    return f"""# Private tables, measured

`PrivateClassifier` and `PrivateRegressor` with a schema (`columns=`) and their defaults, δ = 1e-5, add_remove neighbours, {len(CLASSIFICATION)} tables of classes and {len(REGRESSION)} of numbers, 5 splits each. Made by `benchmarks/tables.py`.

## What to do

- **Give `columns=`**, not an array: a range for each number, a list for each category. Mean AUC {_slashed(areas)} at ε = 0.3 / 1 / 4, mean R² {_slashed(squares)}.
- **Write "private" where you do not know a range or a list.** On the mean it costs {_lost(figures)} at ε = 1, and with several thousand rows it is often better than a range: [no bounds](#nothing-is-known).
- **Do not worry about `target_bounds` that are too wide**: where targets really are is found, too.
- **Expect luck below 500 rows**, whatever the mean says: [all tables](#all-tables).
- **Use something else** if columns of categories matter together (their interactions are not learnt), or if you have fewer than about 150 rows for each unit of noise (3.7 at ε = 1) and know no ranges.
"""


def _lost(figures: Figures) -> str:
    public, private = (
        figures.over(each, CLASSIFICATION, "auc")[1] for each in ("public", "private")
    )
    lost = public - private
    return "nothing" if abs(lost) < 0.0005 else f"{lost:.3f} of AUC"


def _classes(figures: Figures) -> str:
    head = ["method", "AUC, all", "AUC, two classes", "log loss, all", "log loss, two classes"]
    rows = []
    for method, title in (
        ("public", "**schema**"),
        ("before", "one-hots, before"),
        ("dp-ebm", "DP-EBM"),
    ):
        some = [
            _slashed(figures.over(method, names, score))
            if method != "dp-ebm" or names is not CLASSIFICATION
            else "–"
            for score in ("auc", "log_loss")
            for names in (CLASSIFICATION, figures.binary)
        ]
        rows.append([title, *some])
    for method, title in (
        ("linear", "logistic regression, not private"),
        ("boosting", "boosting, not private"),
    ):
        some = [
            _slashed(figures.over(method, names, score, exact=True))
            for score in ("auc", "log_loss")
            for names in (CLASSIFICATION, figures.binary)
        ]
        rows.append([title, *some])
    cells = figures.cells(figures.binary, "auc")
    ahead, behind = _ahead(cells)
    worst = sorted((cell for cell in cells if cell[2] < -BEYOND), key=lambda cell: cell[2])
    where = "; ".join(f"{name} at ε = {each:g} by {-by:.3f}" for name, each, by in worst)
    areas = figures.over("public", CLASSIFICATION, "auc")
    adult = figures.mean("public", "adult", 1.0, "auc")
    lines = table(head, rows)
    return f"""## Classes

Means over tables, at ε = 0.3 / 1 / 4. AUC: {_verdict(areas, AREAS)}. UCI Adult at ε = 1: {adult:.3f} (aimed at: 0.905).
{chr(10).join(lines)}
**Beside DP-EBM**, on {len(figures.binary)} tables with two classes: ahead by more than {BEYOND:g} in {ahead} of {len(cells)} cells ({ahead / len(cells):.0%}; aimed at: 80%), behind in {behind}. {f"Where it wins: {where}." if where else ""}
"""


def _numbers(figures: Figures) -> str:
    rows = [
        ["**schema**", _slashed(figures.over("public", REGRESSION, "r2"))],
        [
            "schema, targets' range 4 times too wide",
            _slashed(figures.over("wide", REGRESSION, "r2")),
        ],
        ["one-hots and least squares, before", _slashed(figures.over("before", REGRESSION, "r2"))],
        ["DP-EBM", _slashed(figures.over("dp-ebm", REGRESSION, "r2"))],
        ["ridge, not private", _slashed(figures.over("linear", REGRESSION, "r2", exact=True))],
        ["boosting, not private", _slashed(figures.over("boosting", REGRESSION, "r2", exact=True))],
    ]
    cells = figures.cells(REGRESSION, "r2")
    ahead, _ = _ahead(cells)
    worst = sorted((cell for cell in cells if cell[2] < 0), key=lambda cell: cell[2])
    where = "; ".join(f"{name} at ε = {each:g} by {-by:.3f}" for name, each, by in worst)
    squares = figures.over("public", REGRESSION, "r2")
    lost = squares[1] - figures.over("wide", REGRESSION, "r2")[1]
    return f"""## Numbers

Mean R² over tables (each floored at -1), at ε = 0.3 / 1 / 4; {_verdict(squares, SQUARES)}. Ranges of targets that are 4 times too wide cost {lost:.3f} at ε = 1 (aimed at: at most 0.1).
{chr(10).join(table(["method", "R²"], rows))}
**Beside DP-EBM**: ahead by more than {BEYOND:g} in {ahead} of {len(cells)} cells. {f"Where it wins: {where}." if where else "It wins nowhere."}
"""


def _unknown(figures: Figures) -> str:
    rows = []
    for names, score, title in (
        (CLASSIFICATION, "auc", "AUC, all tables"),
        (
            [name for name in CLASSIFICATION if figures.rows(name) < 2_500],
            "auc",
            "AUC, fewer than 2,500 rows",
        ),
        (
            [name for name in CLASSIFICATION if figures.rows(name) >= 2_500],
            "auc",
            "AUC, 2,500 rows and more",
        ),
        (REGRESSION, "r2", "R², all tables"),
    ):
        rows.append(
            [
                title,
                *(
                    _slashed(figures.over(each, names, score))
                    for each in ("public", "private", "before")
                ),
            ]
        )
    losses = sorted(
        (figures.mean("private", name, 1.0, "auc") - figures.mean("public", name, 1.0, "auc"), name)
        for name in CLASSIFICATION
    )
    worst = ", ".join(f"{name} {by:+.3f}" for by, name in losses[:5])
    best = ", ".join(f"{name} {by:+.3f}" for by, name in losses[:-6:-1])
    return f"""## Nothing is known

`"private"` for every column: ranges and lists are found with a share of the budget (5%, up to 20% where rows are few). At ε = 0.3 / 1 / 4.
{chr(10).join(table(["", "good public bounds", '"private" everywhere', "before, good bounds"], rows))}
At ε = 1 it is worst beside public bounds on {worst}; and best on {best}: bins that hold equally many rows suit columns whose range says little.
"""


def _privtab(figures: Figures) -> str:
    rows, ahead, cells = [], 0, 0
    for name, (title, theirs, regression) in PRIVTAB.items():
        own = [float(np.mean(figures.report["privtab"][f"{name} {each}"])) for each in BUDGETS]
        ahead += sum(a > b for a, b in zip(own, theirs, strict=True))
        cells += len(own)
        rows.append([title, _slashed(own), _slashed(theirs), _slashed(regression)])
    splice = float(np.mean(figures.report["privtab"]["splice 0.1"]))
    return f"""## Beside PrivTab

A foundation model for tables with private attention (2026); figures are its authors'. AUC at μ = {" / ".join(BUDGETS)} under replacement; ours promise the same: half of that μ when a row is added or removed. 10 splits of 80 to 20. Its ranges are z-scores of the data, ours are the public ranges of these tables.
{chr(10).join(table(["set", "schema", "PrivTab", "its private logistic regression"], rows))}
Ahead in {ahead} of {cells} cells (aimed at: 13). Splice at μ = 0.1: {splice:.3f} (aimed at: 0.86).
"""


def _rare(figures: Figures) -> str:
    rows = []
    for name in ("adult", "magic", "census"):
        means = [np.mean(figures.report["rare"][f"{name} {each:g}"], axis=0) for each in EPSILONS]
        rows.append(
            [
                name,
                _slashed([mean[0] for mean in means]),
                _slashed([mean[1] for mean in means]),
                _slashed([mean[2] for mean in means], 4),
                f"{means[0][3]:.4f}",
                _slashed([mean[4] for mean in means], 2),
            ]
        )
    precision = float(np.mean(figures.report["rare"]["adult 1"], axis=0)[0])
    head = [
        "table",
        "average precision",
        "AUC",
        "log loss",
        "a constant's",
        "mean probability over share",
    ]
    missed = "" if precision >= 0.29 else f" **Missed** by {0.29 - precision:.3f}."
    return f"""## A class of two percent

Rows of the rarer class are left out until 2% are of it. At ε = 0.3 / 1 / 4, 5 splits of 75 to 25 (of Adult, all 48,842 rows). Aimed at: average precision of 0.29 on Adult at ε = 1, which has {precision:.3f}.{missed}
{chr(10).join(table(head, rows))}
"""


def _errors(figures: Figures) -> str:
    names = list(dict.fromkeys(key.rsplit(" ", 1)[0] for key in figures.report["coverage"]))
    rows = [
        [
            name,
            *(
                " / ".join(
                    f"{figures.report['coverage'][f'{name} {each:g}'][kind]:.1%}"
                    for each in EPSILONS
                )
                for kind in ("shapes", "predictions")
            ),
        ]
        for name in names
    ]
    every = [found["shapes"] for found in figures.report["coverage"].values()]
    inside = sum(0.91 <= each <= 0.99 for each in every)
    return f"""## How far noise has moved it

How often intervals of ±1.96 standard errors hold what a fit without noise says (shapes), or what fits say on the mean (predictions: numbers, or logits), over 10 fits. At ε = 0.3 / 1 / 4. Shapes are within 91 to 99% in {inside} of {len(every)} cells.
{chr(10).join(table(["table", "shapes", "predictions"], rows))}
Errors are of the noise alone. They are too narrow where classes can be told apart nearly without error (mushroom): there the factor of the calibration, which is not in them, matters most.
"""


def _speed(figures: Figures) -> str:
    times = figures.report["time"]["adult"]
    ratio = times["schema"] / times["one-hots"]
    return f"""## Speed

A fit on UCI Adult (32,561 rows, raw categories) takes {ratio:.2f} times what one-hots took before, in one run (aimed at: at most 1.5).
"""


def _all(figures: Figures) -> str:
    lines = ["## All tables", "", "At ε = 0.3 / 1 / 4.", ""]
    for names, score, title in ((CLASSIFICATION, "auc", "AUC"), (REGRESSION, "r2", "R²")):
        head = [
            "table",
            "rows",
            f"{title}, schema",
            '"private"',
            "before",
            "DP-EBM",
            "linear",
            "boosting",
        ]
        rows = []
        for name in names:
            private = [
                [figures.mean(m, name, e, score) for e in EPSILONS]
                for m in ("public", "private", "before", "dp-ebm")
            ]
            exact = [figures.mean(m, name, None, score) for m in ("linear", "boosting")]
            rows.append(
                [
                    name,
                    f"{figures.rows(name):,}",
                    *("–" if np.isnan(each).any() else _slashed(each) for each in private),
                    *(f"{each:.3f}" for each in exact),
                ]
            )
        lines += table(head, rows)
    return "\n".join(lines)


def _how(figures: Figures) -> str:
    versions = ", ".join(f"{name} {each}" for name, each in figures.report["versions"].items())
    return f"""## How it was measured

- Tables are raw, from packages that install (`benchmarks/tables_packages.py`). Ranges, lists and classes are in `benchmarks/tables_schemas.json`. They were made once from the whole tables and rounded outwards, as somebody who knows the subject would write them: a little kinder than life. Constants of the library were chosen with a look at some of these tables.
- Splits are random, three quarters to fit; noise comes from `discreet.testing.Seeded`.
- DP-EBM has its defaults, the same ε, δ and ranges; it cannot be given lists of categories and reads them from the rows, which is not charged here. It refuses more than two classes.
- *Before*: the library at commit 1d9e4de, with one-hots in bounds of 0 and 1 (`benchmarks/tables_before.py`).
- {versions}.
"""
