"""Linear features: a constant and the columns, as they are or brought to length one."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS, SHRINK, SymmetricMap, cut_to_radius


@dataclass(frozen=True)
class LinearBase(SymmetricMap):
    """A constant and the columns, which count `stretch` times as much: r = d + 1.

    Attributes:
        dim: number of coordinates d.
        key_norm: bound on ‖x‖₂; public, enforced by clipping.
        stretch: how much the columns count beside the constant.
    """

    dim: int
    _: KW_ONLY
    key_norm: float = 1.0
    stretch: float = 3.0

    def __post_init__(self) -> None:
        self._set(
            dim=_validate.whole("dim", self.dim, at_least=1),
            key_norm=_validate.real("key_norm", self.key_norm, above=0),
            stretch=_validate.real("stretch", self.stretch, at_least=2.0**-8, at_most=2.0**8),
        )

    @property
    def features(self) -> int:
        """A constant, and the columns."""
        return self.dim + 1

    @property
    def operations(self) -> int:
        """A square and a product for each column."""
        return 4 * self.features

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing but the numbers themselves."""
        return {}

    def parameters(self) -> dict[str, object]:
        """Return the numbers that make the same map again."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "key_norm": self.key_norm,
            "stretch": self.stretch,
        }


@dataclass(frozen=True)
class Linear(LinearBase):
    """φ(x) = [1; s·x/key_norm]/√(1 + s²), with s = stretch: r = d + 1, and length one at the most.

    A prediction is linear in x, exactly.

    Attributes:
        dim: number of coordinates d.
        key_norm: bound on ‖x‖₂; public, enforced by clipping.
        stretch: s: how much the columns count beside the constant.
    """

    kind: ClassVar[str] = "linear"

    @property
    def least_inner(self) -> int:
        """That of two keys that are opposite and as long as can be; they share the constant."""
        return min(self._constant**2 - self._reach**2, 0)

    @cached_property
    def _constant(self) -> int:
        """The constant's integer feature."""
        return math.floor(FEATURE_RADIUS / math.sqrt(1 + self.stretch**2))

    @cached_property
    def _reach(self) -> int:
        """How long the other features may be, so that all together have the radius at most."""
        return math.isqrt(FEATURE_RADIUS**2 - self._constant**2)

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys.

        Args:
            integers: rounded keys, shape (n, d).
            out: where features are written, shape (n, r).
        """
        out[:, 0] = self._constant
        # A product with one number, smaller than the quotient by more than it is rounded; cutting
        # towards zero only shrinks.
        np.multiply(integers, self._reach / self.key_radius * SHRINK, out=out[:, 1:])
        np.trunc(out, out=out)

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return φ(q): (heads, m, d), clipped, to (heads, m, d + 1).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: none are needed.
        """
        xp = namespace(queries)
        constant = xp.full_like(queries[..., :1], self._constant / FEATURE_RADIUS)
        return xp.concat(
            [constant, queries * (self._reach / FEATURE_RADIUS / self.key_norm)], axis=-1
        )

    def describe(self) -> str:
        """Return how many columns there are."""
        return f"a constant and {self.dim:,} columns ({self.features:,} features)"


@dataclass(frozen=True)
class UnitLinear(LinearBase):
    """φ(x) = [1; s·x/key_norm]/‖·‖, with s = stretch: r = d + 1, and every row has length one.

    Planes through the origin of these features divide rows as straight lines divide x, so classes
    are told apart as by `Linear`; but a row uses the whole of the sensitivity, whatever its own
    length is. Predicted numbers are linear in x only where rows are about equally long.

    Attributes:
        dim: number of coordinates d.
        key_norm: bound on ‖x‖₂; public, enforced by clipping.
        stretch: s: how much the columns count beside the constant.
    """

    kind: ClassVar[str] = "rays"
    aliases: ClassVar[tuple[str, ...]] = ("unit_linear",)

    @property
    def least_inner(self) -> int:
        """That of two keys that are opposite and as long as can be; the constant is theirs alike.

        Directions [k; z] are at most arctan(ρ/k) from the constant's, so two of them have a cosine
        of at least (k² - ρ²)/(k² + ρ²). Cutting moves a vector by less than √r.
        """
        constant, radius = self._constant, self.key_radius
        cosine = (constant**2 - radius**2) / (constant**2 + radius**2)
        slack = 2 * FEATURE_RADIUS * math.sqrt(self.features) + 1
        return min(math.floor(FEATURE_RADIUS**2 * cosine - slack), 0)

    @cached_property
    def _constant(self) -> int:
        """The constant in units of the keys' lattice: at most 2^30 of them."""
        return max(round(self.key_radius / self.stretch), 1)

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys.

        Args:
            integers: rounded keys, shape (n, d).
            out: where features are written, shape (n, r).
        """
        out[:, 0] = self._constant
        out[:, 1:] = integers
        # Exact in integers, the constant included: at most 2^61.
        squared = np.einsum("ij,ij->i", integers, integers) + self._constant**2
        cut_to_radius(out, squared.astype(np.float64))

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return φ(q): (heads, m, d), clipped, to (heads, m, d + 1).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: none are needed.
        """
        xp = namespace(queries)
        stretched = queries * (self.stretch / self.key_norm)
        one = xp.ones_like(stretched[..., :1])
        length = xp.sqrt(1 + xp.sum(stretched * stretched, axis=-1, keepdims=True))
        return xp.concat([one, stretched], axis=-1) / length

    def describe(self) -> str:
        """Return how many columns there are."""
        return f"a constant and {self.dim:,} columns, as rays ({self.features:,} features)"
