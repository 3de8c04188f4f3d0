"""What the measurements of tables share: splits, encodings, scores, and files of results."""

import json
import pathlib
from collections.abc import Callable

import numpy as np
from sklearn.metrics import log_loss, mean_absolute_error, r2_score, roc_auc_score
from tables_data import TableData

DELTA = 1e-5
EPSILONS = (0.3, 1.0, 4.0)
SPLITS = 5
EXACT = "exact"  # in place of ε, of methods that are not private
CLIP = 1e-6

Scores = dict[str, float]
Report = dict[str, object]


def one_hot(data: TableData) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return numbers as they are and one column for each category, with the bounds of all.

    Missing numbers are in the middle of their range; missing categories have a column of their own
    where any is missing. What is not on the list of categories is zero throughout.
    """
    made, bounds = [], []
    for name, known in data.columns.items():
        column = data.frame[name]
        if isinstance(known, tuple):
            made.append(column.fillna(sum(known) / 2).to_numpy(dtype=np.float64))
            bounds.append(known)
            continue
        given = column.to_numpy()
        made += [(given == each).astype(np.float64) for each in known]
        if column.isna().any():
            made.append(column.isna().to_numpy(dtype=np.float64))
        bounds += [(0.0, 1.0)] * (len(made) - len(bounds))
    ends = np.array(bounds, dtype=np.float64)
    return np.stack(made, axis=1), (ends[:, 0], ends[:, 1])


def classified(data: TableData, probabilities: np.ndarray, truth: np.ndarray) -> Scores:
    """Return the scores of probabilities, whose columns are in the order of classes.

    The area is that of the second of two classes, or the mean of one against the rest over the
    classes that were tested.
    """
    sure = np.clip(probabilities, CLIP, 1.0)
    sure /= sure.sum(axis=1, keepdims=True)
    labels = np.array(data.classes)
    tested = range(1, 2) if data.is_binary else range(len(labels))
    areas = [
        roc_auc_score(truth == labels[each], probabilities[:, each])
        for each in tested
        if 0 < np.sum(truth == labels[each]) < len(truth)
    ]
    # Scikit-learn wants labels in its own order.
    order = np.argsort(labels)
    return {
        "auc": float(np.mean(areas)),
        "log_loss": float(log_loss(truth, sure[:, order], labels=labels[order])),
        "accuracy": float(np.mean(labels[np.argmax(probabilities, axis=1)] == truth)),
    }


def regressed(predicted: np.ndarray, truth: np.ndarray) -> Scores:
    """Return the scores of numbers."""
    return {
        "r2": float(r2_score(truth, predicted)),
        "mae": float(mean_absolute_error(truth, predicted)),
    }


def in_order(data: TableData, probabilities: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return probabilities in the order of classes, and zero for those that were not fitted."""
    made = np.zeros((len(probabilities), len(data.classes)))
    made[:, [data.classes.index(str(each)) for each in classes]] = probabilities
    return made


def known(path: pathlib.Path) -> Report:
    """Return what was measured before."""
    if not path.exists():
        return {"tables": {}}
    return json.loads(path.read_text(encoding="utf-8"))


def keep(report: Report, path: pathlib.Path) -> None:
    """Write what was measured so far, with five digits, and one list a line."""

    def lines(part: object, depth: int) -> str:
        if not isinstance(part, dict):
            return json.dumps(part)
        inner = ",\n".join(
            f"{' ' * (depth + 1)}{json.dumps(name)}: {lines(each, depth + 1)}"
            for name, each in part.items()
        )
        return f"{{\n{inner}\n{' ' * depth}}}"

    settings = {"delta": DELTA, "epsilons": list(EPSILONS)}
    path.write_text(lines({**settings, **report}, 0) + "\n", encoding="utf-8")


def measure(
    report: Report,
    data: TableData,
    method: tuple[str, float | None],
    splits: int,
    scored: Callable[[int], Scores],
) -> bool:
    """Add the scores of a method on splits that were not measured before.

    Args:
        report: what was measured, to be added to.
        data: the table.
        method: its name, and ε; None for methods that are not private.
        splits: how many there are to be.
        scored: returns the scores on one split.

    Returns:
        Whether anything was measured.
    """
    table = report["tables"].setdefault(data.name, {"rows": len(data.frame), "methods": {}})
    name, epsilon = method
    budget = EXACT if epsilon is None else f"{epsilon:g}"
    found = table["methods"].setdefault(name, {}).setdefault(budget, {})
    done = min(map(len, found.values()), default=0)
    for split in range(done, splits):
        for score, number in scored(split).items():
            found.setdefault(score, []).append(float(f"{number:.5g}"))
    return done < splits
