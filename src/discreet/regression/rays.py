"""Rows as rays: a constant and the columns, brought to length one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.kernels.maps import FEATURE_RADIUS, SHRINK
from discreet.regression.lines import Lines


@dataclass(frozen=True)
class Rays(Lines):
    """φ(x) = [1; s·x/key_norm]/‖·‖, with s = stretch: r = d + 1, and every row has length one.

    Planes through the origin of these features divide rows as straight lines divide x, so classes
    are told apart as by `Linear`; but a row uses the whole of the sensitivity, whatever its own
    length is. Predicted numbers are linear in x only where rows are about equally long.
    """

    kind: ClassVar[str] = "rays"

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

    def _fill(self, integers: Integers, out: Floats) -> None:
        out[:, 0] = self._constant
        out[:, 1:] = integers
        # Exact in integers, the constant included: at most 2^61.
        squared = np.einsum("ij,ij->i", integers, integers) + self._constant**2
        # The factor is smaller than the quotient by more than all roundings can add, and cutting
        # towards zero only shrinks: no row is longer than the radius.
        factors = FEATURE_RADIUS / np.sqrt(squared.astype(np.float64)) * SHRINK
        out *= factors[:, None]
        np.trunc(out, out=out)

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return φ(q): (heads, m, d), clipped, to (heads, m, d + 1)."""
        xp = namespace(queries)
        stretched = queries * (self.stretch / self.key_norm)
        one = xp.ones_like(stretched[..., :1])
        length = xp.sqrt(1 + xp.sum(stretched * stretched, axis=-1, keepdims=True))
        return xp.concat([one, stretched], axis=-1) / length

    def describe(self) -> str:
        """Return how many columns there are."""
        return f"a constant and {self.dim:,} columns, as rays ({self.features:,} features)"
