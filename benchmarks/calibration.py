"""How far a private classifier's confidence is from its accuracy, on rows that it has not seen.

Run: python benchmarks/calibration.py (three minutes; needs scikit-learn). It prints the table of
docs/classifier.md, "Probabilities".

Each line is the mean over splits, and noise of its own for each: accuracy; confidence, the mean of
the largest probability; the difference, with the standard deviation of one fit; and the expected
calibration error, Σ |confidence - accuracy| over ten bins of equally many rows.
"""

import argparse
import sys

import numpy as np
from estimators_data import CANCER_HIGH, WINE_HIGH
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split

from discreet.sklearn import PrivateClassifier
from discreet.testing import Seeded

EPSILONS = (0.5, 1.0, 4.0, 10.0)
BINS = 10
DATA = {
    "digits": (load_digits, (0, 16)),
    "breast cancer": (load_breast_cancer, (np.zeros(len(CANCER_HIGH)), np.array(CANCER_HIGH))),
    "wine": (load_wine, (np.zeros(len(WINE_HIGH)), np.array(WINE_HIGH))),
}


def expected_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the mean distance of confidence from accuracy over bins of equally many rows."""
    parts = np.array_split(np.argsort(confidence), BINS)
    distances = [abs(np.mean(confidence[part]) - np.mean(right[part])) for part in parts]
    return float(np.average(distances, weights=[len(part) for part in parts]))


def measured(name: str, epsilon: float, split: int) -> tuple[float, float, float]:
    """Return accuracy, confidence and expected calibration error of one fit on unseen rows."""
    load, bounds = DATA[name]
    rows, labels = load(return_X_y=True)
    train, test, of_train, of_test = train_test_split(
        rows, labels, test_size=0.25, random_state=split
    )
    model = PrivateClassifier(
        epsilon=epsilon,
        delta=1e-5,
        bounds=bounds,
        classes=np.unique(labels),
        entropy=Seeded(split),
    ).fit(train, of_train)
    shares = model.predict_proba(test)
    right = model.classes_[np.argmax(shares, axis=1)] == of_test
    confidence = np.max(shares, axis=1)
    return float(np.mean(right)), float(np.mean(confidence)), expected_error(confidence, right)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    splits = parser.parse_args(sys.argv[1:]).splits
    print("| data | ε | accuracy | confidence | confidence - accuracy | calibration error |")
    print("|---|---|---|---|---|---|")
    for name in DATA:
        for epsilon in EPSILONS:
            figures = np.array([measured(name, epsilon, split) for split in range(splits)])
            accuracy, confidence, error = figures.mean(axis=0)
            spread = np.std(figures[:, 1] - figures[:, 0], ddof=1)
            print(
                f"| {name} | {epsilon:g} | {accuracy:.3f} | {confidence:.3f} | "
                f"{confidence - accuracy:+.3f} ± {spread:.3f} | {error:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
