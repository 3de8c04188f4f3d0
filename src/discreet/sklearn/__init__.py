"""Private estimators with the interface of scikit-learn. Needs the extra `sklearn`.

A fit is one release; which reader makes it, and with which features, follows from public numbers.
"""

from discreet.sklearn.classifier import PrivateClassifier
from discreet.sklearn.regressor import PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
