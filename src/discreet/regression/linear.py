"""A constant and the columns themselves: what straight lines are made of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.kernels.maps import FEATURE_RADIUS, SHRINK
from discreet.regression.lines import Lines


@dataclass(frozen=True)
class Linear(Lines):
    """φ(x) = [1; s·x/key_norm]/√(1 + s²), with s = stretch: r = d + 1, and length one at the most.

    A prediction is linear in x, exactly.
    """

    kind: ClassVar[str] = "linear"

    @property
    def least_inner(self) -> int:
        """That of two keys that are opposite and as long as can be; they share the constant."""
        return min(self._constant**2 - self._reach**2, 0)

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
