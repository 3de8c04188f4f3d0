"""What a row contributes to one round of softmax regression: its gradient q ⊗ a, in integers.

a are the integer features of the row's key. With W the coefficients so far, p = softmax(a·W) and
q = p - e_y is the gradient of the row's loss with respect to its logits, cut to a public length,
exactly. W is public: it was made of what earlier rounds released. So q depends on nothing private
but that row.

A row has the same q to the bit, wherever it stands. Exponentials come from a table, sums are of
integers, and the rest are single operations that IEEE 754 rounds in one way only: np.exp of a whole
array would give other last bits in other places of it. Privacy needs nothing else of p than that;
the bound on q is exact whatever p is.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Array, Floats, Integers
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS, SymmetricMap
from discreet.features.linear import UnitLinear
from discreet.noise import Lattice, RoundedGaussian
from discreet.noise.lattice import clip_integer_rows
from discreet.readers.softmax.rows import check_classes
from discreet.sums.layout import ValueLayout
from discreet.sums.moments import SecondMoments
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


# ‖a‖ ≤ 2^16, so with ‖W_c‖ ≤ 2^36 every sum of products of a·W_c is below 2^52: exact in any order.
_LONGEST = 2**36
_FINEST = 40

# With so many, squares of q before it is cut still add up to less than 2^62.
MOST_CLASSES = 2**14

# Released coefficients are multiples of 2^-this.
STATE_BITS = 30

_NAMES = ("clip", "resolution", "rounds", "moments", "judging")


@dataclass(frozen=True, eq=False)
class Weights:
    """W of one round, in integers: logits are a·W/(unit·2^bits). Public.

    Attributes:
        integers: stored as float64, shape (r, C), no column longer than 2^36.
        bits: what they are multiples of, 2^-bits; negative if W is long.
    """

    integers: Floats
    bits: int

    def __post_init__(self) -> None:
        own = np.array(self.integers, dtype=np.float64, order="C")
        longest = math.sqrt(float(np.max(np.sum(own * own, axis=0))))
        if not longest <= _LONGEST or not np.array_equal(own, np.rint(own)):
            _validate.reject("integers", "...", "whole numbers, no column longer than 2^36")
        own.flags.writeable = False
        object.__setattr__(self, "integers", own)

    @classmethod
    def of(cls, weights: Floats) -> "Weights":
        """Return W (r, C) rounded, as finely as exact logits allow."""
        lengths = np.sqrt(np.sum(weights * weights, axis=0))
        # Rounding may lengthen a column by √r/2 units: half of the room is left for that.
        exponent = math.frexp(float(np.max(lengths)))[1]
        bits = min(math.frexp(_LONGEST)[1] - 2 - exponent, _FINEST)
        return cls(np.rint(np.ldexp(weights, bits)), bits)

    @property
    def real(self) -> Floats:
        """W as it is used, shape (r, C)."""
        return np.ldexp(self.integers, -self.bits)


@dataclass(frozen=True, kw_only=True)
class Round(SecondMoments):
    """Map, bounds and lattice of one round, with W.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: (), for one head.
        class_count: C.
        clip: the bound on ‖q‖; public, enforced by cutting.
        resolution: `clip` is at most 2^resolution lattice units.
        share: of the round's own squared budget that second moments have: the first round releases
            them, too.
        coarseness: how many bits features lose before they are squared.
        weights: W; None where all of it is zero.
    """

    kernel: SymmetricMap
    heads: tuple[int, ...] = ()
    class_count: int
    clip: float
    resolution: int
    share: float = 0.0
    weights: Weights | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        registry.FEATURES.check_registered(self.kernel)
        super().__post_init__()
        checked: dict[str, Any] = {
            "class_count": _validate.whole(
                "class_count", self.class_count, at_least=2, at_most=MOST_CLASSES
            ),
            "clip": _validate.real("clip", self.clip, at_least=1e-3, at_most=2.0),
            "resolution": _validate.whole("resolution", self.resolution, at_least=8, at_most=22),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.heads:
            _validate.reject("heads", self.heads, "()")
        shape = (self.kernel.features, self.columns)
        if self.weights is not None and self.weights.integers.shape != shape:
            _validate.reject("weights", self.weights.integers.shape, f"of shape {shape}")

    @property
    def value_width(self) -> int:
        """The place of the row's label."""
        return 1

    @property
    def columns(self) -> int:
        """C, the number of classes."""
        return self.class_count

    @cached_property
    def lattice(self) -> Lattice:
        """The grid that q is rounded to."""
        return Lattice.for_norm(self.clip, resolution=self.resolution)

    @cached_property
    def radius(self) -> int:
        """The norm bound of a rounded q, in lattice units."""
        return self.lattice.units(self.clip)

    @property
    def real_unit(self) -> float:
        """What one lattice unit of a round's sums stands for."""
        return self.lattice.step / self.kernel.unit

    @property
    def outer_bound(self) -> float:
        """The largest norm of q ⊗ a: exact, a product of two whole numbers below 2^53."""
        return float(FEATURE_RADIUS * self.radius)

    @property
    def inner_range(self) -> tuple[int, int]:
        """Any: q may point anywhere.

        Two rows that differ in their label only, halfway between both, have opposite ones.
        """
        return -(self.radius**2), self.radius**2

    @property
    def _largest_product(self) -> int:
        """Of a feature and an entry of q."""
        return self.kernel.entry_bound * self.radius

    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:  # noqa: ARG002
        """Return q of some rows, shape (1, m, C).

        Args:
            features: integers, shape (1, m, r).
            values: the place of each label among the classes, shape (m, 1).
            weights: not used: these maps have none.
        """
        logits, unit = self.logits(features[0])
        places = values[:, 0].astype(np.int64)
        q = residuals(logits, places, unit=unit, bits=self.lattice.bits, radius=self.radius)
        return q[None].astype(np.float64)

    def logits(self, features: Floats) -> tuple[Floats, float]:
        """Return a·W of some rows, shape (m, C), exactly, and how many of its units are one.

        Args:
            features: integers stored as float64, shape (m, r).
        """
        if self.weights is None:
            return np.zeros((len(features), self.columns)), 1.0
        return features @ self.weights.integers, math.ldexp(self.kernel.unit, self.weights.bits)


