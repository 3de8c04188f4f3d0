"""Lines and waves side by side: mostly straight lines, bent where the rows say so."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS, SHRINK, QueryMap
from discreet.features.fourier import Waves
from discreet.features.linear import Linear, Rays

LINES: tuple[type[Linear] | type[Rays], ...] = (Linear, Rays)


@dataclass(frozen=True)
class LinesAndWaves(QueryMap):
    """φ(x) = [√a·lines(x); √(1 - a)·waves(x)], a = portion: length one at the most.

    For few columns, whose numbers matter straight and otherwise. The two are shrunk apart from each
    other (`block_sizes`).

    Attributes:
        lines: the first features: `Linear` for numbers, `Rays` for classes.
        waves: the others, for the same keys.
        portion: of the squared length that the lines have.
    """

    kind: ClassVar[str] = "lines_and_waves"

    lines: Linear | Rays
    waves: Waves
    _: KW_ONLY
    portion: float = 0.7

    def __post_init__(self) -> None:
        # A subclass may have features that no proof covers.
        if type(self.lines) not in LINES:
            _validate.reject_argument("lines", self.lines, "exactly a Linear or a Rays")
        if type(self.waves) is not Waves:
            _validate.reject_argument("waves", self.waves, "exactly a Waves")
        if (self.lines.dim, self.lines.key_norm) != (self.waves.dim, self.waves.key_norm):
            _validate.reject(
                "waves", "...", "for keys of the width and norm that the lines are for"
            )
        portion = _validate.real("portion", self.portion, at_least=0.01, at_most=0.99)
        object.__setattr__(self, "portion", portion)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """The number of coordinates d."""
        return self.lines.dim

    @property
    def key_norm(self) -> float:  # type: ignore[override]
        """The bound on ‖x‖₂."""
        return self.lines.key_norm

    @property
    def features(self) -> int:
        """Those of both."""
        return self.lines.features + self.waves.features

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Lines, then waves."""
        return (self.lines.features, self.waves.features)

    @property
    def unit(self) -> float:
        """Integer features have the length of the radius, but for rounding."""
        return float(FEATURE_RADIUS)

    @property
    def entry_bound(self) -> int:
        """No coordinate exceeds the norm."""
        return FEATURE_RADIUS

    @property
    def operations(self) -> int:
        """Those of both, and a product for each feature."""
        return self.lines.operations + self.waves.operations + self.features

    def check_integers(self) -> None:
        """Raise `InvalidInput` unless both parts are within their bounds."""
        self.lines.check_integers()
        self.waves.check_integers()

    @cached_property
    def _factors(self) -> Floats:
        """What each integer feature is multiplied by, shape (r,); squares add up to one or less."""
        lines = math.sqrt(self.portion) * FEATURE_RADIUS / self.lines.unit
        # The waves' own length, which is a little below the radius, becomes the radius.
        waves = math.sqrt(1 - self.portion) * FEATURE_RADIUS / self._waves_radius
        factors = np.repeat([lines, waves], self.block_sizes) * SHRINK
        factors.flags.writeable = False
        return factors

    @property
    def _waves_radius(self) -> float:
        """A bound on the length of the waves' integer features: each pair is rounded by √½."""
        return min(self.waves.unit + math.sqrt(self.waves.frequencies), float(FEATURE_RADIUS))

    def _fill(self, integers: Integers, out: Floats) -> None:
        split = self.lines.features
        lines, waves = np.empty((len(out), split)), np.empty((len(out), out.shape[1] - split))
        self.lines.fill(integers, lines)
        self.waves.fill(integers, waves)
        out[:, :split], out[:, split:] = lines, waves
        # Factors are smaller than they might be by more than they are rounded, and cutting towards
        # zero only shrinks: a·R² + (1 - a)·R² is the most that is left.
        out *= self._factors
        np.trunc(out, out=out)

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return those of the waves; lines need none."""
        return self.waves.query_arrays()

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q): (heads, m, d), clipped, to (heads, m, r)."""
        lines = self.lines.query_features(queries, arrays) * math.sqrt(self.portion)
        shrunk = math.sqrt(1 - self.portion) * self.waves.unit / self._waves_radius
        waves = self.waves.query_features(queries, arrays) * shrunk
        return namespace(queries).concat([lines, waves], axis=-1)

    def describe(self) -> str:
        """Return what both are."""
        return f"{self.lines.describe()}, and {self.waves.describe()}"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the arrays of the waves, make the same map again."""
        return {
            "kind": self.kind,
            "lines": self.lines.parameters(),
            "waves": self.waves.parameters(),
            "portion": self.portion,
        }

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return those of the waves."""
        return self.waves.arrays()

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the map that has these `parameters` (but for the kind) and `arrays`."""
        given = dict(parameters)
        lines, waves = dict(given.pop("lines")), dict(given.pop("waves"))
        kinds = {kind.kind: kind for kind in LINES}
        kind = lines.pop("kind")
        if kind not in kinds or waves.pop("kind") != Waves.kind:
            _validate.reject("kind", "...", "lines and waves")
        return cls(kinds[kind].restore(lines, {}), Waves.restore(waves, arrays), **given)
