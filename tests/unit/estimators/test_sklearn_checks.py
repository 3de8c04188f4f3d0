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
    "check_fit_idempotent",
    "check_regressor_data_not_an_array",
    "check_supervised_y_2d",
    "check_regressors_int",
}


@parametrize_with_checks(
    [
        PrivateClassifier(EPSILON, DELTA, entropy=Silent()),
        PrivateRegressor(EPSILON, DELTA, entropy=Silent()),
        PrivateClassifier(EPSILON, DELTA, entropy=Silent(), reader="average"),
    ]
)
def test_all_checks_pass_without_noise(estimator, check):
    check(estimator)


@parametrize_with_checks([PrivateClassifier(EPSILON, DELTA), PrivateRegressor(EPSILON, DELTA)])
def test_checks_of_one_fit_pass_with_noise(estimator, check):
    if check.func.__name__ not in COMPARE_TWO_FITS:
        check(estimator)
