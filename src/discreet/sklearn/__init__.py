"""Private estimators with the interface of scikit-learn. Needs the extra `sklearn`.

Follow a row through the files: `classifier` or `regressor` (the front doors) → `estimator` (a fit
is one release, what is public about it, and what had to be taken from the data) with `columns`
(rows become keys) and `targets` (labels and numbers become values), in public `ranges` → `readers`
(attention, least squares, softmax regression: which one, by a public rule).
"""

from discreet.sklearn.classifier import PrivateClassifier
from discreet.sklearn.regressor import PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
