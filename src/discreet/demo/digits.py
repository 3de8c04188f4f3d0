"""Private attention on handwritten digits: no training, one memory for each ε.

Each test image attends to the private training images; the value of a row is its class, one-hot
less 0.1, so that the ten numbers of an answer are votes. Temperature, τ and features are `build`'s
own, from ε, δ, a public number of rows and dimensions.
"""

import math
import warnings
from dataclasses import dataclass, replace

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
        self, epsilon: float, *, scale: float | None = None, entropy: Entropy | None = None
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


def private_accuracy(data: list[Split], epsilon: float, *, entropy: Entropy | None = None) -> Mean:
    """Return the accuracy of private memories, one for each split."""
    memories = (each.memory(epsilon, entropy=entropy) for each in data)
    return mean_of(
        epsilon,
        [
            each.accuracy(memory.attend(each.queries))
            for each, memory in zip(data, memories, strict=True)
        ],
    )


def quiet_accuracy(data: list[Split], epsilon: float) -> Mean:
    """Return the accuracy of the same memories without their noise. NOT PRIVATE."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # which is what it is for
        return private_accuracy(data, epsilon, entropy=Silent())


def exact_accuracy(data: list[Split], at: float, scale: float) -> Mean:
    """Return the accuracy of exact attention at one temperature. NOT PRIVATE."""
    return mean_of(at, [each.accuracy(each.exact(scale)) for each in data])


def error(data: list[Split], *, at: float, epsilon: float, scale: float) -> Mean:
    """Return the root mean square of private less exact answers. NOT PRIVATE."""
    return mean_of(
        at,
        [
            math.sqrt(np.mean((memory.attend(each.queries) - each.exact(scale)) ** 2))
            for each, memory in ((one, one.memory(epsilon, scale=scale)) for one in data)
        ],
    )


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


def mean_of(at: float, found: list[float]) -> Mean:
    """Return the mean of what was found on several splits."""
    spread = float(np.std(found, ddof=1)) / math.sqrt(len(found))
    return Mean(at, float(np.mean(found)), spread)
