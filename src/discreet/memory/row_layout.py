"""What a row contributes, in integers, and how far: all of it is fixed before a row is read.

A row with key k contributes the integer matrix w ⊗ a: a are the integer features of k, and w is
made of the row's value (`ValueLayout`: the value itself and a weight). Both are bounded exactly, so
the norm of a contribution is, too: no rounding slack is left to estimate.
"""

import abc
import math
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput
from discreet.kernels import FEATURE_RADIUS, RowMap
from discreet.privacy import Neighbours

# Sums stay below this, which leaves room for the noise in int64.
_LARGEST_SUM = 2**62

# float64 holds every integer up to this, so products of that many terms are exact.
_EXACT_FLOAT = 2**53

# A sum of a few squared integers has an exact square root up to less than this.
_ROUNDING = 1 + 2.0**-50


@dataclass(frozen=True, kw_only=True)
class RowLayout(abc.ABC):
    """Map, bounds and lattice of one layer, with its heads.

    What rows add up to falls into one part or several: arrays of integers, each with a public
    weight. The contribution of a row, each part times its weight, has a norm of at most
    `row_bound`; the noise on a part is σ over its weight. `docs/privacy.md`, "Least squares".

    Attributes:
        noun: what is built of it, in one word, and in the plural.
        kernel: the feature map of keys.
        heads: leading axes of keys and values; () for one head.
    """

    noun: ClassVar[tuple[str, str]]

    kernel: RowMap
    heads: tuple[int, ...]

    def __post_init__(self) -> None:
        self.kernel.check_integers()
        if not self.kernel.takes_signed_keys:
            _validate.reject("kernel.nonnegative", value=True, wanted="False: keys are not checked")
        heads = tuple(_validate.whole("heads", length, at_least=1) for length in self.heads)
        object.__setattr__(self, "heads", heads)

    @property
    def head_count(self) -> int:
        """How many heads there are."""
        return math.prod(self.heads)

    @property
    @abc.abstractmethod
    def value_width(self) -> int:
        """How many numbers the value of a row is, as the caller gives it."""

    @property
    @abc.abstractmethod
    def columns(self) -> int:
        """How many numbers w is."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the sums over w ⊗ a: (heads, columns, r)."""
        return (self.head_count, self.columns, self.kernel.features)

    @property
    def or_else(self) -> str:
        """What else than a larger ε helps where the noise is too large to be drawn."""
        return ""

    @property
    def part_names(self) -> tuple[str, ...]:
        """What a file calls each part."""
        return ("state",)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part; the first is `shape`."""
        return (self.shape,)

    @property
    def part_weights(self) -> tuple[float, ...]:
        """The weight of each part in the norm of a contribution; the first is one."""
        return (1.0,)

    @abc.abstractmethod
    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:
        """Return w of some rows: integers stored as float64, shape (heads, m, columns).

        Row by row, to the bit: what a row has depends on nothing but that row and public numbers.

        Args:
            features: integers, shape (heads, m, r).
            values: of any finite size, shape (heads·m, value_width), head by head.
            weights: of the map, from 0 to 1, shape (heads·m,); None if all are one.
        """

    def contribution(self, features: Floats, weighed: Floats) -> tuple[Integers, ...]:
        """Return what some rows add to each part, exactly.

        Args:
            features: integers, shape (heads, m, r); m is at most `exact_rows`.
            weighed: integers, shape (heads, m, columns).
        """
        # This orientation is half as fast again as its transpose in BLAS.
        return (np.asarray(np.matmul(weighed.swapaxes(1, 2), features), dtype=np.int64),)

    @property
    def row_bound(self) -> float:
        """C: the largest norm of a row's contribution to one head, in lattice units."""
        return self.outer_bound

    @property
    @abc.abstractmethod
    def outer_bound(self) -> float:
        """The largest norm of w ⊗ a."""

    @property
    @abc.abstractmethod
    def inner_range(self) -> tuple[int, int]:
        """The least and the most that ⟨w, w'⟩ of two rows can be; ‖w‖² is at most the latter."""

    def row_sensitivity(self, neighbours: Neighbours) -> float:
        """Return how far one head's state can move when one row changes, in lattice units (L2).

        Added or removed: C. Replaced: ‖w⊗a - w'⊗a'‖² = ‖w‖²‖a‖² + ‖w'‖²‖a'‖² - 2⟨w, w'⟩⟨a, a'⟩ with
        ⟨a, a'⟩ at least the kernel's `least_inner` and ⟨w, w'⟩ within `inner_range`: at most 2·C.
        `docs/privacy.md`, "Memory".
        """
        if neighbours is Neighbours.ADD_REMOVE:
            return self.row_bound
        features, (least, most) = FEATURE_RADIUS**2, self.inner_range
        opposite = max(features * -least, -self.kernel.least_inner * most)
        return math.sqrt(2 * features * most + 2 * opposite) * _ROUNDING

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        return {"kernel": self.kernel.parameters(), "heads": list(self.heads)}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the public arrays that belong to it."""
        return self.kernel.arrays()

    @property
    def most_rows(self) -> int:
        """With so many rows all sums fit int64, whatever the rows are."""
        return _LARGEST_SUM // self._largest_term

    @property
    def exact_rows(self) -> int:
        """So many rows can be added up by float64 products without a rounding error."""
        return _EXACT_FLOAT // self._largest_term

    @property
    def _largest_term(self) -> int:
        return self._largest_product

    @property
    @abc.abstractmethod
    def _largest_product(self) -> int:
        """Of a feature and an entry of w."""

    def check_rows(self, rows: int) -> None:
        """Raise `InvalidInput` if sums over so many rows might leave int64."""
        if rows > self.most_rows:
            # Values can be rounded more, and leave room for more rows; features cannot.
            helps = self._largest_term == self._largest_product
            advice = ": raise rows_hint" if helps else ""
            raise InvalidInput(f"Expected at most {self.most_rows:,} rows on this lattice{advice}.")


# Whose layouts they are: a memory's, or another kind's.
AnyLayout_co = TypeVar("AnyLayout_co", bound=RowLayout, covariant=True)
