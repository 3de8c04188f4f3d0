"""Linear and random Fourier features side by side: straight lines, bent where rows say so."""

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
from discreet.features.base import FEATURE_RADIUS, SHRINK, SymmetricMap
from discreet.features.fourier import UnitFourier
from discreet.features.linear import Linear, UnitLinear

_LINEAR: dict[str, type[Linear] | type[UnitLinear]] = {
    kind.kind: kind for kind in (Linear, UnitLinear)
}


@dataclass(frozen=True)
class LinearAndFourier(SymmetricMap):
    """φ(x) = [√a·linear(x); √(1 - a)·fourier(x)], a = portion: length one at the most.

    For few columns, whose numbers matter straight and otherwise. The two are shrunk apart from each
    other (`block_sizes`).

    Attributes:
        linear: the first features: `Linear` for numbers, `UnitLinear` for classes.
        fourier: the others, for the same keys.
        portion: of the squared length that the linear features have.
    """

    # Files know the map and its two parts under these names.
    kind: ClassVar[str] = "lines_and_waves"
    aliases: ClassVar[tuple[str, ...]] = ("linear_and_fourier",)

    linear: Linear | UnitLinear
    fourier: UnitFourier
    _: KW_ONLY
    portion: float = 0.7

    def __post_init__(self) -> None:
        # A subclass may have features that no proof covers.
        if type(self.linear) not in _LINEAR.values():
            _validate.reject_argument("linear", self.linear, "exactly a Linear or a UnitLinear")
        if type(self.fourier) is not UnitFourier:
            _validate.reject_argument("fourier", self.fourier, "exactly a UnitFourier")
        if (self.linear.dim, self.linear.key_norm) != (self.fourier.dim, self.fourier.key_norm):
            wanted = "for keys of the width and norm that the linear features are for"
            _validate.reject("fourier", "...", wanted)
        self._set(portion=_validate.real("portion", self.portion, at_least=0.01, at_most=0.99))

    @property
    def dim(self) -> int:  # type: ignore[override]
        """The number of coordinates d."""
        return self.linear.dim

    @property
    def key_norm(self) -> float:  # type: ignore[override]
        """The bound on ‖x‖₂."""
        return self.linear.key_norm

    @property
    def features(self) -> int:
        """Those of both."""
        return self.linear.features + self.fourier.features

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Linear, then Fourier features."""
        return (self.linear.features, self.fourier.features)

    @property
    def operations(self) -> int:
        """Those of both, and a product for each feature."""
        return self.linear.operations + self.fourier.operations + self.features

    def check_integers(self) -> None:
        """Raise `InvalidInput` unless both parts are within their bounds."""
        self.linear.check_integers()
        self.fourier.check_integers()

    @cached_property
    def _factors(self) -> Floats:
        """What each integer feature is multiplied by, shape (r,); squares add up to one or less."""
        linear = math.sqrt(self.portion) * FEATURE_RADIUS / self.linear.unit
        # Fourier features' own length, which is a little below the radius, becomes the radius.
        fourier = math.sqrt(1 - self.portion) * FEATURE_RADIUS / self._fourier_radius
        factors = np.repeat([linear, fourier], self.block_sizes) * SHRINK
        factors.flags.writeable = False
        return factors

    @property
    def _fourier_radius(self) -> float:
        """A bound on the length of integer Fourier features: each pair is rounded by √½."""
        return min(self.fourier.unit + math.sqrt(self.fourier.frequencies), float(FEATURE_RADIUS))

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys.

        Args:
            integers: rounded keys, shape (n, d).
            out: where features are written, shape (n, r).
        """
        split = self.linear.features
        linear, fourier = np.empty((len(out), split)), np.empty((len(out), out.shape[1] - split))
        self.linear.fill(integers, linear)
        self.fourier.fill(integers, fourier)
        out[:, :split], out[:, split:] = linear, fourier
        # Factors are smaller than they might be by more than they are rounded, and cutting towards
        # zero only shrinks: a·R² + (1 - a)·R² is the most that is left.
        out *= self._factors
        np.trunc(out, out=out)

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return those of the Fourier features; linear ones need none."""
        return self.fourier.query_arrays()

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q): (heads, m, d), clipped, to (heads, m, r).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `query_arrays`, where and in which precision the queries are.
        """
        linear = self.linear.query_features(queries, arrays) * math.sqrt(self.portion)
        shrunk = math.sqrt(1 - self.portion) * self.fourier.unit / self._fourier_radius
        fourier = self.fourier.query_features(queries, arrays) * shrunk
        return namespace(queries).concat([linear, fourier], axis=-1)

    def describe(self) -> str:
        """Return what both are."""
        return f"{self.linear.describe()}, and {self.fourier.describe()}"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the arrays of the Fourier features, make the map again."""
        return {
            "kind": self.kind,
            "lines": self.linear.parameters(),
            "waves": self.fourier.parameters(),
            "portion": self.portion,
        }

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return those of the Fourier features."""
        return self.fourier.arrays()

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the map that has these `parameters` (but for the kind) and `arrays`.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.
        """
        given = dict(parameters)
        linear, fourier = dict(given.pop("lines")), dict(given.pop("waves"))
        kind = linear.pop("kind")
        if kind not in _LINEAR or fourier.pop("kind") != UnitFourier.kind:
            _validate.reject("kind", "...", "lines and waves")
        return cls(_LINEAR[kind].restore(linear, {}), UnitFourier.restore(fourier, arrays), **given)
