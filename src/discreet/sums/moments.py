"""Second moments of features, Σ a ⊗ a, beside whatever else rows add up to.

The matrix is symmetric, so only its diagonal and what is above that are released. In the norm of a
contribution what is above counts twice: then it is the norm of the whole matrix, which is ‖a‖²
exactly.

Products of features are large integers, and their noise is large in proportion. Where it would be
too large to be drawn, features are cut to fewer bits before they are squared: noise as large as
that hides the difference.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.features.base import FEATURE_RADIUS
from discreet.noise.exact import LARGEST_SCALE
from discreet.privacy import Neighbours, Privacy
from discreet.sums.layout import RowLayout
from discreet.sums.settings import Unit, noise_multiplier, part_sigmas, unit_sensitivity

# More than all roundings of a bound together.
_ROUNDING = 1 + 2.0**-47

# With less, or more, one of the two parts is all noise.
_LEAST_SHARE, _MOST_SHARE = 1e-3, 0.99

# Features keep at least 8 of their 16 bits.
_MOST_COARSE = 8


def check_share(share: float) -> float:
    """Return a share of the squared budget, if it is zero, or neither too small nor too large.

    Args:
        share: 0, or from 0.001 to 0.99.
    """
    share = _validate.real("share", share, at_least=0, at_most=_MOST_SHARE)
    return share if share == 0 else _validate.real("share", share, at_least=_LEAST_SHARE)


@dataclass(frozen=True, kw_only=True)
class SecondMoments(RowLayout):
    """A layout whose rows add a ⊗ a, too.

    Attributes:
        share: of the squared norm of a contribution that the second moments have; zero if none are
            released.
        coarseness: how many bits features lose before they are squared.
    """

    share: float
    coarseness: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check_share(self.share))
        lost = _validate.whole("coarseness", self.coarseness, at_least=0, at_most=_MOST_COARSE)
        object.__setattr__(self, "coarseness", lost)
        super().__post_init__()

    @property
    def moment_unit(self) -> float:
        """How many integer units of a feature one stands for, where features are squared."""
        return math.ldexp(self.kernel.unit, -self.coarseness)

    @property
    def _moment_radius(self) -> int:
        """The norm bound of features that are squared: cutting towards zero only shrinks."""
        return FEATURE_RADIUS >> self.coarseness

    def coarse(self, features: Floats) -> Floats:
        """Return features as they are squared: integers stored as float64.

        Args:
            features: integers stored as float64, shape (heads, m, r).
        """
        if not self.coarseness:
            return features
        return np.asarray(np.trunc(features * 2.0**-self.coarseness))

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
        return self.outer_bound / self._moment_radius**2 * math.sqrt(self.share / (1 - self.share))

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
        moments = self._moment_weight * self._moment_radius**2
        return math.hypot(self.outer_bound, moments) * _ROUNDING

    def row_sensitivity(self, neighbours: Neighbours) -> float:
        """Return how far one head's sums can move when one row changes, parts times their weights.

        Added or removed: `row_bound`. Replaced: with c = ⟨a, a'⟩ the squared distance is at most

            2·R²·‖w‖² - 2·c·⟨w, w'⟩ + 2·g²·(R⁴ - c²),

        ⟨w, w'⟩ within `inner_range`, and c from the map's `least_inner` to R². Either sign of c
        leaves a parabola in |c|, whose top is known. `docs/privacy.md`, "Least squares". Where
        features are cut before they are squared, c is another number in the last term, which is at
        most 2·g²·R⁴ with the R of the cut ones.

        Args:
            neighbours: whether a row is added or removed, or replaced.
        """
        if neighbours is Neighbours.ADD_REMOVE or not self.share:
            return super().row_sensitivity(neighbours)
        if self.coarseness:
            moments = self._moment_weight * self._moment_radius**2
            alone = super().row_sensitivity(neighbours)
            return math.hypot(alone, math.sqrt(2) * moments) * _ROUNDING
        radius, (least, most_inner) = FEATURE_RADIUS**2, self.inner_range
        squared_weight = self._moment_weight**2
        branches = ((-least, radius), (most_inner, -self.kernel.least_inner))
        gain = 0.0
        for slope, most in branches:
            at = min(max(slope / (2 * squared_weight), 0.0), max(most, 0.0))
            gain = max(gain, slope * at - squared_weight * at**2)
        squared = radius * most_inner + squared_weight * radius**2 + gain
        return math.sqrt(2 * squared) * _ROUNDING

    def contribution(self, features: Floats, weighed: Floats) -> tuple[Integers, ...]:
        """Return what some rows add to each part, exactly.

        Args:
            features: integers, shape (heads, m, r); m is at most `exact_rows`.
            weighed: integers, shape (heads, m, columns).
        """
        sums = super().contribution(features, weighed)
        if not self.share:
            return sums
        # numpy sees that both factors are the same, and does half of the work.
        squared = self.coarse(features)
        products = np.matmul(squared.swapaxes(1, 2), squared)
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
        """Return second moments as symmetric matrices, in lattice units, shape (heads, r, r).

        Args:
            diagonal: shape (heads, r).
            upper: what is above it, row by row, shape (heads, r·(r - 1)/2).
        """
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


AnyMoments = TypeVar("AnyMoments", bound=SecondMoments)


def drawable(
    layout: AnyMoments, privacy: Privacy, unit: Unit, group_rows: float, share: float = 1.0
) -> AnyMoments:
    """Return the layout, with features cut before they are squared if noise needs that to be drawn.

    Args:
        layout: of one layer.
        privacy: what the whole release may spend.
        unit: a row, or a record of many rows.
        group_rows: the influence of a record.
        share: of the squared budget that sums with this layout have.
    """
    sensitivity = unit_sensitivity(layout, privacy.neighbours, unit, group_rows)
    sigma = noise_multiplier(privacy, layout.head_count) * sensitivity / math.sqrt(share)
    excess = max(part_sigmas(layout, sigma)) / LARGEST_SCALE
    if excess <= 1:
        return layout
    # Twice as much as is needed: a bound for features that are cut is a little larger.
    lost = min(math.ceil(math.log2(2 * excess) / 2), _MOST_COARSE)
    return replace(layout, coarseness=lost)
