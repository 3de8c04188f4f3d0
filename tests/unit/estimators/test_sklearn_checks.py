"""scikit-learn's own checks of its interface, on both estimators."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.testing import Silent

# Nobody is protected here, and nothing public is given: the checks make up their own data.
pytestmark = pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")

EPSILON, DELTA = 500.0, 1e-5

EXPECTED_FAILURES = {}


@parametrize_with_checks(
    [PrivateClassifier(EPSILON, DELTA, entropy=Silent()), PrivateRegressor(EPSILON, DELTA, entropy=Silent())],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator), {}),
)
def test_scikit_learn(estimator, check):
    check(estimator)
