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
from discreet._typing import Floats, Integers
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS, SymmetricMap
from discreet.noise import Lattice
from discreet.noise.lattice import clip_integer_rows
from discreet.readers.softmax.rows import check_classes
from discreet.sums.moments import SecondMoments

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
