"""What a reader is: one way to release private rows, and to answer from the release."""

import abc
from dataclasses import dataclass, field
from typing import Any, ClassVar

from discreet._typing import Array, Floats
from discreet.memory import Memory
from discreet.noise import Entropy
from discreet.regression import LeastSquares, QueryMap

Release = Memory | LeastSquares


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Keys, values and the record of each row. PRIVATE.

    Attributes:
        keys: shape (n, d).
        values: shape (n, k).
        groups: shape (n,); None if each row is its own record.
    """

    keys: Floats
    values: Floats
    groups: Array


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public terms of a release: `discreet.build` and `discreet.least_squares` check them.

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
    """

    epsilon: float
    delta: float
    neighbours: str
    key_norm: float
    value_norm: float
    rows_hint: int | None
    public_rows: Array = field(repr=False)
    features: str | QueryMap
    ridge: float
    group_rows: float
    classes: int | None

    @property
    def of_any_release(self) -> dict[str, Any]:
        """What `discreet.build` and `discreet.least_squares` both take, by name."""
        names = (
            "epsilon",
            "delta",
            "neighbours",
            "key_norm",
            "value_norm",
            "rows_hint",
            "group_rows",
        )
        return {name: getattr(self, name) for name in names}


class Reader(abc.ABC):
    """One way to release rows, once, and to answer from the release, as often as anybody likes."""

    name: ClassVar[str]

    @abc.abstractmethod
    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return a release of the rows, private as the terms say."""

    @abc.abstractmethod
    def scores(self, release: Release, queries: Floats) -> Floats:
        """Return how much speaks for each class, around zero: queries (m, d) to (m, C)."""

    @abc.abstractmethod
    def numbers(self, release: Release, queries: Floats) -> Floats:
        """Return predicted values: queries (m, d) to (m, k)."""

    @abc.abstractmethod
    def noise(self, release: Release, queries: Floats) -> Floats:
        """Return the standard error that the noise gives to each of `numbers`, shape (m, k)."""
