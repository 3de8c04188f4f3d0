"""Fit diffprivlib to one split and print what it predicts, as JSON: a helper of `estimators.py`.

It runs in an environment of its own: pip install diffprivlib 'scikit-learn<1.6'.
"""

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression


def main() -> None:
    """Read a split, predict the test rows at every ε, print."""
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as split:
        train_x, train_y, test_x = (split[name] for name in ("train_x", "train_y", "test_x"))
        target_bounds, epsilons = tuple(split["target_bounds"].tolist()), split["epsilons"]
        seed = int(split["seed"])
    # Columns are within ±1/√d, or rows have length one.
    side = 1 / np.sqrt(train_x.shape[1])
    found = []
    for epsilon in epsilons.tolist():
        if target_bounds:
            model = LinearRegression(
                epsilon=epsilon, bounds_X=(-side, side), bounds_y=target_bounds, random_state=seed
            )
        else:
            # Rows are of length one at the most; it adds the intercept itself.
            model = LogisticRegression(
                epsilon=epsilon, data_norm=1.0, max_iter=300, random_state=seed
            )
        found.append(model.fit(train_x, train_y).predict(test_x).tolist())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
