"""Calibration after the last round: how sure the classifier is, and how often it is right.

Noisy steps leave logits that are too large or too small as a whole. So there is one more small
release: for each of a few factors a, the sum over rows of [the class is right] - max
softmax(a·logits). Where it is zero, the classifier is right as often as it says. The number of rows
of each class is released with it.

Both are added up as if they were the values of a memory whose keys are all the same: so the bounds,
the treatment of records and the proof are the memory's.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet._typing import Array, Floats
from discreet.features.linear import UnitLinear
from discreet.noise import RoundedGaussian
from discreet.readers.softmax.layout import Round, Rounds, probabilities
from discreet.sums.layout import ValueLayout
from discreet.sums.release import Released
from discreet.sums.settings import Shape, Unit, unit_sensitivity
from discreet.sums.source import Index, Table

# log₂ of the factors: from a quarter to nearly three.
_FACTORS = np.arange(-4, 4) / 2.0

# So many features are in memory at a time.
_FEATURES_AT_ONCE = 2**21

# How strongly the factor is pulled to one, in units of noise: it changes if the rows say so.
_PULL = 2.0


@dataclass(frozen=True, kw_only=True)
class Calibration(ValueLayout):
    """The layout of the calibration: values of norm 3, and the same key for all rows."""

    noun: ClassVar[tuple[str, str]] = ("calibration", "calibrations")

    @classmethod
    def of(cls, rounds: Rounds) -> "Calibration":
        """Return the layout for as many classes, on as fine a lattice."""
        # Each of the differences is within ±1, and a row has one label.
        norm = math.sqrt(len(_FACTORS) + 1)
        return cls(
            kernel=UnitLinear(1),
            heads=(),
            value_dim=len(_FACTORS) + rounds.columns,
            value_norm=norm,
            tau=norm / 1000,
            resolution=rounds.resolution,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Confidence(Table):
    """A table of rows with what the classifier makes of each, in place of its label. PRIVATE.

    Attributes:
        keys: shape (n, d).
        values: the place of each label, shape (n, 1).
        table: the same, with its features if they were kept.
        layout: with W.
    """

    table: Table
    layout: Round

    @classmethod
    def of(cls, table: Table, layout: Round) -> "Confidence":
        """Return what the classifier with this W makes of a table."""
        return cls(table.keys, table.values, table, layout)

    @cached_property
    def shape(self) -> Shape:
        """Keys are one zero; values are the differences, and the classes."""
        return Shape(heads=(), key_dim=1, value_dim=len(_FACTORS) + self.layout.columns)

    def read(self, index: Index) -> tuple[Array, Floats]:
        """Return zeros, shape (m, 1), and what is added up for each row, shape (m, 8 + C)."""
        rows = np.arange(self.rows)[index]
        values = np.empty((len(rows), self.shape.value_dim))
        # The one who asks knows nothing of features, and asks for many rows at a time.
        some = max(_FEATURES_AT_ONCE // self.layout.kernel.features, 1)
        memory = np.empty(min(some, len(rows)) * self.layout.kernel.features)
        for start in range(0, len(rows), some):
            keys, places = self.table.read(rows[start : start + some])
            features, _ = self.table.features(self.layout, keys, memory)
            values[start : start + some] = _confidence(self.layout, features[0], places[:, 0])
        return np.zeros((len(rows), 1)), values


def _confidence(layout: Round, features: Floats, places: Floats) -> Floats:
    """Return [right] - max p for each factor, and the label as one of C: row by row, to the bit."""
    logits, unit = layout.logits(features)
    labels = places.astype(np.int64)
    right = np.argmax(logits, axis=1) == labels
    values = np.zeros((len(labels), len(_FACTORS) + layout.columns))
    for column, exponent in enumerate(_FACTORS):
        sure = np.max(probabilities(logits, unit=unit / 2.0**exponent), axis=1)
        values[:, column] = right - sure
    values[np.arange(len(labels)), len(_FACTORS) + labels] = 1.0
    return values


def factor(differences: Floats, noise: float) -> float:
    """Return what logits are to be multiplied by, such that the classifier is as sure as right.

    Differences fall with the factor; where noise says otherwise, the nearest sequence that falls is
    taken. Post-processing.

    Args:
        differences: noisy sums of [right] - max p, one for each factor.
        noise: their standard deviation.
    """
    from scipy.optimize import isotonic_regression  # loads slowly, and is needed once

    pulled = differences - _PULL * noise * _FACTORS
    falling = np.asarray(isotonic_regression(pulled, increasing=False).x)
    # The last that is positive; at an end, the end.
    above = int(np.sum(falling > 0))
    if above in {0, len(_FACTORS)}:
        return float(2.0 ** _FACTORS[max(above - 1, 0)])
    left, right = falling[above - 1], falling[above]
    step = _FACTORS[above] - _FACTORS[above - 1]
    return float(2.0 ** (_FACTORS[above - 1] + step * left / (left - right)))


def totals_stderr(released: Released[Rounds]) -> float:
    """Return the standard error of the released totals of classes."""
    layout = Calibration.of(released.layout)
    guarantee = released.guarantee
    sensitivity = unit_sensitivity(
        layout, guarantee.neighbours, Unit(guarantee.unit), released.group_rows
    )
    sigma = released.mechanism.sigma * sensitivity / math.sqrt(released.layout.judging)
    return math.sqrt(RoundedGaussian(sigma=sigma).variance) * layout.real_unit


def split(sums: Floats) -> tuple[Floats, Floats]:
    """Return the differences and the totals of classes in the sums of such values."""
    return sums[: len(_FACTORS)], sums[len(_FACTORS) :]
