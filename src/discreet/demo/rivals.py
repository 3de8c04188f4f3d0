"""What the memory is compared with: other private readers, and what nobody's privacy limits.

What is not private is a ceiling: its settings were chosen on the test images, which flatters it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

import numpy as np

from discreet.demo import digits
from discreet.demo.digits import Mean, Split

# Temperatures that exact attention is tried at; the best one has others on both sides.
_SCALES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)


@dataclass(frozen=True)
class Ceilings:
    """What can be reached without privacy, and without looking at the images. NOT PRIVATE.

    Attributes:
        classifier: accuracy of the best of some classifiers.
        classifier_name: which one that is.
        attention: accuracy of exact attention at its best temperature; `at` is its scale.
        constant: accuracy of always naming the class that is most frequent.
    """

    classifier: Mean
    classifier_name: str
    attention: Mean
    constant: Mean


def ceilings(data: list[Split]) -> Ceilings:
    """Return what others reach without privacy."""
    classifiers = {name: _of_classifier(data, make) for name, make in _classifiers().items()}
    name = max(classifiers, key=lambda each: classifiers[each].mean)
    return Ceilings(
        classifier=classifiers[name],
        classifier_name=name,
        attention=max(
            (digits.exact_accuracy(data, scale, scale) for scale in _SCALES),
            key=lambda each: each.mean,
        ),
        constant=digits.mean_of(0.0, [_of_constant(each) for each in data]),
    )


def learnt_accuracy(data: list[Split], epsilon: float, *, reader: str) -> Mean:
    """Return the accuracy of `PrivateClassifier`, told public numbers only.

    Args:
        data: the splits.
        epsilon: of each fit.
        reader: "rounds" or "least_squares".
    """
    from discreet.sklearn import PrivateClassifier

    found = []
    for each in data:
        model = PrivateClassifier(
            epsilon,
            digits.DELTA,
            classes=range(10),
            norm=1.0,
            rows_hint=digits.ROWS_HINT,
            reader=reader,
        )
        model.fit(each.keys, each.labels)
        found.append(each.share_right(model.predict(each.queries)))
    return digits.mean_of(epsilon, found)


def dpsgd_accuracy() -> list[Mean]:
    """Return what DP-SGD reaches, as `benchmarks/dpsgd.py` measured it."""
    stored = json.loads(resources.files("discreet.demo").joinpath("dpsgd.json").read_text())
    return [Mean(each["epsilon"], each["accuracy"], each["stderr"]) for each in stored["results"]]


def _classifiers() -> dict[str, Callable[[], object]]:
    from sklearn.linear_model import RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    return {
        "a support vector machine": lambda: SVC(C=10, gamma=4),
        "three nearest neighbours": lambda: KNeighborsClassifier(3),
        "ridge regression": RidgeClassifier,
    }


def _of_classifier(data: list[Split], make: Callable[[], object]) -> Mean:
    found = []
    for each in data:
        model = make()
        model.fit(each.keys, each.labels)  # type: ignore[attr-defined] # sklearn has no types
        found.append(each.share_right(model.predict(each.queries)))  # type: ignore[attr-defined]
    return digits.mean_of(0.0, found)


def _of_constant(data: Split) -> float:
    return data.share_right(np.full(len(data.classes), np.bincount(data.labels).argmax()))
