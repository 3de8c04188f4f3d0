"""What a row contributes to one round: q ⊗ a, in integers, and what all rounds of a release share.

a are the integer features of the row's key. With W the coefficients so far, the scores of the row
are a·W, and q is the gradient of its loss with respect to them, cut to a public length, exactly.
W is public: it was made of what earlier rounds released. So q depends on nothing private but that
row; and it is the same to the bit wherever the row stands.
"""

import abc
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS, SymmetricMap
from discreet.noise import Lattice
from discreet.sums.moments import SecondMoments

# ‖a‖ ≤ 2^16, so with ‖W_c‖ ≤ 2^36 every sum of products of a·W_c is below 2^52: exact in any order.
_LONGEST = 2**36
_FINEST = 40

# With so many columns, squares of q before it is cut still add up to less than 2^62.
MOST_COLUMNS = 2**14

# Released coefficients are multiples of 2^-this.
STATE_BITS = 30

# Second moments in a release are multiples of 2^-this.
MOMENT_BITS = 16


@dataclass(frozen=True, eq=False)
class Weights:
    """W of one round, in integers: scores are a·W/(unit·2^bits). Public.

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
        """Return W (r, C) rounded, as finely as exact scores allow.

        Args:
            weights: shape (r, C).
        """
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
class RoundLayout(SecondMoments):
    """Map, bounds and lattice of one round, with W.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: (), for one head.
        clip: the bound on ‖q‖; public, enforced by cutting.
        resolution: `clip` is at most 2^resolution lattice units.
        share: of the round's own squared budget that second moments have: the first round releases
            them, too.
        coarseness: how many bits features lose before they are squared.
        weights: W; None where all of it is zero.
    """

    noun: ClassVar[tuple[str, str]] = ("round", "rounds")

    kernel: SymmetricMap
    heads: tuple[int, ...] = ()
    clip: float
    resolution: int
    share: float = 0.0
    weights: Weights | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        registry.FEATURES.check_registered(self.kernel)
        super().__post_init__()
        checked: dict[str, Any] = {
            "clip": _validate.real("clip", self.clip, at_least=1e-3, at_most=self._longest_clip),
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
    def _longest_clip(self) -> float:
        """A bound that is longer would cut nothing."""
        return 2.0

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
            values: of the rows, shape (m, value_width).
            weights: not used: these maps have none.
        """
        scores, unit = self.scores(features[0])
        return self.residuals(scores, unit, values)[None].astype(np.float64)

    @abc.abstractmethod
    def residuals(self, scores: Floats, unit: float, values: Floats) -> Integers:
        """Return q of some rows in lattice units, shape (m, C): Σ q² ≤ radius², exactly.

        Args:
            scores: whole numbers stored as float64, shape (m, C).
            unit: so many of them are one.
            values: of the rows, shape (m, value_width).
        """

    def scores(self, features: Floats) -> tuple[Floats, float]:
        """Return a·W of some rows, shape (m, C), exactly, and how many of its units are one.

        Args:
            features: integers stored as float64, shape (m, r).
        """
        if self.weights is None:
            return np.zeros((len(features), self.columns)), 1.0
        return features @ self.weights.integers, math.ldexp(self.kernel.unit, self.weights.bits)


@dataclass(frozen=True, kw_only=True)
class RoundsLayout(RoundLayout):
    """What all rounds of one release share: all that is fixed before a row is read.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: (), for one head.
        clip: the bound on ‖q‖; public, enforced by cutting.
        resolution: `clip` is at most 2^resolution lattice units.
        share: 0: `first` gives the first round its own.
        coarseness: 0, likewise.
        weights: None: `at` gives each round its own.
        rounds: T, how many there are.
        moments: of the whole squared budget, what second moments have.
        finding: of the whole squared budget, what finding edges and categories has.
    """

    # The layout of one round, and the names of the fields that it shares with this one.
    round_type: ClassVar[type[RoundLayout]]
    of_any_round: ClassVar[tuple[str, ...]] = ("kernel", "clip", "resolution")

    rounds: int
    moments: float
    finding: float = 0.0

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "rounds", _validate.whole("rounds", self.rounds, at_least=1, at_most=2**12))
        self._check_share("moments")
        if self.finding != 0:
            self._check_share("finding")
        super().__post_init__()

    def _check_share(self, name: str) -> None:
        share = _validate.real(name, getattr(self, name), at_least=1e-3, at_most=0.25)
        object.__setattr__(self, name, share)

    @property
    def besides(self) -> float:
        """The share of the squared budget that is not for q ⊗ a."""
        return self.moments + self.finding

    @property
    def of_round(self) -> float:
        """The share of the squared budget that q ⊗ a of each round has: all have the same."""
        return (1 - self.besides) / self.rounds

    @property
    def of_first(self) -> float:
        """The share of the first round, second moments included."""
        return self.of_round + self.moments

    @property
    def kept_moments(self) -> tuple[int, int]:
        """The shape of the second moments in a release: the diagonal and what is above it."""
        count = self.kernel.features
        return (1, count * (count + 1) // 2)

    def first(self, coarseness: int = 0) -> RoundLayout:
        """Return the layout of the first round: W is zero, and second moments come with it.

        Args:
            coarseness: how many bits features lose before they are squared.
        """
        share = self.moments / self.of_first
        return self.round_type(share=share, coarseness=coarseness, **self._of_any_round)

    def at(self, weights: Weights) -> RoundLayout:
        """Return the layout of a later round.

        Args:
            weights: W of that round.
        """
        return self.round_type(weights=weights, **self._of_any_round)

    @property
    def _of_any_round(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.of_any_round}
