"""What a row contributes whose value is added up: the value, and a weight beside it.

w is [v; τ] in lattice units (times the map's weight of the row).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.kernels import FEATURE_RADIUS
from discreet.memory.row_layout import RowLayout
from discreet.noise import Lattice

# A sum of two squared integers has an exact square root up to less than this.
_ROUNDING = 1 + 2.0**-50


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
        """Return [v; τ] of some rows, shape (heads, m, d_v + 1)."""
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
    """
    return _validate.real("tau", tau, at_least=value_norm / 1000, at_most=4 * value_norm)
