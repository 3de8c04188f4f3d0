"""Private estimators with the interface of scikit-learn. Needs the extra `sklearn`.

Follow a row through the files: `classifier` or `regressor` (the front doors) → `estimator` (a fit
and what is public about it) with `ranges`, `columns` (rows become keys), `targets` (labels and
numbers become values) and `leaks` (what had to be taken from the data) → `readers` (which one, by
a public rule) → `reading` (what a reader is), `averaging` (on the `sphere`) and `solving`.
`pickles` keeps a release, `page` shows it.
"""

from discreet.sklearn.classifier import PrivateClassifier
from discreet.sklearn.regressor import PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
