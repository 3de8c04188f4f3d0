"""What a row adds to least squares: w ⊗ a as in a memory, and a ⊗ a beside it.

The second moments Σ a ⊗ a are symmetric, so the diagonal and what is above it are released. In the
norm of a contribution what is above counts twice: then it is the norm of the whole matrix, which is
‖a‖² exactly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.kernels import FEATURE_RADIUS
from discreet.memory.row_layout import RowLayout
from discreet.privacy import Neighbours
from discreet.regression import registry
from discreet.regression.maps import QueryMap

# More than all roundings of a bound together.
_ROUNDING = 1 + 2.0**-47

# With less, or more, one of the two parts is all noise.
_LEAST_SHARE, _MOST_SHARE = 1e-3, 0.99


def check_share(share: float) -> float:
    """Return a share of the squared budget, if it is none, or one that second moments can use."""
    share = _validate.real("share", share, at_least=0, at_most=_MOST_SHARE)
    return share if share == 0 else _validate.real("share", share, at_least=_LEAST_SHARE)


@dataclass(frozen=True, kw_only=True)
class Moments(RowLayout):
    """Map, bounds, lattice and shares of one regression.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: leading axes of keys and values; () for one head.
        value_dim: d_v.
        value_norm: bound on ‖v‖₂; public, enforced by clipping.
        tau: τ, the weight of the column that counts rows.
        resolution: `value_norm` is at most 2^resolution lattice units.
        share: of the squared budget that the second moments have; zero if none are released.
        ridge: λ, in units of the noise (`solution`).
        centred: whether predictions are shrunk towards the mean of all values, and not to zero.
        moment: the mean of [φ; 1] ⊗ [φ; 1] over public rows, shape (r + 1, r + 1), if there are
            any.
    """

    noun: ClassVar[tuple[str, str]] = ("regression", "regressions")

    kernel: QueryMap
    share: float
    ridge: float
    centred: bool
    moment: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        registry.check_registered(self.kernel)
        object.__setattr__(self, "share", check_share(self.share))
        ridge = _validate.real("ridge", self.ridge, at_least=1e-3, at_most=1e3)
        object.__setattr__(self, "ridge", ridge)
        if not isinstance(self.centred, bool):
            _validate.reject("centred", self.centred, "True or False")
        self._check_moment()
        super().__post_init__()

    def _check_moment(self) -> None:
        if self.moment is None:
            return
        # What is checked stays as it is.
        object.__setattr__(self, "moment", np.array(self.moment))
        count = self.kernel.features + 1
        shaped = self.moment.shape == (count, count) and self.moment.dtype == np.float64
        if not shaped or not np.all(np.abs(self.moment) <= 1 + 1e-6):
            _validate.reject("moment", "...", f"means of products, shape {(count, count)}")
        self.moment.flags.writeable = False

    @property
    def or_else(self) -> str:
        """A larger share, or less influence of a record."""
        return f", or share={self.share:.3g} to be, or group_rows to be smaller"

    @property
    def part_names(self) -> tuple[str, ...]:
        """The sums over w ⊗ a, then the second moments: diagonal, and what is above it."""
        return ("state", "diagonal", "upper") if self.share else ("state",)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """(heads, d_v + 1, r), (heads, r) and (heads, r·(r - 1)/2)."""
        if not self.share:
            return (self.shape,)
        heads, count = self.head_count, self.kernel.features
        return (self.shape, (heads, count), (heads, count * (count - 1) // 2))

    @cached_property
    def _moment_weight(self) -> float:
        """How much a second moment counts beside an entry of w ⊗ a.

        With it the moments have `share` of the squared norm of the longest contribution.
        """
        return self.outer_bound / FEATURE_RADIUS**2 * math.sqrt(self.share / (1 - self.share))

    @property
    def part_weights(self) -> tuple[float, ...]:
        """What is above the diagonal stands for what is below it, too."""
        if not self.share:
            return (1.0,)
        return (1.0, self._moment_weight, self._moment_weight * math.sqrt(2))

    @property
    def row_bound(self) -> float:
        """The largest norm of a row's contribution to one head, parts times their weights.

        ‖w ⊗ a‖² + g²·‖a ⊗ a‖² ≤ C² + g²·R⁴, with g the weight of the moments.
        """
        if not self.share:
            return self.outer_bound
        moments = self._moment_weight * FEATURE_RADIUS**2
        return math.hypot(self.outer_bound, moments) * _ROUNDING

    def row_sensitivity(self, neighbours: Neighbours) -> float:
        """Return how far one head's sums can move when one row changes, parts times their weights.

        Added or removed: `row_bound`. Replaced: with c = ⟨a, a'⟩ the squared distance is at most

            2·R²·(V² + τ²) - 2·c·⟨w, w'⟩ + 2·g²·(R⁴ - c²),

        ⟨w, w'⟩ from τ² - V² to τ² + V², and c from the map's `least_inner` to R². Either sign of c
        leaves a parabola in |c|, whose top is known. `docs/privacy.md`, "Least squares".
        """
        if neighbours is Neighbours.ADD_REMOVE or not self.share:
            return super().row_sensitivity(neighbours)
        radius, values, tau = FEATURE_RADIUS**2, self.value_radius**2, self.tau_units**2
        squared_weight = self._moment_weight**2
        branches = ((values - tau, radius), (values + tau, -self.kernel.least_inner))
        gain = 0.0
        for slope, most in branches:
            at = min(max(slope / (2 * squared_weight), 0.0), max(most, 0.0))
            gain = max(gain, slope * at - squared_weight * at**2)
        squared = radius * (values + tau) + squared_weight * radius**2 + gain
        return math.sqrt(2 * squared) * _ROUNDING

    def contribution(self, features: Floats, weighed: Floats) -> tuple[Integers, ...]:
        """Return what some rows add to each part, exactly."""
        sums = super().contribution(features, weighed)
        if not self.share:
            return sums
        # numpy sees that both factors are the same, and does half of the work.
        products = np.matmul(features.swapaxes(1, 2), features)
        flat = products.reshape(len(products), -1)
        upper = np.take(flat, self._upper, axis=1).astype(np.int64)
        diagonal = np.diagonal(products, axis1=1, axis2=2).astype(np.int64)
        return (*sums, diagonal, upper)

    @cached_property
    def _upper(self) -> Integers:
        """Where a matrix has what is above its diagonal, row by row."""
        rows, columns = np.triu_indices(self.kernel.features, 1)
        return np.asarray(rows * self.kernel.features + columns)

    def matrices(self, diagonal: Integers, upper: Integers) -> Floats:
        """Return second moments as symmetric matrices, in lattice units, shape (heads, r, r)."""
        count = self.kernel.features
        whole = np.zeros((len(diagonal), count * count))
        whole[:, self._upper] = upper
        square = whole.reshape(-1, count, count)
        square += square.swapaxes(1, 2).copy()
        places = np.arange(count)
        square[:, places, places] = diagonal
        return square

    @property
    def _largest_term(self) -> int:
        entry = self.kernel.entry_bound
        return max(self._largest_product, entry * entry if self.share else 0)

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        public = self.moment is not None
        own = {"share": self.share, "ridge": self.ridge, "centred": self.centred, "public": public}
        return {**super().parameters(), **own}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the map's arrays, and the public moment if there is one."""
        own: dict[str, NDArray[np.generic]] = {}
        if self.moment is not None:
            own["moment"] = self.moment
        return {**super().arrays(), **own}

    @classmethod
    def restore(
        cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> "Moments":
        """Return the layout with these `parameters`, and these arrays of its map."""
        names = ("value_dim", "value_norm", "tau", "resolution", "share", "ridge", "centred")
        return cls(
            kernel=registry.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            **{name: parameters[name] for name in names},
            moment=arrays["moment"] if parameters["public"] else None,
        )
