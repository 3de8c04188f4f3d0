"""How often the ± of rounds holds: of steps of shapes and of predictions, against no noise at all.

Fits with noise are compared with the fit that has none. Of 95% intervals some 95 in a hundred have
to hold; bars half as long, or twice, would be noticed.
"""

from functools import cache

import numpy as np
import pytest
from glm import phi
from rounds import asked_by

from discreet._keys import MISSING
from discreet.features.columns import Bins, Categories, TableColumns
from discreet.readers.glm.mechanism import GLM
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.sklearn.shapes import shapes_of
from discreet.testing import Seeded, Silent

FITS = 20
LEAST, MOST = 0.91, 0.99
Z = 1.96

COLUMNS = TableColumns(
    (
        Bins.between(0, 1, skewed=False),
        Categories((0, 1, 2, 3)),
        Bins.between(0, 10, skewed=True),
        Categories((0, 1)),
        Bins.between(-3, 3, skewed=False),
    )
)
ROWS = 6_000


def keys_of(seed=0, rows=ROWS):
    """A table whose columns depend on each other, with some cells missing."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=rows)
    keys = np.stack(
        [
            1 / (1 + np.exp(-hidden + rng.normal(size=rows))),
            rng.choice(4, rows, p=[0.5, 0.25, 0.15, 0.1]),
            np.exp(0.7 * rng.normal(size=rows) + 0.3 * hidden),
            rng.random(rows) < 0.3,
            rng.normal(size=rows),
        ],
        axis=1,
    )
    keys[rng.random(keys.shape) < 0.03] = MISSING
    return keys


def scores_of(keys, outputs):
    """What is true of the table: some columns count, some do not."""
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(COLUMNS.features, outputs)) * 2.5
    return phi(COLUMNS, keys) @ weights


TASKS = {
    "two classes": (SOFTMAX, {"classes": range(2)}),
    "two classes, far apart": (SOFTMAX, {"classes": range(2)}),
    "three classes": (SOFTMAX, {"classes": range(3)}),
    "numbers": (GLM, {}),
    "labels": (GLM, {"loss": "logistic"}),
}


def values_of(task, keys):
    rng = np.random.default_rng(9)
    if task in {"numbers", "labels"}:
        scores = scores_of(keys, 1)
        if task == "labels":
            return (scores + rng.logistic(size=scores.shape) > 0) * 1.0
        return np.clip(0.15 * scores + 0.25 * rng.normal(size=scores.shape), -1, 1)
    scores = scores_of(keys, len(TASKS[task][1]["classes"])) * (2 if "far apart" in task else 1)
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


@cache
def fitted(task, seed, epsilon=1.0):
    """A fit with the noise of a seed; without any, if that is None."""
    mechanism, changes = TASKS[task]
    keys = keys_of()
    entropy = Silent() if seed is None else Seeded(seed)
    options = {"epsilon": epsilon, "delta": 1e-6, "features": COLUMNS, "rows_hint": ROWS} | changes
    return asked_by(mechanism, keys, values_of(task, keys), entropy=entropy, **options)[1]


def steps_of(task, fit):
    """All steps of all shapes, and their standard errors, in one array each."""
    layout = fit.released.layout
    unit = {
        "two classes": np.array([[-1.0], [1.0]]),
        "two classes, far apart": np.array([[-1.0], [1.0]]),
        "three classes": np.eye(3) - 1 / 3,
        "numbers": np.array([[layout.reach[0] if task == "numbers" else 1.0]]),
        "labels": np.array([[1.0]]),
    }[task]
    labels = [None if isinstance(each, Bins) else ["a"] * each.width for each in COLUMNS.columns]
    names = [str(at) for at in range(COLUMNS.dim)]
    shapes = shapes_of(COLUMNS, fit.coefficients, fit.spread, names=names, labels=labels, unit=unit)
    return tuple(
        np.concatenate([getattr(each, name).ravel() for each in shapes.values()])
        for name in ("values", "stderr")
    )


def predictions_of(task, fit):
    """Scores of rows like those that were learnt from, and their standard errors."""
    queries = keys_of(seed=1, rows=400)
    if task in {"numbers", "labels"}:
        layout, squared = fit.released.layout, task == "numbers"
        centre, reach = (layout.centre[0], layout.reach[0]) if squared else (0.0, 1.0)
        return centre + reach * fit.scores(queries)[:, 0], fit.stderr(queries)[:, 0]
    logits, error = fit.logits(queries), fit.stderr(queries)[:, 0]
    if "two classes" in task:
        return logits[:, 1] - logits[:, 0], error * np.sqrt(2)
    wide = np.repeat(error[:, None] * np.sqrt(2 / 3), 3, axis=1)
    return logits.ravel(), wide.ravel()


def held(what, task, *, longer=1.0, epsilon=1.0):
    """How many of all 95% intervals of all fits hold what a fit without noise says."""
    truth = what(task, fitted(task, None, epsilon))[0]
    shares = []
    for seed in range(FITS):
        values, errors = what(task, fitted(task, seed, epsilon))
        assert np.all(errors > 0)
        shares.append(np.mean(np.abs(values - truth) <= Z * longer * errors))
    return float(np.mean(shares))


SHORT = pytest.mark.xfail(reason="the noise of the factor on the logits is in no bar", strict=True)
# Just above, or just below: which of both changes with any change of what is found.
LONG = pytest.mark.xfail(reason="bars are 1.4 times as long as errors: 99% hold", strict=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "what"),
    [
        ("two classes", steps_of),
        ("two classes", predictions_of),
        ("three classes", steps_of),
        ("three classes", predictions_of),
        ("numbers", steps_of),
        pytest.param("numbers", predictions_of, marks=LONG),
        pytest.param("two classes, far apart", steps_of, marks=SHORT),
        pytest.param("two classes, far apart", predictions_of, marks=SHORT),
        ("labels", steps_of),
        ("labels", predictions_of),
    ],
)
def test_nineteen_of_twenty_intervals_hold_and_no_others_would_do(task, what):
    assert LEAST <= held(what, task) <= MOST
    assert held(what, task, longer=0.5) < LEAST
    assert held(what, task, longer=2.0) > MOST
