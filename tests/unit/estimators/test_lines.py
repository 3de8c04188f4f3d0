"""Slopes and intercepts of estimators whose scores are straight lines of their rows."""

import numpy as np
import pytest

from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.testing import Silent

X = np.random.default_rng(0).uniform(1, 3, (400, 3))
TRUE = np.array([1.0, -2.0, 0.5])
Y = X @ TRUE + 3
LOW, HIGH = np.array([0.5, 0.5, 0.5]), np.array([3.5, 3.5, 3.4])
pytestmark = pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")


@pytest.mark.parametrize("reader", ["least_squares", "rounds"])
@pytest.mark.parametrize("known", [{"norm": 6.0}, {"bounds": (LOW, HIGH)}])
def test_predictions_are_the_line_that_is_told(reader, known):
    public = {"target_bounds": (-5, 8), "features": "linear", "rows_hint": 400, **known}
    made = PrivateRegressor(4.0, 1e-5, reader=reader, entropy=Silent(), **public).fit(X, Y)
    assert made.coef_.shape == (1, 3)
    np.testing.assert_allclose(X @ made.coef_[0] + made.intercept_[0], made.predict(X), rtol=1e-5)


def test_scores_of_classes_are_the_line_that_is_told():
    made = PrivateClassifier(
        4.0, 1e-5, norm=6.0, classes=[0, 1], features="linear", rows_hint=400, entropy=Silent()
    ).fit(X, (Y > 3).astype(int))
    told = X @ made.coef_[0] + made.intercept_[0]
    np.testing.assert_allclose(told, made.decision_function(X), rtol=1e-6, atol=1e-6)


def test_what_is_no_line_has_no_slope():
    public = {"target_bounds": (-5, 8), "rows_hint": 400}
    made = PrivateRegressor(4.0, 1e-5, bounds=(0, 4), features="linear", entropy=Silent(), **public)
    assert not hasattr(made.fit(X, Y), "coef_")
