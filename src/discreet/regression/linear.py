"""A constant and the columns themselves: what straight lines are made of."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.kernels.maps import FEATURE_RADIUS, SHRINK
from discreet.regression.maps import QueryMap


@dataclass(frozen=True)
class Linear(QueryMap):
    """φ(x) = [1; s·x/key_norm]/√(1 + s²), with s = stretch: r = d + 1, and length one at the most.

    A prediction is linear in x, exactly.

    Attributes:
        dim: number of coordinates d.
        key_norm: bound on ‖x‖₂; public, enforced by clipping.
        stretch: how much the columns count beside the constant.
    """

    kind: ClassVar[str] = "linear"

    dim: int
    _: KW_ONLY
    key_norm: float = 1.0
    stretch: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _validate.whole("dim", self.dim, at_least=1))
        norm = _validate.real("key_norm", self.key_norm, above=0)
        object.__setattr__(self, "key_norm", norm)
        stretch = _validate.real("stretch", self.stretch, at_least=2.0**-8, at_most=2.0**8)
        object.__setattr__(self, "stretch", stretch)

    @property
    def features(self) -> int:
        """A constant, and the columns."""
        return self.dim + 1

    @property
    def unit(self) -> float:
        """The longest integer features have the length of the radius."""
        return float(FEATURE_RADIUS)

    @property
    def entry_bound(self) -> int:
        """No coordinate exceeds the norm."""
        return FEATURE_RADIUS

    @property
    def least_inner(self) -> int:
        """That of two keys that are opposite and as long as can be; they share the constant."""
        return min(self._constant**2 - self._reach**2, 0)

    @property
    def operations(self) -> int:
        """A square and a product for each column."""
        return 4 * self.features

    @property
    def _constant(self) -> int:
        """The constant's integer feature."""
        return math.floor(FEATURE_RADIUS / math.sqrt(1 + self.stretch**2))

    @property
    def _reach(self) -> int:
        """How long the other features may be, so that all together have the radius at most."""
        return math.isqrt(FEATURE_RADIUS**2 - self._constant**2)

    def _fill(self, integers: Integers, out: Floats) -> None:
        out[:, 0] = self._constant
        # A product with one number, smaller than the quotient by more than it is rounded; cutting
        # towards zero only shrinks.
        np.multiply(integers, self._reach / self.key_radius * SHRINK, out=out[:, 1:])
        np.trunc(out, out=out)

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing but the numbers themselves."""
        return {}

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return φ(q): (heads, m, d), clipped, to (heads, m, d + 1)."""
        xp = namespace(queries)
        constant = xp.full_like(queries[..., :1], self._constant / FEATURE_RADIUS)
        return xp.concat(
            [constant, queries * (self._reach / FEATURE_RADIUS / self.key_norm)], axis=-1
        )

    def describe(self) -> str:
        """Return how many columns there are."""
        return f"a constant and {self.dim:,} columns ({self.features:,} features)"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that make the same map again."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "key_norm": self.key_norm,
            "stretch": self.stretch,
        }
