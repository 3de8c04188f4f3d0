"""What a row contributes to one round of softmax regression: its gradient q ⊗ a, in integers.

With W the coefficients so far, p = softmax(a·W) and q = p - e_y is the gradient of the row's loss
with respect to its logits, cut to a public length, exactly (`readers/rounds/layout.py`).

A row has the same q to the bit, wherever it stands. Exponentials come from a table, sums are of
integers, and the rest are single operations that IEEE 754 rounds in one way only: np.exp of a whole
array would give other last bits in other places of it. Privacy needs nothing else of p than that;
the bound on q is exact whatever p is.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Array, Floats, Integers
from discreet.features import registry
from discreet.features.linear import UnitLinear
from discreet.noise import RoundedGaussian
from discreet.noise.lattice import clip_integer_rows
from discreet.readers.rounds.layout import MOST_COLUMNS, RoundLayout, RoundsLayout
from discreet.readers.softmax.rows import check_classes
from discreet.sums.layout import ValueLayout
from discreet.sums.release import Released
from discreet.sums.settings import Shape, Unit, unit_sensitivity
from discreet.sums.source import Index, Table

# exp is tabulated at so many steps for each unit of a logit, down to e^-20: smaller ones are zero
# for whoever adds them up. Entries are whole numbers up to 2^30: sums over classes are exact.
_STEPS = 2**10
_DEEPEST = 20
_ONE = 2**30


def residuals(logits: Floats, labels: Integers, *, unit: float, bits: int, radius: int) -> Integers:
    """Return q of some rows, in units of 2^-bits, shape (m, C): Σ q² ≤ radius², exactly.

    Args:
        logits: integers stored as float64, shape (m, C).
        labels: the class of each row, from 0 on, shape (m,).
        unit: so many of the logits' units are one.
        bits: of the lattice that q is rounded to.
        radius: the bound on ‖q‖, in units of that lattice.
    """
    shares = probabilities(logits, unit=unit)
    shares[np.arange(len(labels)), labels] -= 1.0
    rounded = np.rint(shares * 2.0**bits).astype(np.int64)
    return clip_integer_rows(rounded, radius=radius)


def probabilities(logits: Floats, *, unit: float) -> Floats:
    """Return softmax(logits/unit), row by row, to the bit: shape (m, C)."""
    below = np.max(logits, axis=1, keepdims=True) - logits  # exact: whole numbers below 2^53
    steps = np.minimum(np.rint(below * (_STEPS / unit)), float(_STEPS * _DEEPEST))
    weights = np.take(_table(), steps.astype(np.int64))
    return np.asarray(weights / np.sum(weights, axis=1, keepdims=True))


@cache
def _table() -> Floats:
    """2^30·e^-x at each step, rounded."""
    table = np.asarray(np.rint(_ONE * np.exp(np.arange(_STEPS * _DEEPEST + 1) / -_STEPS)))
    table.flags.writeable = False
    return table


MOST_CLASSES = MOST_COLUMNS

_NAMES = ("clip", "resolution", "rounds", "moments", "judging")

# Of the share of the calibration, what is for how sure to be; the rest is for how often.
_OF_CONFIDENCE = 2 / 3


@dataclass(frozen=True, kw_only=True)
class Round(RoundLayout):
    """Map, bounds and lattice of one round, with W.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: (), for one head.
        class_count: C.
        clip: the bound on ‖q‖; public, enforced by cutting.
        resolution: `clip` is at most 2^resolution lattice units.
        share: of the round's own squared budget that second moments have.
        coarseness: how many bits features lose before they are squared.
        weights: W; None where all of it is zero.
    """

    class_count: int

    def __post_init__(self) -> None:
        count = _validate.whole("class_count", self.class_count, at_least=2, at_most=MOST_CLASSES)
        object.__setattr__(self, "class_count", count)
        super().__post_init__()

    @property
    def value_width(self) -> int:
        """The place of the row's label."""
        return 1

    @property
    def columns(self) -> int:
        """C, the number of classes."""
        return self.class_count

    def residuals(self, scores: Floats, unit: float, values: Floats) -> Integers:
        """Return q of some rows, shape (m, C).

        Args:
            scores: logits, shape (m, C).
            unit: so many of their units are one.
            values: the place of each label among the classes, shape (m, 1).
        """
        places = values[:, 0].astype(np.int64)
        return residuals(scores, places, unit=unit, bits=self.lattice.bits, radius=self.radius)


