"""Private attention on handwritten digits: no training, one memory for each ε.

Each test image attends to the private training images; the value of a row is its class, one-hot
less 0.1, so that the ten numbers of an answer are votes. Temperature, τ and features are `build`'s
own, from ε, δ, a public number of rows and dimensions.

It is compared with other private readers, and with what nobody's privacy limits. What is not
private is a ceiling: its settings were chosen on the test images, which flatters it.
"""

import json
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._api import build
from discreet._typing import Floats
from discreet.errors import DiscreetError, NotPrivateWarning
from discreet.noise import Entropy
from discreet.readers.attention import comparison as oracle
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.planning import Plan, plan
from discreet.testing import Silent

DELTA = 1e-5
SPLITS = 8
ROWS_HINT = 1350  # three quarters of the data set, whose size is public
VALUE_NORM = math.sqrt(0.9)  # of every one-hot vector less 0.1, whatever the class

# Temperatures that exact attention is tried at; the best one has others on both sides.
_SCALES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)


@dataclass(frozen=True)
class Mean:
    """A mean over splits and its standard error, at some ε or number of rows."""

    at: float
    mean: float
    stderr: float


@dataclass(frozen=True)
class Split:
    """Training and test images of one split, with classes.

    Attributes:
        keys: training images, of length one.
        values: their classes, one-hot less 0.1.
        queries: test images, of length one.
        classes: of the test images.
        pixels: of the test images, between 0 and 1, to be looked at.
    """

    keys: Floats
    values: Floats
    queries: Floats
    classes: NDArray[np.int64]
    pixels: Floats

    @property
    def labels(self) -> NDArray[np.int64]:
        """The classes of the training images."""
        return np.asarray(np.argmax(self.values, axis=1))

    def accuracy(self, answers: Floats) -> float:
        """Return how often the largest vote is right."""
        return self.share_right(np.argmax(answers, axis=1))

    def share_right(self, guesses: NDArray[np.int64]) -> float:
        """Return how often a guess at a test image's class is right."""
        return float(np.mean(guesses == self.classes))

    def exact(self, scale: float) -> Floats:
        """Return the answers of exact attention to all test images. NOT PRIVATE."""
        return oracle.attention(self.queries, self.keys, self.values, scale=scale)

    def first(self, rows: int) -> "Split":
        """Return the same with the first training images only."""
        return replace(self, keys=self.keys[:rows], values=self.values[:rows])

    def memory(
        self,
        epsilon: float,
        *,
        scale: float | None = None,
        entropy: Entropy | None = None,
        stated: Mapping[str, str] | None = None,
    ) -> Memory:
        """Return a memory of the training images."""
        return build(
            self.keys,
            self.values,
            epsilon=epsilon,
            delta=DELTA,
            value_norm=VALUE_NORM,
            rows_hint=ROWS_HINT,
            scale=scale,
            entropy=entropy,
            stated=stated,
        )


def splits(count: int = SPLITS) -> list[Split]:
    """Return the digits, unit-normalised, in several random splits with a quarter for tests."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        raise DiscreetError(
            "The digits come with scikit-learn: pip install 'discreet[sklearn]'."
        ) from None
    images, classes = load_digits(return_X_y=True)
    keys = images / 16 - 0.5
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    values = np.eye(10)[classes] - 0.1
    made = []
    for seed in range(count):
        train, test = train_test_split(np.arange(len(keys)), test_size=0.25, random_state=seed)
        made.append(Split(keys[train], values[train], keys[test], classes[test], images[test] / 16))
    return made


def mean_of(data: list[Split], at: float, measure: Callable[[Split], float]) -> Mean:
    """Return the mean of what is measured on several splits.

    Args:
        data: the splits.
        at: the ε or number of rows that it is measured at.
        measure: returns what one split has.
    """
    found = [measure(each) for each in data]
    stderr = float(np.std(found, ddof=1)) / math.sqrt(len(found))
    return Mean(at, float(np.mean(found)), stderr)


def private_accuracy(data: list[Split], epsilon: float, *, entropy: Entropy | None = None) -> Mean:
    """Return the accuracy of private memories, one for each split."""

    def accuracy(split: Split) -> float:
        return split.accuracy(split.memory(epsilon, entropy=entropy).attend(split.queries))

    return mean_of(data, epsilon, accuracy)


def quiet_accuracy(data: list[Split], epsilon: float) -> Mean:
    """Return the accuracy of the same memories without their noise. NOT PRIVATE."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # which is what it is for
        return private_accuracy(data, epsilon, entropy=Silent())


def exact_accuracy(data: list[Split], at: float, scale: float) -> Mean:
    """Return the accuracy of exact attention at one temperature. NOT PRIVATE."""
    return mean_of(data, at, lambda split: split.accuracy(split.exact(scale)))


def learnt_accuracy(data: list[Split], epsilon: float, *, reader: str) -> Mean:
    """Return the accuracy of `PrivateClassifier`, told public numbers only.

    Args:
        data: the splits.
        epsilon: of each fit.
        reader: "rounds" or "least_squares".
    """
    from discreet.sklearn import PrivateClassifier

    options: dict[str, Any] = {"norm": 1.0, "rows_hint": ROWS_HINT, "reader": reader}
    return _fitted_accuracy(
        data, epsilon, lambda: PrivateClassifier(epsilon, DELTA, classes=range(10), **options)
    )


def dpsgd_accuracy() -> list[Mean]:
    """Return what DP-SGD reaches, as `benchmarks/dpsgd.py` measured it."""
    stored = json.loads(resources.files(__package__).joinpath("dpsgd.json").read_text())
    return [Mean(each["epsilon"], each["accuracy"], each["stderr"]) for each in stored["results"]]


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
    from sklearn.linear_model import RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    classifiers = {
        "a support vector machine": lambda: SVC(C=10, gamma=4),
        "three nearest neighbours": lambda: KNeighborsClassifier(3),
        "ridge regression": RidgeClassifier,
    }
    found = {name: _fitted_accuracy(data, 0.0, make) for name, make in classifiers.items()}
    name = max(found, key=lambda each: found[each].mean)
    attention = [exact_accuracy(data, scale, scale) for scale in _SCALES]
    return Ceilings(
        classifier=found[name],
        classifier_name=name,
        attention=max(attention, key=lambda each: each.mean),
        constant=mean_of(data, 0.0, _constant_accuracy),
    )


def _fitted_accuracy(data: list[Split], at: float, make: Callable[[], Any]) -> Mean:
    """Return the accuracy of an estimator of scikit-learn that is fitted to each split."""

    def accuracy(split: Split) -> float:
        model = make().fit(split.keys, split.labels)
        return split.share_right(model.predict(split.queries))

    return mean_of(data, at, accuracy)


def _constant_accuracy(split: Split) -> float:
    return split.share_right(np.full(len(split.classes), np.bincount(split.labels).argmax()))


def error(data: list[Split], *, at: float, epsilon: float, scale: float) -> Mean:
    """Return the root mean square of private less exact answers. NOT PRIVATE."""

    def one_error(split: Split) -> float:
        answers = split.memory(epsilon, scale=scale).attend(split.queries)
        return math.sqrt(np.mean((answers - split.exact(scale)) ** 2))

    return mean_of(data, at, one_error)


def predicted(*, rows: int, epsilon: float, scale: float | None) -> Plan:
    """Return what `plan` says about a memory of so many digits."""
    return plan(
        rows=rows,
        key_dim=64,
        value_dim=10,
        epsilon=epsilon,
        delta=DELTA,
        value_norm=VALUE_NORM,
        scale=scale,
    )
