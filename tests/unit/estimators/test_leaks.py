"""What is missing is taken from the data with one warning that says so."""

import warnings

import numpy as np
import pytest

from discreet import PrivacyLeakWarning

pytest.importorskip("sklearn")

from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.sklearn.estimator import one_digit

X = np.random.default_rng(0).uniform(0, 9, (230, 3))
LABELS = X[:, 0].astype(int) // 3
PUBLIC = {"bounds": (0, 9), "classes": [0, 1, 2], "rows_hint": 200}


def caught(estimator, y, **fit):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        estimator.fit(X, y, **fit)
    return [(each.category, str(each.message), each.filename) for each in seen]


def test_whoever_says_all_is_not_warned():
    assert caught(PrivateClassifier(1, 1e-5, **PUBLIC), LABELS) == []
    regressor = PrivateRegressor(1, 1e-5, bounds=(0, 9), target_bounds=(0, 9))
    assert caught(regressor, X[:, 0]) == []
    assert regressor.leaks_ == ()


@pytest.mark.parametrize(
    ("missing", "taken", "remedy"),
    [
        ("bounds", "smallest and the largest number of each column", "bounds=(low, high), or norm"),
        ("classes", "list of labels", "classes=["),
        ("rows_hint", "number of rows, rounded to one digit", "rows_hint="),
    ],
)
def test_each_thing_that_is_missing_is_named_with_its_remedy(missing, taken, remedy):
    public = {name: value for name, value in PUBLIC.items() if name != missing}
    estimator = PrivateClassifier(1, 1e-5, reader="least_squares", **public)
    [(category, message, filename)] = caught(estimator, LABELS)
    assert category is PrivacyLeakWarning
    assert taken in message
    assert remedy in message
    assert filename == __file__
    assert estimator.leaks_ == (missing,)
    for name in set(PUBLIC) - {missing}:
        assert f"{name}=" not in message


def test_there_is_one_warning_for_all_of_them():
    estimator = PrivateClassifier(1, 1e-5, reader="average")
    [(_, message, _)] = caught(estimator, LABELS)
    assert estimator.leaks_ == ("bounds", "classes", "rows_hint")
    assert message.count("(give ") == 3
    regressor = PrivateRegressor(1, 1e-5, reader="average")
    [(_, message, _)] = caught(regressor, X[:, 0])
    assert regressor.leaks_ == ("bounds", "target_bounds", "rows_hint")
    assert "largest target" in message


def test_no_number_of_the_data_is_in_a_warning():
    [(_, message, _)] = caught(PrivateRegressor(1, 1e-5), X[:, 0])
    for number in (X.min(), X.max(), len(X)):
        assert f"{number:.3g}" not in message


def test_bounds_from_the_data_are_those_of_the_data():
    estimator = PrivateClassifier(1, 1e-5, classes=[0, 1, 2], rows_hint=200)
    caught(estimator, LABELS)
    np.testing.assert_array_equal(estimator._columns.ranges.low, X.min(0))
    np.testing.assert_array_equal(estimator._columns.ranges.high, X.max(0))


def test_the_number_of_rows_is_rounded_and_under_replace_public():
    public = {"bounds": (0, 9), "classes": [0, 1, 2], "reader": "least_squares"}
    estimator = PrivateClassifier(1, 1e-5, **public)
    caught(estimator, LABELS)
    assert estimator.release_.released.rows_hint == 200
    replaced = PrivateClassifier(1, 1e-5, neighbours="replace", **public)
    assert caught(replaced, LABELS) == []
    assert replaced.release_.released.rows_hint == 230
    replaced = PrivateClassifier(1, 1e-5, neighbours="replace", **public)
    # The number of records is public then, the number of rows is not.
    [(_, message, _)] = caught(replaced, LABELS, groups=np.arange(230) // 2)
    assert "number of rows" in message
    assert replaced.release_.released.rows_hint == 200


def test_rounds_do_not_have_to_know_how_many_rows_there_are():
    estimator = PrivateClassifier(1, 1e-5, bounds=(0, 9), classes=[0, 1, 2])
    assert caught(estimator, LABELS) == []
    assert estimator.reader_ == "rounds"
    assert estimator.release_.released.rows_hint is None


def test_nothing_is_released_if_a_warning_is_an_error():
    estimator = PrivateClassifier(1, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyLeakWarning):
            estimator.fit(X, LABELS)
    assert not hasattr(estimator, "release_")


def test_one_digit():
    rounded = {1: 1, 9: 9, 14: 10, 15: 20, 99: 100, 149: 100, 44_842: 40_000, 951_000: 1_000_000}
    assert {rows: one_digit(rows) for rows in rounded} == rounded
