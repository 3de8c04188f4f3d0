"""Counts of rows in public cells: a row adds one to a few of them. The layout, and a view of rows.

A row marks at most one cell of each of `marks` lists. All rows share one constant key; in units of
its radius times a mark, a contribution has a norm of at most √marks: no rounding at all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS
from discreet.features.linear import UnitLinear
from discreet.privacy import Neighbours
from discreet.sums.door import Door
from discreet.sums.layout import RowLayout
from discreet.sums.settings import Shape
from discreet.sums.source import Index, RowSource, Table

# A mark, in units: rows of a record that is scaled down still count for something.
_ONE = 2**8

# More than the root of a whole number is rounded.
_ROUNDING = 1 + 2.0**-50


@dataclass(frozen=True, kw_only=True)
class Counts(RowLayout):
    """Cells, and how many of them a row may mark.

    Attributes:
        kernel: a constant.
        heads: ().
        cells: how many there are.
        marks: how many a row may mark, at the most.
    """

    noun: ClassVar[tuple[str, str]] = ("count", "counts")

    kernel: UnitLinear = field(default_factory=lambda: UnitLinear(1))
    heads: tuple[int, ...] = ()
    cells: int
    marks: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("cells", self.cells, at_least=1, at_most=2**24)
        _validate.whole("marks", self.marks, at_least=1, at_most=self.cells)

    @property
    def value_width(self) -> int:
        """The cells that a row marks."""
        return self.marks

    @property
    def columns(self) -> int:
        """The cells."""
        return self.cells

    @property
    def real_unit(self) -> float:
        """What one unit of the sums stands for."""
        return 1 / (FEATURE_RADIUS * _ONE)

    @property
    def outer_bound(self) -> float:
        """R·√marks, in units of a mark."""
        return FEATURE_RADIUS * _ONE * math.sqrt(self.marks) * _ROUNDING

    @property
    def inner_range(self) -> tuple[int, int]:
        """Two rows share none of their cells, or all."""
        return 0, self.marks * _ONE**2

    @property
    def _largest_product(self) -> int:
        return FEATURE_RADIUS * _ONE

    def row_sensitivity(self, neighbours: Neighbours) -> float:
        """Return how far counts can move when one row changes.

        All rows have the same key, so ⟨a, a'⟩ is R² and ⟨w, w'⟩ ≥ 0: replaced, a row moves them by
        √2 of what it adds.

        Args:
            neighbours: whether a row is added or removed, or replaced.
        """
        replaced = neighbours is Neighbours.REPLACE
        return self.outer_bound * (math.sqrt(2) * _ROUNDING if replaced else 1.0)

    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:  # noqa: ARG002
        """Return a mark in each cell that a row marks, shape (1, m, cells).

        Args:
            features: not used.
            values: which cells, shape (m, marks); a number that is no cell marks none.
            weights: not used.
        """
        marked = np.zeros((len(values), self.cells + 1))
        inside = (values >= 0) & (values < self.cells)
        places = np.where(inside, values, self.cells).astype(np.int64)
        marked[np.arange(len(values))[:, None], places] = float(_ONE)
        return marked[None, :, :-1]


# The cells that some rows mark, of keys (m, d) and values (m, d_v): shape (m, marks).
Mark = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Marked(Table):
    """A table of rows with the cells that they mark, in place of their values. PRIVATE.

    Attributes:
        keys: shape (n, d).
        values: shape (n, d_v).
        mark: which cells, row by row.
        marks: how many, at the most.
    """

    mark: Mark
    marks: int

    @cached_property
    def shape(self) -> Shape:
        """Keys are one zero; values are cells."""
        return Shape(heads=(), key_dim=1, value_dim=self.marks)

    def read(self, index: Index) -> tuple[Array, Floats]:
        """Return zeros, shape (m, 1), and cells, shape (m, marks)."""
        keys, values = super().read(index)
        return np.zeros((len(keys), 1)), self.mark(keys, values)


def count(
    rows: RowSource, door: Door[Any], mark: Mark, layout: Counts, *, share: float
) -> tuple[Floats, float]:
    """Return noisy counts of all cells, shape (cells,), and their standard deviation.

    Args:
        rows: private; handed to the door.
        door: which adds up, and lets sums out with noise.
        mark: which cells a row marks: row by row, to the bit.
        layout: how many cells there are, and how many a row marks.
        share: of the squared budget.
    """
    [sums] = door.sum(
        layout,
        rows,
        share=share,
        view=lambda table: Marked(table.keys, table.values, mark, layout.marks),
    )
    [law] = door.settings.part(layout, share).laws(layout)
    deviation = math.sqrt(law.variance) * layout.real_unit
    # The first feature is the constant.
    return np.asarray(sums[0, :, 0] * layout.real_unit), deviation


def as_cells(places: Integers) -> Floats:
    """Return places as values that are read like others.

    Args:
        places: whole numbers, shape (m, marks).
    """
    return places.astype(np.float64)
