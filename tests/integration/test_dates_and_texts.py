"""Dates, texts and masks in a table: refused by name of column, and what is advised works."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet import InvalidInput
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.testing import Silent

pytestmark = pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")

ROWS = 500
LABELS = np.arange(ROWS) % 2
X = np.zeros((ROWS, 1))
DAY = np.datetime64("2020-03-01")


def classifier(**more):
    known = {"classes": [0, 1], "bounds": (0, 4e15), "rows_hint": ROWS, "reader": "least_squares"}
    return PrivateClassifier(1.0, 1e-6, entropy=Silent(), **known | more)


def regressor(**more):
    known = {"bounds": (0, 1), "target_bounds": (0, 40_000), "rows_hint": ROWS}
    return PrivateRegressor(1.0, 1e-6, entropy=Silent(), **known | more)


def seen(last):
    """A column whose unit pandas chooses: by the finest of its dates."""
    dates = pd.Series(["2020-03-01 10:00:00"] * (ROWS - 1) + [last])
    return pd.DataFrame({"age": 1.5, "seen": pd.to_datetime(dates, format="ISO8601")})


@pytest.mark.parametrize("last", ["2020-03-01 10:00:00", "2020-03-01 10:00:00.000000001"])
def test_dates_in_x_are_refused_by_the_name_of_their_column(last):
    frame = seen(last)
    for table in (frame, frame[["seen"]], pl.from_pandas(frame)):
        with pytest.raises(InvalidInput, match=r"column 'seen' of X .*days since a fixed day"):
            classifier().fit(table, LABELS)
    spans = pd.DataFrame({"age": 1.5, "stay": frame["seen"] - frame["seen"][0]})
    with pytest.raises(InvalidInput, match="column 'stay' of X"):
        classifier().fit(spans, LABELS)


@pytest.mark.parametrize("last", [DAY, np.datetime64("2020-03-01T00:00"), np.datetime64("NaT")])
def test_dates_as_targets_are_refused(last):
    targets = [DAY] * (ROWS - 1) + [last]
    for given in (
        targets,
        np.array(targets),
        pd.Series(targets),
        pl.Series(np.array(targets, "M8[ms]")),
    ):
        with pytest.raises(InvalidInput, match=r"y .*days since a fixed day"):
            regressor().fit(X, given)
    with pytest.raises(InvalidInput, match="No dates"):
        classifier(classes=[DAY, DAY + 1]).fit(X, targets)


def test_one_text_among_numbers_is_refused():
    numbers = [np.float16(0.1)] * (ROWS - 1)
    with pytest.raises(InvalidInput, match=r"y .*public list"):
        regressor().fit(X, [*numbers, "0.1"])
    rows = [[each] for each in [*numbers, "0.1"]]
    with pytest.raises(InvalidInput, match=r"X .*public list"):
        classifier().fit(rows, LABELS)
    with pytest.raises(InvalidInput, match="column 'job' of X"):
        classifier().fit(pd.DataFrame({"age": 1.5, "job": ["clerk", "smith"] * 250}), LABELS)
    categories = pd.DataFrame({"age": 1.5, "job": pd.Categorical(["clerk", "smith"] * 250)})
    with pytest.raises(InvalidInput, match="column 'job' of X"):
        classifier().fit(categories, LABELS)


def test_masks_are_refused():
    masked = np.ma.array(X, mask=np.eye(ROWS, 1))
    for call in (
        lambda: classifier().fit(masked, LABELS),
        lambda: regressor().fit(X, masked[:, 0]),
    ):
        with pytest.raises(InvalidInput, match="without a mask"):
            call()


def test_a_number_that_each_row_computes_alone_is_taken_and_moves_nobody_else():
    def days(frame):
        since = frame["seen"] - pd.Timestamp("2020-01-01")
        return pd.DataFrame({"age": frame["age"], "days": since // pd.Timedelta(days=1)})

    made = [
        classifier(bounds=([0, 0], [120, 10_000])).fit(days(seen(last)), LABELS).release_.released
        for last in ("2020-03-01 10:00:00", "2020-03-01 10:00:00.000000001")
    ]
    np.testing.assert_array_equal(made[0].state, made[1].state)
    with pytest.raises(InvalidInput, match="column 'seen' of X"):
        classifier().fit(days(seen("2020-03-01")), LABELS).predict(
            pd.DataFrame({"age": [1.5], "seen": [pd.Timestamp("2020-03-01")]})
        )
