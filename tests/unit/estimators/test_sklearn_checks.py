"""scikit-learn's own checks of its interface, on both estimators."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.testing import Silent

# Nobody is protected here, and nothing public is given: the checks make up their own data.
pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning"),
]

EPSILON, DELTA = 500.0, 1e-5

# Two fits are two draws of noise, and these compare them to the last digits. Without noise they
# pass, below.
COMPARE_TWO_FITS = {
    "check_fit_idempotent": "compares a fit with a second one of the same rows",
    "check_supervised_y_2d": "compares a fit of y with one of y as a column",
    "check_regressor_data_not_an_array": "compares fits of an array and of something like one",
    "check_regressors_int": "compares fits of whole numbers and of the same numbers as floats",
}


@parametrize_with_checks(
    [
        PrivateClassifier(EPSILON, DELTA, entropy=Silent()),
        PrivateRegressor(EPSILON, DELTA, entropy=Silent()),
        PrivateClassifier(EPSILON, DELTA, entropy=Silent(), reader="average"),
        PrivateClassifier(EPSILON, DELTA, entropy=Silent(), reader="least_squares"),
    ]
)
def test_all_checks_pass_without_noise(estimator, check):
    check(estimator)


def failing(estimator):
    """What cannot pass with noise, one by one, with the reason."""
    labels = isinstance(estimator, PrivateClassifier)
    names = {"check_fit_idempotent", "check_supervised_y_2d"} if labels else COMPARE_TWO_FITS
    return {name: COMPARE_TWO_FITS[name] for name in names}


@parametrize_with_checks(
    [PrivateClassifier(EPSILON, DELTA), PrivateRegressor(EPSILON, DELTA)],
    expected_failed_checks=failing,
    xfail_strict=False,  # two draws may agree
)
def test_checks_pass_with_noise_but_for_those_that_compare_two_fits(estimator, check):
    check(estimator)
