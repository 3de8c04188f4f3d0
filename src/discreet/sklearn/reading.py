"""What a reader is: one way to release private rows, and to answer from the release."""

import abc
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from discreet._typing import Array, Floats
from discreet.features.base import SymmetricMap
from discreet.noise import Entropy
from discreet.readers.loading import Readable
from discreet.sklearn.targets import Labels, Targets

Release = Readable


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Keys, targets and the record of each row. PRIVATE.

    Attributes:
        keys: shape (n, d).
        given: labels or numbers, as they were given, shape (n,) or (n, k).
        targets: how these become values. Public.
        groups: shape (n,); None if each row is its own record.
    """

    keys: Floats
    given: Array
    targets: Labels | Targets
    groups: Array

    @property
    def values(self) -> Floats:
        """Targets as values of a known length, shape (n, k)."""
        return self.targets.values(self.given)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public terms of a release: whoever makes it checks them.

    Attributes:
        epsilon: of the guarantee.
        delta: of the guarantee.
        neighbours: of the guarantee.
        key_norm: bound on keys and queries.
        value_norm: bound on values.
        rows_hint: a public number of rows, if there is one.
        public_rows: mapped as the keys are, shape (n, d), if there are any.
        features: for least squares, and for votes: a name, or a map.
        ridge: how much least squares shrinks.
        group_rows: the influence of a record.
        classes: how many there are; None for regression.
        leaks: names of what was taken from the rows.
    """

    epsilon: float
    delta: float
    neighbours: str
    key_norm: float
    value_norm: float
    rows_hint: int | None
    public_rows: Array = field(repr=False)
    features: str | SymmetricMap
    ridge: float
    group_rows: float
    classes: int | None
    leaks: tuple[str, ...] = ()

    @property
    def of_any_classifier(self) -> dict[str, Any]:
        """What `discreet.softmax_regression` takes, too, by name."""
        names = ("epsilon", "delta", "neighbours", "key_norm", "rows_hint", "group_rows", "leaks")
        return {name: getattr(self, name) for name in names}

    @property
    def of_any_release(self) -> dict[str, Any]:
        """What `discreet.build` and `discreet.least_squares` both take, by name."""
        return {**self.of_any_classifier, "value_norm": self.value_norm}


class Reader(abc.ABC):
    """One way to release rows, once, and to answer from the release, as often as anybody likes."""

    name: ClassVar[str]

    @abc.abstractmethod
    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return a release of the rows, private as the terms say."""

    @abc.abstractmethod
    def scores(self, release: Release, queries: Floats) -> Floats:
        """Return how much speaks for each class, around zero: queries (m, d) to (m, C)."""

    def probabilities(self, release: Release, queries: Floats) -> Floats:
        """Return something like probabilities, shape (m, C): rows sum to one.

        max(score + 1/C, 0), divided by the sum over classes: a public function of the scores, that
        never reverses their order.
        """
        scores = self.scores(release, queries)
        scores -= scores.mean(axis=1, keepdims=True)
        # Scores have mean zero, so the largest is at least 1/C.
        positive = np.maximum(scores + 1 / scores.shape[1], 0.0)
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))


class NumberReader(Reader):
    """A reader that predicts numbers, too."""

    @abc.abstractmethod
    def numbers(self, release: Release, queries: Floats) -> Floats:
        """Return predicted values: queries (m, d) to (m, k)."""

    @abc.abstractmethod
    def noise(self, release: Release, queries: Floats) -> Floats:
        """Return the standard error that the noise gives to each of `numbers`, shape (m, k)."""