@dataclass(frozen=True, kw_only=True)
class Rounds(RoundsLayout, Round):
    """What all rounds of one classifier share: all that is fixed before a row is read.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: (), for one head.
        clip: the bound on ‖q‖; public, enforced by cutting.
        resolution: `clip` is at most 2^resolution lattice units.
        share: 0: `first` gives the first round its own.
        coarseness: 0, likewise.
        weights: None: `at` gives each round its own.
        classes: labels in order, as JSON knows them.
        rounds: T, how many there are.
        moments: of the whole squared budget, what second moments have.
        judging: of the whole squared budget, what the calibration has (files call it so).
        finding: of the whole squared budget, what finding edges and categories has.
    """

    noun: ClassVar[tuple[str, str]] = ("classifier", "classifiers")
    round_type: ClassVar[type[RoundLayout]] = Round
    of_any_round: ClassVar[tuple[str, ...]] = (*RoundsLayout.of_any_round, "class_count")

    class_count: int = field(init=False)
    classes: tuple[Any, ...]
    judging: float

    def __post_init__(self) -> None:
        check_classes(self.classes)
        object.__setattr__(self, "class_count", len(self.classes))
        self._check_share("judging")
        super().__post_init__()

    @property
    def keeps_more(self) -> bool:
        """Whether errors can be told, and classes counted twice: of maps that have a constant."""
        return self.kernel.constant is not None

    @property
    def part_names(self) -> tuple[str, ...]:
        """Coefficients, and about how many rows each class has; and what errors are told by."""
        more = ("moments", "figures") if self.keeps_more else ()
        return ("state", "totals", *more)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """(1, C, r) and (1, C); then (1, r·(r + 1)/2) and (1, 3)."""
        more = (self.kept_moments, (1, 3)) if self.keeps_more else ()
        return (self.shape, (1, self.columns), *more)

    @property
    def part_weights(self) -> tuple[float, ...]:
        """One each: all are computed from noisy sums, and need no noise of their own."""
        return (1.0,) * len(self.part_names)

    @property
    def besides(self) -> float:
        """The share of the squared budget that is not for q ⊗ a."""
        return super().besides + self.judging

    @property
    def of_confidence(self) -> float:
        """The share of the first part of the calibration: all of it, where there is one part."""
        return self.judging * (_OF_CONFIDENCE if self.keeps_more else 1.0)

    @property
    def of_frequency(self) -> float:
        """The share of the second part."""
        return self.judging - self.of_confidence

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        own = {name: getattr(self, name) for name in _NAMES}
        finding = {"finding": self.finding} if self.finding else {}
        return {**super().parameters(), "classes": list(self.classes), **own, **finding}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Rounds":
        """Return the layout with these `parameters`, and these arrays of its map.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        _validate.instance("classes", parameters["classes"], list)
        return cls(
            kernel=registry.FEATURES.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            classes=tuple(parameters["classes"]),
            finding=parameters.get("finding", 0.0),
            **{name: parameters[name] for name in _NAMES},
        )


# log₂ of the factors: from a quarter to nearly three.
_FACTORS = np.arange(-4, 4) / 2.0

# So many features are in memory at a time.
_FEATURES_AT_ONCE = 2**21

# How strongly the factor is pulled to one, in units of noise: it changes if the rows say so.
_PULL = 2.0


@dataclass(frozen=True, kw_only=True)
class Calibration(ValueLayout):
    """The layout of the calibration: short values, and the same key for all rows.

    After the last round: how sure the classifier is, and how often it is right. Noisy steps leave
    logits that are too large or too small as a whole. So there is one more small release: for each
    of a few factors a, the sum over rows of [the class is right] - max softmax(a·logits). Where it
    is zero, the classifier is right as often as it says. The number of rows of each class is
    released with it; or, where features have a constant, in a pass after it, together with the
    sum of the probabilities that each class is given (`frequency`).

    All are added up as if they were the values of a memory whose keys are all the same: so the
    bounds, the treatment of records and the proof are the memory's.
    """

    noun: ClassVar[tuple[str, str]] = ("calibration", "calibrations")

    @classmethod
    def of(cls, rounds: Rounds) -> "Calibration":
        """Return the layout for as many classes, on as fine a lattice."""
        # Each of the differences is within ±1, and a row has one label; or one curvature.
        beside = 1 if rounds.keeps_more else rounds.columns
        return cls._of(rounds, len(_FACTORS) + beside, len(_FACTORS) + 1)

    @classmethod
    def frequency(cls, rounds: Rounds) -> "Calibration":
        """Return the layout of labels and probabilities of as many classes."""
        # A label is as long as one, and probabilities add up to one.
        return cls._of(rounds, 2 * rounds.columns, 2)

    @classmethod
    def _of(cls, rounds: Rounds, width: int, squared: int) -> "Calibration":
        norm = math.sqrt(squared)
        return cls(
            kernel=UnitLinear(1),
            heads=(),
            value_dim=width,
            value_norm=norm,
            tau=norm / 1000,
            resolution=rounds.resolution,
        )


# What is added up of some rows: of a round with W, features (m, r) and places of labels (m,).
Seen = Callable[[Round, Floats, Integers], Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Judged(Table):
    """A table of rows with what the classifier makes of each, in place of its label. PRIVATE.

    Attributes:
        keys: shape (n, d).
        values: the place of each label, shape (n, 1).
        table: the same, with its features if they were kept.
        layout: with W.
        seen: what is made of each row.
        width: how many numbers that is.
    """

    table: Table
    layout: Round
    seen: Seen
    width: int

    @classmethod
    def of(cls, table: Table, layout: Round, seen: Seen, width: int) -> "Judged":
        """Return what the classifier with this W makes of a table."""
        return cls(table.keys, table.values, table, layout, seen, width)

    @cached_property
    def shape(self) -> Shape:
        """Keys are one zero; values are what is made of a row."""
        return Shape(heads=(), key_dim=1, value_dim=self.width)

    def read(self, index: Index) -> tuple[Array, Floats]:
        """Return zeros, shape (m, 1), and what is added up for each row, shape (m, width)."""
        rows = np.arange(self.rows)[index]
        values = np.empty((len(rows), self.width))
        # The one who asks knows nothing of features, and asks for many rows at a time.
        some = max(_FEATURES_AT_ONCE // self.layout.kernel.features, 1)
        memory = np.empty(min(some, len(rows)) * self.layout.kernel.features)
        for start in range(0, len(rows), some):
            keys, places = self.table.read(rows[start : start + some])
            features, _ = self.table.features(self.layout, keys, memory)
            labels = places[:, 0].astype(np.int64)
            values[start : start + some] = self.seen(self.layout, features[0], labels)
        return np.zeros((len(rows), 1)), values


def confidence(layout: Round, features: Floats, labels: Integers) -> Floats:
    """Return [right] - max p for each factor, shape (m, 8): row by row, to the bit."""
    logits, unit = layout.scores(features)
    right = np.argmax(logits, axis=1) == labels
    values = np.empty((len(labels), len(_FACTORS)))
    for column, exponent in enumerate(_FACTORS):
        sure = np.max(probabilities(logits, unit=unit / 2.0**exponent), axis=1)
        values[:, column] = right - sure
    return values


def confidence_and_curvature(layout: Round, features: Floats, labels: Integers) -> Floats:
    """Return `confidence`, and how much the row's loss is curved, shape (m, 9).

    The mean of p·(1 - p) over the C - 1 directions that there are; none where q is cut: at most ½.
    """
    logits, unit = layout.scores(features)
    shares = probabilities(logits, unit=unit)
    curved = np.zeros(len(labels))
    off = np.zeros(len(labels))
    for column, share in enumerate(shares.T):  # one class after the other: sums in one order
        curved += share * (1 - share)
        off += np.square(share - (labels == column))
    curved *= (off < layout.clip**2) / (layout.columns - 1)
    return np.concatenate([confidence(layout, features, labels), curved[:, None]], axis=1)


def confidence_and_label(layout: Round, features: Floats, labels: Integers) -> Floats:
    """Return `confidence`, and the label as one of C, shape (m, 8 + C)."""
    sure = confidence(layout, features, labels)
    return np.concatenate([sure, _one_of(labels, layout.columns)], axis=1)


def label_and_probabilities(layout: Round, features: Floats, labels: Integers) -> Floats:
    """Return the label as one of C, and p, shape (m, 2·C): row by row, to the bit."""
    logits, unit = layout.scores(features)
    shares = probabilities(logits, unit=unit)
    return np.concatenate([_one_of(labels, layout.columns), shares], axis=1)


def _one_of(labels: Integers, count: int) -> Floats:
    """Return labels as one of so many, shape (m, C)."""
    values = np.zeros((len(labels), count))
    values[np.arange(len(labels)), labels] = 1.0
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
    rounds = released.layout
    layout, share = Calibration.of(rounds), rounds.judging
    if rounds.keeps_more:
        layout, share = Calibration.frequency(rounds), rounds.of_frequency
    guarantee = released.guarantee
    sensitivity = unit_sensitivity(
        layout, guarantee.neighbours, Unit(guarantee.unit), released.group_rows
    )
    sigma = released.noise_multiplier * sensitivity / math.sqrt(share)
    return math.sqrt(RoundedGaussian(sigma=sigma).variance) * layout.real_unit


def split(sums: Floats) -> tuple[Floats, Floats]:
    """Return the differences and the totals of classes in the sums of such values."""
    return sums[: len(_FACTORS)], sums[len(_FACTORS) :]


def shifts(totals: Floats, expected: Floats, noise: float) -> Floats:
    """Return by how much the logit of each class is to rise, such that it is named often enough.

    Post-processing. Both are known but for their noise, which is why so much is added to either: a
    class whose rows noise can hide is left as it is.

    Args:
        totals: noisy numbers of rows of each class, shape (C,).
        expected: noisy sums of its probability over all rows, shape (C,).
        noise: their standard deviation.
    """
    held = 2 * noise
    ratio = np.log((np.maximum(totals, 0) + held) / (np.maximum(expected, 0) + held))
    return np.asarray(ratio - ratio.mean())


def log_odds(sums: Floats, layout: Rounds, *, rows: float, noise: float) -> Floats:
    """Return the logarithm of each class' share of all rows, less their mean, shape (C,).

    From the first round, in which all q of a class are the same: Σ q tells how many rows each class
    has more than others. As far as the noise lets one see it. Post-processing.

    Args:
        sums: noisy Σ q over all rows, at W = 0, shape (C,).
        layout: of the rounds.
        rows: about how many there are.
        noise: standard deviation of the sums.
    """
    count = layout.columns
    cut = min(layout.clip / math.sqrt(1 - 1 / count), 1.0)
    totals = rows / count - (sums - sums.mean()) / cut
    held = noise / cut
    logs = np.log(np.maximum(totals, 0.0) + held)
    return np.asarray(logs - logs.mean())
