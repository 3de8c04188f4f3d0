"""What a row contributes, in integers, and how large that can be: fixed before any row is read.

A row with key k contributes the integer matrix w ⊗ a: a are the integer features of k, and w is
made of the row's value (`ValueLayout`: [v; τ] in lattice units, times the map's weight of the row).
Both norms are bounded exactly, so the norm of a contribution is, too: no rounding error has to be
estimated.
"""

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput
from discreet.features.base import FEATURE_RADIUS, RowMap
from discreet.noise import Lattice
from discreet.privacy import Neighbours

# Sums stay below this, which leaves room for the noise in int64.
_LARGEST_SUM = 2**62

# float64 holds every integer up to this, so products of that many terms are exact.
_EXACT_FLOAT = 2**53

# A sum of a few squared integers has an exact square root up to less than this.
_ROUNDING = 1 + 2.0**-50


class Norm(StrEnum):
    """How the contribution of a row is measured."""

    L1 = "L1"
    L2 = "L2"


@dataclass(frozen=True, kw_only=True)
class RowLayout(abc.ABC):
    """Map, bounds and lattice of one layer, with its heads.

    What rows add up to falls into one part or several: arrays of integers, each with a public
    weight. The contribution of a row, each part times its weight, has a norm of at most
    `row_bound`; the noise on a part is σ over its weight. `docs/privacy.md`, "Least squares".

    Attributes:
        noun: what is built of it, in one word, and in the plural.
        norm: in which contributions are bounded, and so which noise they get: Gaussian noise for
            lengths (L2), discrete Laplace noise for sums of magnitudes (L1; see `sums.cells`).
        kernel: the feature map of keys.
        heads: leading axes of keys and values; () for one head.
    """

    noun: ClassVar[tuple[str, str]]
    norm: ClassVar[Norm] = Norm.L2

    kernel: RowMap
    heads: tuple[int, ...]

    def __post_init__(self) -> None:
        self.kernel.check_integers()
        if not self.kernel.takes_signed_keys:
            wanted = "False: nobody checks that keys have no negative coordinates"
            _validate.reject("kernel.nonnegative", value=True, wanted=wanted)
        heads = tuple(_validate.whole("heads", length, at_least=1) for length in self.heads)
        object.__setattr__(self, "heads", heads)

    @cached_property
    def head_count(self) -> int:
        """How many heads there are."""
        return math.prod(self.heads)

    @property
    @abc.abstractmethod
    def value_width(self) -> int:
        """How many numbers the value of a row is, as the caller gives it."""

    @property
    @abc.abstractmethod
    def columns(self) -> int:
        """How many numbers w is."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the sums over w ⊗ a: (heads, columns, r)."""
        return (self.head_count, self.columns, self.kernel.features)

    @property
    def or_else(self) -> str:
        """What helps besides a larger ε, where the noise is too large to be drawn."""
        return ""

    @property
    def part_names(self) -> tuple[str, ...]:
        """What a file calls each part."""
        return ("state",)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part; the first is `shape`."""
        return (self.shape,)

    @property
    def part_weights(self) -> tuple[float, ...]:
        """The weight of each part in the norm of a contribution; the first is one."""
        return (1.0,)

    @abc.abstractmethod
    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:
        """Return w of some rows: integers stored as float64, shape (heads, m, columns).

        Row by row, to the bit: what a row has depends on nothing but that row and public numbers.

        Args:
            features: integers, shape (heads, m, r).
            values: of any finite size, shape (heads·m, value_width), head by head.
            weights: of the map, from 0 to 1, shape (heads·m,); None if all are one.
        """

    def contribution(self, features: Floats, weighed: Floats) -> tuple[Integers, ...]:
        """Return what some rows add to each part, exactly.

        Args:
            features: integers, shape (heads, m, r); m is at most `exact_rows`.
            weighed: integers, shape (heads, m, columns).
        """
        # This orientation is half as fast again as its transpose in BLAS.
        return (np.asarray(np.matmul(weighed.swapaxes(1, 2), features), dtype=np.int64),)

    @property
    def row_bound(self) -> float:
        """C: the largest norm of a row's contribution to one head, in lattice units."""
        return self.outer_bound

    def record_bound(self, group_rows: float) -> float:
        """Return the largest norm of a record's contribution to one head, in lattice units.

        Args:
            group_rows: the influence of a record, in rows.
        """
        return group_rows * self.row_bound

    @property
    @abc.abstractmethod
    def outer_bound(self) -> float:
        """The largest norm of w ⊗ a."""

    @property
    @abc.abstractmethod
    def inner_range(self) -> tuple[int, int]:
        """The least and the most that ⟨w, w'⟩ of two rows can be; ‖w‖² is at most the latter."""

    def row_sensitivity(self, neighbours: Neighbours) -> float:
        """Return how far one head's state can move when one row changes, in lattice units (L2).

        Added or removed: C. Replaced: ‖w⊗a - w'⊗a'‖² = ‖w‖²‖a‖² + ‖w'‖²‖a'‖² - 2⟨w, w'⟩⟨a, a'⟩ with
        ⟨a, a'⟩ from the kernel's `least_inner` to R² and ⟨w, w'⟩ within `inner_range`: a product of
        two, whose least value is at a corner. At most 2·C. `docs/privacy.md`, "Memory".

        Args:
            neighbours: whether a row is added or removed, or replaced.
        """
        if neighbours is Neighbours.ADD_REMOVE:
            return self.row_bound
        features, (least, most) = FEATURE_RADIUS**2, self.inner_range
        inner = self.kernel.least_inner
        opposite = max(-least * features, -least * inner, -most * features, -most * inner)
        return math.sqrt(2 * features * most + 2 * opposite) * _ROUNDING

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        return {"kernel": self.kernel.parameters(), "heads": list(self.heads)}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the public arrays that belong to it."""
        return self.kernel.arrays()

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the layout with these `parameters` and `arrays`, as a file has them.

        A layout that is only used on the way, and is in no file, has none.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        raise NotImplementedError

    @property
    def most_rows(self) -> int:
        """With so many rows all sums fit int64, whatever the rows are."""
        return _LARGEST_SUM // self._largest_term

    @property
    def exact_rows(self) -> int:
        """So many rows can be added up by float64 products without a rounding error."""
        return _EXACT_FLOAT // self._largest_term

    @property
    def _largest_term(self) -> int:
        return self._largest_product

    @property
    @abc.abstractmethod
    def _largest_product(self) -> int:
        """Of a feature and an entry of w."""

    def check_rows(self, rows: int) -> None:
        """Raise `InvalidInput` if sums over so many rows might leave int64.

        Args:
            rows: how many.
        """
        if rows > self.most_rows:
            # Values can be rounded more, and leave room for more rows; features cannot.
            helps = self._largest_term == self._largest_product
            advice = ": raise rows_hint" if helps else ""
            raise InvalidInput(f"Expected at most {self.most_rows:,} rows on this lattice{advice}.")


# Whose layouts they are: a memory's, or another kind's.
AnyLayout_co = TypeVar("AnyLayout_co", bound=RowLayout, covariant=True)


@dataclass(frozen=True, kw_only=True)
class ValueLayout(RowLayout):
    """Map, bounds and lattice of one layer whose values are added up.

    Attributes:
        kernel: the feature map of keys.
        heads: leading axes of keys and values; () for one head.
        value_dim: d_v.
        value_norm: bound on ‖v‖₂; public, enforced by clipping.
        tau: τ, the weight of the denominator's column.
        resolution: `value_norm` is at most 2^resolution lattice units.
    """

    value_dim: int
    value_norm: float
    tau: float
    resolution: int

    def __post_init__(self) -> None:
        super().__post_init__()
        set_ = object.__setattr__
        set_(self, "value_dim", _validate.whole("value_dim", self.value_dim, at_least=1))
        norm = _validate.real("value_norm", self.value_norm, at_least=1e-30, at_most=1e30)
        set_(self, "value_norm", norm)
        set_(self, "tau", check_tau(self.tau, norm))
        set_(
            self,
            "resolution",
            _validate.whole("resolution", self.resolution, at_least=8, at_most=22),
        )

    @property
    def value_width(self) -> int:
        """d_v."""
        return self.value_dim

    @property
    def columns(self) -> int:
        """d_v and one more, for the denominator."""
        return self.value_dim + 1

    @cached_property
    def lattice(self) -> Lattice:
        """The grid that values are rounded to."""
        return Lattice.for_norm(self.value_norm, resolution=self.resolution)

    @cached_property
    def value_radius(self) -> int:
        """The norm bound of a rounded value, in lattice units."""
        return self.lattice.units(self.value_norm)

    @cached_property
    def tau_units(self) -> int:
        """τ in lattice units, at least one."""
        return max(round(math.ldexp(self.tau, self.lattice.bits)), 1)

    @property
    def real_tau(self) -> float:
        """τ as it is used, a whole number of lattice units."""
        return self.tau_units * self.lattice.step

    @property
    def real_unit(self) -> float:
        """What one lattice unit of the state stands for."""
        return self.lattice.step / self.kernel.unit

    @cached_property
    def outer_bound(self) -> float:
        """The largest norm of w ⊗ a."""
        weight = self.value_radius**2 + self.tau_units**2
        return FEATURE_RADIUS * math.sqrt(weight) * _ROUNDING

    @property
    def inner_range(self) -> tuple[int, int]:
        """From τ² - ‖v‖² to τ² + ‖v‖².

        A replaced row so moves a state by 2·‖a‖·‖v‖ for positive kernels and τ ≤ ‖v‖.
        """
        values, tau = self.value_radius**2, self.tau_units**2
        return tau - values, tau + values

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        names = ("value_dim", "value_norm", "tau", "resolution")
        return {**super().parameters(), **{name: getattr(self, name) for name in names}}

    @property
    def _largest_product(self) -> int:
        """Of a feature and a value."""
        return self.kernel.entry_bound * max(self.value_radius, self.tau_units)

    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:
        """Return [v; τ] of some rows, shape (heads, m, d_v + 1).

        Args:
            features: integers, shape (heads, m, r).
            values: of any finite size, shape (heads·m, d_v), head by head.
            weights: of the map, from 0 to 1, shape (heads·m,); None if all are one.
        """
        return self.weigh(values, weights).reshape(len(features), -1, self.columns)

    def weigh(self, values: Floats, weights: Floats | None) -> Floats:
        """Return w = [v; τ], in lattice units, times the row's weight.

        Args:
            values: of any finite size, shape (n, d_v); clipped to `value_norm`.
            weights: from 0 to 1, shape (n,); None if all are one.

        Returns:
            Integers stored as float64, shape (n, d_v + 1), of norm ≤ √(value_radius² + tau_units²).
        """
        integers = self.lattice.clip_rows(values, norm=self.value_norm)
        weighed = np.full((len(values), self.columns), float(self.tau_units))
        if weights is not None:
            # Rounding never carries a whole number times at most one beyond that number.
            np.rint(integers * weights[:, None], out=weighed[:, :-1])
            weighed[:, -1] = np.rint(self.tau_units * weights)
        else:
            weighed[:, :-1] = integers
        return weighed


def check_tau(tau: float, value_norm: float) -> float:
    """Return τ, if it is neither far below nor far above the length of values.

    Outside of this range one of the two, numerator or denominator, is all noise.

    Args:
        tau: τ.
        value_norm: bound on ‖v‖₂.

    Raises:
        InvalidInput: it is out of range.
    """
    return _validate.real("tau", tau, at_least=value_norm / 1000, at_most=4 * value_norm)


def default_tau(value_norm: float, value_dim: int) -> float:
    """Return τ = value_norm/(4·d_v^¼).

    The error of an answer o is, per coordinate, proportional to √(B² + τ²)·√(1 + o²/τ²); summed
    over coordinates it is least at τ² = B·‖o‖/√d_v. This is the least for ‖o‖ = B/16, which
    averages over many rows come to; larger answers lose little, and numerators alone gain.

    Args:
        value_norm: B, the bound on ‖v‖₂.
        value_dim: d_v.
    """
    return value_norm / (4 * math.sqrt(math.sqrt(value_dim)))
