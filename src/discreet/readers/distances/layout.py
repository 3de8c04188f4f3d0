"""What a row adds to sums of distances: its features, times its weight."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS, NORMS
from discreet.features.cosines import Cosines
from discreet.noise import Lattice
from discreet.sums.layout import RowLayout


@dataclass(frozen=True, kw_only=True)
class DistanceLayout(RowLayout):
    """Map, bounds and lattice of sums of distances.

    Attributes:
        kernel: the feature map of points.
        heads: (), for one head.
        weight_bound: bound on |w|; public, enforced by clipping.
        weighted: whether rows have weights of their own; else all weigh one.
        resolution: `weight_bound` is at most 2^resolution lattice units.
    """

    noun: ClassVar[tuple[str, str]] = ("table of distances", "tables of distances")

    kernel: Cosines
    heads: tuple[int, ...] = ()
    weight_bound: float
    weighted: bool
    resolution: int

    def __post_init__(self) -> None:
        registry.DISTANCES.check_registered(self.kernel)
        super().__post_init__()
        checked: dict[str, Any] = {
            "weight_bound": _validate.real("weight_bound", self.weight_bound, **NORMS),
            "resolution": _validate.whole("resolution", self.resolution, at_least=8, at_most=22),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.heads or not isinstance(self.weighted, bool):
            _validate.reject("heads", self.heads, "()")

    @property
    def value_width(self) -> int:
        """One weight."""
        return 1

    @property
    def columns(self) -> int:
        """One weight."""
        return 1

    @cached_property
    def lattice(self) -> Lattice:
        """The grid that weights are rounded to; so are those of rows that all weigh one.

        (Rows of a record that is scaled down weigh less.)
        """
        bound = self.weight_bound if self.weighted else 1.0
        return Lattice.for_norm(bound, resolution=self.resolution)

    @cached_property
    def radius(self) -> int:
        """The largest rounded weight, in lattice units."""
        return self.lattice.units(self.weight_bound if self.weighted else 1.0)

    @property
    def real_unit(self) -> float:
        """What one lattice unit of the sums stands for."""
        return self.lattice.step / self.kernel.unit

    @property
    def outer_bound(self) -> float:
        """The largest norm of w·a: exact, a product of two whole numbers below 2^53."""
        return float(FEATURE_RADIUS * self.radius)

    @property
    def inner_range(self) -> tuple[int, int]:
        """Weights may have opposite signs; where all rows weigh one, they have not."""
        return (-(self.radius**2) if self.weighted else self.radius**2), self.radius**2

    @property
    def _largest_product(self) -> int:
        """Of a feature and a weight."""
        return self.kernel.entry_bound * self.radius

    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:  # noqa: ARG002
        """Return the weights of some rows, in lattice units: shape (1, m, 1).

        Args:
            features: integers, shape (1, m, r).
            values: the weight of each row, of any finite size, shape (m, 1); clipped.
            weights: not used: the map has none.
        """
        if not self.weighted:
            return np.full((1, features.shape[1], 1), float(self.radius))
        clipped = self.lattice.clip_rows(values, norm=self.weight_bound)
        return np.asarray(clipped, dtype=np.float64)[None]

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        names = ("weight_bound", "weighted", "resolution")
        return {**super().parameters(), **{name: getattr(self, name) for name in names}}

    @classmethod
    def restore(
        cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> "DistanceLayout":
        """Return the layout with these `parameters`, and the series of its map.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        names = ("weight_bound", "weighted", "resolution")
        return cls(
            kernel=registry.DISTANCES.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            **{name: parameters[name] for name in names},
        )