@dataclass(frozen=True, kw_only=True)
class Rounds(Round):
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
    """

    noun: ClassVar[tuple[str, str]] = ("classifier", "classifiers")

    class_count: int = field(init=False)
    classes: tuple[Any, ...]
    rounds: int
    moments: float
    judging: float

    def __post_init__(self) -> None:
        check_classes(self.classes)
        set_ = object.__setattr__
        set_(self, "class_count", len(self.classes))
        set_(self, "rounds", _validate.whole("rounds", self.rounds, at_least=1, at_most=2**12))
        for name in ("moments", "judging"):
            share = _validate.real(name, getattr(self, name), at_least=1e-3, at_most=0.25)
            set_(self, name, share)
        super().__post_init__()

    @property
    def part_names(self) -> tuple[str, ...]:
        """Coefficients, and about how many rows each class has."""
        return ("state", "totals")

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """(1, C, r) and (1, C)."""
        return (self.shape, (1, self.columns))

    @property
    def part_weights(self) -> tuple[float, ...]:
        """One each: both are computed from noisy sums, and need no noise of their own."""
        return (1.0, 1.0)

    @property
    def of_round(self) -> float:
        """The share of the squared budget that q ⊗ a of each round has: all have the same."""
        return (1 - self.moments - self.judging) / self.rounds

    @property
    def of_first(self) -> float:
        """The share of the first round, second moments included."""
        return self.of_round + self.moments

    def first(self, coarseness: int = 0) -> Round:
        """Return the layout of the first round: W is zero, and second moments come with it.

        Args:
            coarseness: how many bits features lose before they are squared.
        """
        share = self.moments / self.of_first
        return Round(share=share, coarseness=coarseness, **self._of_any_round)

    def at(self, weights: Weights) -> Round:
        """Return the layout of a later round.

        Args:
            weights: W of that round.
        """
        return Round(weights=weights, **self._of_any_round)

    @property
    def _of_any_round(self) -> dict[str, Any]:
        names = ("kernel", "class_count", "clip", "resolution")
        return {name: getattr(self, name) for name in names}

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        own = {name: getattr(self, name) for name in _NAMES}
        return {**super().parameters(), "classes": list(self.classes), **own}

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
    """The layout of the calibration: values of norm 3, and the same key for all rows.

    After the last round: how sure the classifier is, and how often it is right. Noisy steps leave
    logits that are too large or too small as a whole. So there is one more small release: for each
    of a few factors a, the sum over rows of [the class is right] - max softmax(a·logits). Where it
    is zero, the classifier is right as often as it says. The number of rows of each class is
    released with it.

    Both are added up as if they were the values of a memory whose keys are all the same: so the
    bounds, the treatment of records and the proof are the memory's.
    """

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
