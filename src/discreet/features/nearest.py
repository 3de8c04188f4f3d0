"""Which of some public points a row is nearest to: φ is one there, and zero elsewhere."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import CorruptRelease, InvalidInput
from discreet.features.base import FEATURE_RADIUS, KEY_RESOLUTION, RowMap
from discreet.noise import Lattice

# Points are public: as many as are of any use.
MOST_POINTS = 2**17

# Products of so many rows with all points are computed at a time.
_BLOCK = 2**20

_LATTICE = Lattice.for_norm(1.0, resolution=KEY_RESOLUTION)


@dataclass(frozen=True, eq=False)
class Nearest(RowMap):
    """The point whose inner product with a row is largest, the first of those that share it.

    Points have length one at the most, so among points of length one it is the nearest. Rows and
    points are rounded to integers, and their products are exact: a row has the same point alone,
    in any batch and at any position, and no point but its own depends on it.

    Attributes:
        points: public, shape (T, d); longer ones are brought to length one. Kept as integers.
        key_norm: bound on the length of rows; longer ones are clipped, which changes no point.
    """

    kind: ClassVar[str] = "nearest"
    argument: ClassVar[str] = "points"

    points: Array = field(repr=False)
    _: KW_ONLY
    key_norm: float = 1.0

    def __post_init__(self) -> None:
        given = np.asarray(plain_numbers("points", self.points))
        if given.ndim != 2 or not given.size or not np.all(np.isfinite(given)):
            raise InvalidInput("Expected points to be finite numbers of shape (T, d).")
        if len(given) > MOST_POINTS:
            _validate.reject("points", f"{len(given):,} of them", f"at most {MOST_POINTS:,}")
        rounded = _LATTICE.clip_rows(given.astype(np.float64), norm=1.0).astype(np.int32)
        rounded.flags.writeable = False
        norm = _validate.real("key_norm", self.key_norm, above=0)
        self._set(points=rounded, key_norm=norm)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Nearest):
            return NotImplemented
        return self.key_norm == other.key_norm and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash((self.key_norm, self.points.tobytes()))

    @property
    def dim(self) -> int:  # type: ignore[override]  # it follows from the points
        """D."""
        return int(self.points.shape[1])

    @property
    def features(self) -> int:
        """T, one for each point."""
        return len(self.points)

    @property
    def unit(self) -> float:
        """The integer feature of the nearest point."""
        return float(FEATURE_RADIUS)

    @property
    def least_inner(self) -> int:
        """Rows of two points have nothing in common."""
        return 0

    @property
    def operations(self) -> int:
        """A product with each point."""
        return 2 * self.dim * self.features

    @cached_property
    def real_points(self) -> Floats:
        """The points as they are used, shape (T, d)."""
        return np.asarray(_LATTICE.to_real(self.points.astype(np.int64)))

    @cached_property
    def _columns(self) -> Floats:
        return np.ascontiguousarray(self.points.T, dtype=np.float64)

    def nearest(self, keys: Floats) -> Integers:
        """Return the number of each row's nearest point, shape (n,).

        Args:
            keys: of any finite size, shape (n, d).
        """
        return self._nearest(self.key_lattice.clip_rows(keys, norm=self.key_norm))

    def _nearest(self, integers: Integers) -> Integers:
        found = np.empty(len(integers), dtype=np.int64)
        rows = max(_BLOCK // self.features, 1)
        for start in range(0, len(integers), rows):
            block = slice(start, start + rows)
            # Exact: Σ|z·p| ≤ ‖z‖·‖p‖ ≤ 2^44. Ties go to the first.
            products = np.matmul(integers[block].astype(np.float64), self._columns)
            np.argmax(products, axis=1, out=found[block])
        return found

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys.

        Args:
            integers: rounded keys, shape (n, d).
            out: where features are written, shape (n, T).
        """
        out[:] = 0.0
        out[np.arange(len(out)), self._nearest(integers)] = FEATURE_RADIUS

    def describe(self) -> str:
        """Return how many points there are."""
        return f"the nearest of {self.features:,} public points"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the points, make the same map again."""
        return {"kind": self.kind, "key_norm": self.key_norm}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The points."""
        return {"points": self.points}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the map with these `parameters` and `arrays`.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.
        """
        points = arrays["points"]
        if points.dtype != np.int32 or points.ndim != 2:
            raise CorruptRelease("Expected points to be whole numbers of shape (T, d).")
        made = cls(_LATTICE.to_real(points.astype(np.int64)), **parameters)
        if not np.array_equal(made.points, points):
            raise CorruptRelease("Expected points of length one at the most.")
        return made
