"""One Gaussian mechanism over all heads and layers of a build, with one guarantee."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from discreet import _validate, accounting
from discreet.errors import InvalidInput
from discreet.memory.layout import Layout
from discreet.noise import RoundedGaussian
from discreet.noise.law import LARGEST_SCALE
from discreet.privacy import Guarantee, Neighbours, Privacy

# The noise is aimed at this many lattice units: fine enough to see no rounding, and coarse enough
# for exact draws to be fast.
_NOISE_BITS = 36
_FEATURE_BITS = 16
_LEAST_RESOLUTION, _FINEST_RESOLUTION = 8, 22


class Unit(StrEnum):
    """Whom the guarantee protects."""

    ROW = "row"
    RECORD = "record"


@dataclass(frozen=True, kw_only=True)
class Joint:
    """What all states of one build share.

    Each head's state gets noise in proportion to its own sensitivity s: σ = multiplier·s. A row
    moves every head by at most s, so the whole release is one Gaussian mechanism of sensitivity
    √heads and standard deviation `multiplier`, in units of s. `docs/privacy.md`, "Memory".

    Attributes:
        layouts: the layers.
        privacy: what the whole release may spend.
        unit: a row, or a record of many rows.
        group_rows: a record's influence is scaled down to that of so many rows.
    """

    layouts: tuple[Layout, ...]
    privacy: Privacy
    unit: Unit
    group_rows: float = 1.0

    def __post_init__(self) -> None:
        group_rows = _validate.real("group_rows", self.group_rows, at_least=1e-3, at_most=1e6)
        if self.unit is Unit.ROW and group_rows != 1:
            _validate.reject("group_rows", self.group_rows, "1 unless groups are given")
        object.__setattr__(self, "group_rows", group_rows)
        for layout in self.layouts:
            largest = self.sigma(layout)
            if largest > LARGEST_SCALE:
                raise InvalidInput(
                    f"Expected epsilon={self.privacy.epsilon} to be larger: the noise would be "
                    f"{self.multiplier * self.group_rows:,.0f} times what one row can contribute."
                )

    @property
    def head_count(self) -> int:
        """The number of heads of all layers together."""
        return sum(layout.head_count for layout in self.layouts)

    @cached_property
    def multiplier(self) -> float:
        """σ in units of one head's sensitivity."""
        return noise_multiplier(self.privacy, self.head_count)

    @property
    def mechanism(self) -> accounting.Gaussian:
        """The whole release, as the accountant sees it."""
        return accounting.Gaussian(
            sigma=self.multiplier,
            sensitivity=_root(self.head_count),
            neighbours=self.privacy.neighbours,
        )

    def sensitivity(self, layout: Layout) -> float:
        """Return how far one head's state of a layer can move, in lattice units (L2).

        For records only the sum over all heads is bounded, by √heads times this.
        """
        return unit_sensitivity(layout, self.privacy.neighbours, self.unit, self.group_rows)

    def sigma(self, layout: Layout) -> float:
        """Return the standard deviation of a layer's noise, in lattice units."""
        return self.multiplier * self.sensitivity(layout)

    def law(self, layout: Layout) -> RoundedGaussian:
        """Return the noise of a layer's state."""
        return RoundedGaussian(sigma=self.sigma(layout))

    @property
    def crude_multiplier(self) -> float:
        """σ in units of the largest contribution of one row; for replaced rows at most this."""
        return crude_multiplier(self.privacy, self.head_count, self.group_rows)

    @property
    def squared_cap(self) -> float:
        """A record's contribution, in units of each head's C, has at most this squared norm."""
        return self.head_count * self.group_rows**2

    def guarantee(self, *, mark: str = "") -> Guarantee:
        """Return what is promised for the whole release."""
        count = len(self.layouts)
        scope = "the memory" if count == 1 else f"all {count} memories of this build together"
        return Guarantee(
            self.privacy.epsilon,
            self.privacy.delta,
            self.privacy.neighbours,
            unit=str(self.unit),
            scope=f"{mark}{scope}, with all answers to any queries,",
        )


def unit_sensitivity(
    layout: Layout, neighbours: Neighbours, unit: Unit, group_rows: float
) -> float:
    """Return how far one unit can move one head's state, in lattice units (`Joint.sensitivity`)."""
    if unit is Unit.ROW:
        return layout.row_sensitivity(neighbours)
    both = 2 if neighbours is Neighbours.REPLACE else 1
    return both * group_rows * layout.row_bound


def noise_multiplier(privacy: Privacy, heads: int) -> float:
    """Return σ for a mechanism that moves each of so many heads by one."""
    return accounting.gaussian_sigma(
        epsilon=privacy.epsilon, delta=privacy.delta, sensitivity=_root(heads)
    )


def crude_multiplier(privacy: Privacy, heads: int, group_rows: float) -> float:
    """Return σ in units of the largest contribution of one row, before the kernel is known."""
    both = 2 if privacy.neighbours is Neighbours.REPLACE else 1
    return noise_multiplier(privacy, heads) * both * group_rows


def value_resolution(multiplier: float, *, rows_hint: int | None) -> int:
    """Return how finely values are rounded: coarser where the noise is larger, or the rows many.

    Args:
        multiplier: σ in units of a row's contribution, `group_rows` included.
        rows_hint: a public number of rows, if there is one; four times as many will fit.
    """
    resolution = _NOISE_BITS - _FEATURE_BITS - math.ceil(math.log2(multiplier))
    if rows_hint is not None:
        resolution = min(resolution, 62 - 3 - _FEATURE_BITS - math.ceil(math.log2(rows_hint)))
    return min(max(resolution, _LEAST_RESOLUTION), _FINEST_RESOLUTION)


def _root(heads: int) -> float:
    return math.sqrt(heads) * (1 + 2.0**-50 * (math.isqrt(heads) ** 2 != heads))
