"""Cells of public points and labels: every row is in the cell of its nearest point and its label.

Where there are many labels, a row is also counted without its label, with a share of ε: the sum of
many noisy cells would be worse.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput
from discreet.features.nearest import Nearest
from discreet.readers.softmax.rows import check_classes
from discreet.sums.cells import CellLayout

# With more labels than this, points are counted by themselves, with this share of ε.
_FEW_LABELS, _TOTALS_SHARE = 4, 0.3

# As many cells as are of any use.
MOST_CELLS = 2**24


@dataclass(frozen=True, kw_only=True)
class TableLayout(CellLayout):
    """Points × labels, in whole numbers.

    Attributes:
        kernel: the points.
        heads: ().
        units: how much a row adds to its cell, in lattice units.
        classes: the labels, public, in order; () if rows have none.
    """

    noun: ClassVar[tuple[str, str]] = ("table", "tables")

    kernel: Nearest
    classes: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes:
            check_classes(self.classes)
        if self.kernel.features * self.labels > MOST_CELLS:
            raise InvalidInput(f"Expected at most {MOST_CELLS:,} cells, points times labels.")

    @property
    def labels(self) -> int:
        """How many columns the table has: one for each label; one if there are none."""
        return max(len(self.classes), 1)

    @property
    def counts_points(self) -> bool:
        """Whether rows are counted without their labels, too."""
        return self.labels > _FEW_LABELS

    @property
    def value_width(self) -> int:
        """The number of a row's label."""
        return 1

    @property
    def columns(self) -> int:
        """The labels."""
        return self.labels

    @property
    def part_names(self) -> tuple[str, ...]:
        """Cells, and counts of points."""
        return ("state", "totals") if self.counts_points else ("state",)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of cells (1, labels, points), and of counts of points (1, 1, points)."""
        return (self.shape, (1, 1, self.shape[2])) if self.counts_points else (self.shape,)

    @property
    def part_weights(self) -> tuple[float, ...]:
        """The share of ε that each part has."""
        return (1 - _TOTALS_SHARE, _TOTALS_SHARE) if self.counts_points else (1.0,)

    def cells(self, keys: Floats, values: Floats) -> Integers:
        """Return the cell of each row, and its point if these are counted, too: (m, parts).

        Args:
            keys: of any finite size, shape (m, d).
            values: the number of each row's label, shape (m, 1); one that is no label counts as the
                nearest that is.
        """
        points = self.kernel.nearest(keys)
        labels = np.clip(np.rint(values[:, 0]), 0, self.labels - 1).astype(np.int64)
        cells = labels * self.kernel.features + points
        return np.stack([cells, points] if self.counts_points else [cells], axis=1)

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        return {**super().parameters(), "units": self.units, "classes": list(self.classes)}

    @classmethod
    def restore(
        cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> "TableLayout":
        """Return the layout with these `parameters` and points.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        given = dict(parameters["kernel"])
        if given.pop("kind") != Nearest.kind:
            _validate.reject("kernel", "...", "the nearest of some points")
        return cls(
            kernel=Nearest.restore(given, arrays),
            heads=tuple(parameters["heads"]),
            units=parameters["units"],
            classes=tuple(parameters["classes"]),
        )

    @cached_property
    def combined(self) -> float:
        """How much the sum over labels counts in the count of a point; the rest is its own count.

        In proportion to how exact each is: the variance of a sum over L labels is L times that of a
        cell, and variances are as 1/share².
        """
        if not self.counts_points:
            return 1.0
        cells, points = self.part_weights
        ratio = self.labels * (points / cells) ** 2
        return 1 / (1 + ratio)


def units_for(scale: float) -> int:
    """Return how finely rows are counted for noise of such a scale, in rows.

    Whole rows, which lose least to the noise, unless it is too small to be drawn in them.

    Args:
        scale: the smallest of all parts.
    """
    return 1 if scale >= 0.5 else 2 ** max(4, math.ceil(math.log2(0.5 / scale)))
