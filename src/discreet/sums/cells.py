"""Rows that are counted in cells: every row adds to one cell, and counts get Laplace noise.

A row adds `units` to one cell, so sums of magnitudes (the L1 norm) move by just that, whatever the
number of cells: discrete Laplace noise of the scale units/ε, and no δ. A record of many rows is
counted first, and its counts are scaled down, and cut towards zero, so that they add up to at most
the influence that it may have. `docs/privacy.md`, "Counts in cells".
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.privacy import Neighbours
from discreet.sums.layout import Norm, RowLayout

# A row of a record is counted this finely, so that rows of a record that is scaled down still count
# for something.
RECORD_UNITS = 2**12

_LARGEST_SUM = 2**62


@dataclass(frozen=True, kw_only=True)
class CellLayout(RowLayout):
    """Cells, in one list or several: every row is in one cell of each.

    Each list is a part of the sums, and has a share of ε (`part_weights`, which add up to one).

    Attributes:
        kernel: says where a row belongs.
        heads: ().
        units: how much a row adds to its cell, in lattice units.
    """

    norm: ClassVar[Norm] = Norm.L1

    heads: tuple[int, ...] = ()
    units: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.heads:
            _validate.reject("heads", self.heads, "()")
        object.__setattr__(
            self, "units", _validate.whole("units", self.units, at_least=1, at_most=2**20)
        )

    @abc.abstractmethod
    def cells(self, keys: Floats, values: Floats) -> Integers:
        """Return the cell of each row in each list, shape (m, parts): row by row, to the bit.

        Args:
            keys: of any finite size, shape (m, d).
            values: of any finite size, shape (m, value_width).
        """

    def add(self, cells: Integers, sums: Sequence[Integers], *, rows_of: int, cap: int) -> None:
        """Add rows to the sums of all parts, record by record.

        Args:
            cells: of each row in each part, shape (records·rows_of, parts), record by record.
            sums: of each part, added to.
            rows_of: how many rows each record has.
            cap: a record adds at most so much to all cells of a part, in lattice units.
        """
        for part, total in enumerate(sums):
            flat = total.reshape(-1)
            places = cells[:, part].reshape(-1, rows_of)
            if rows_of * self.units <= cap:
                counts = np.bincount(places.ravel(), minlength=len(flat))
                flat += self.units * counts
            else:
                _add_capped(places, flat, cap)

    @property
    def row_bound(self) -> float:
        """What a row adds, in all cells of a part together."""
        return float(self.units)

    def record_bound(self, group_rows: float) -> float:
        """Return what a record adds, at most, in all cells of a part together.

        Args:
            group_rows: the influence of a record, in rows.
        """
        return float(math.floor(group_rows * self.units))

    def row_sensitivity(self, neighbours: Neighbours) -> float:
        """Return how far all cells of a part together can move (L1) when one row changes.

        A row that is replaced leaves one cell, and another takes it.

        Args:
            neighbours: whether a row is added or removed, or replaced.
        """
        return float(self.units) * (2 if neighbours is Neighbours.REPLACE else 1)

    @property
    def real_unit(self) -> float:
        """What one lattice unit of a count stands for, in rows."""
        return 1 / self.units

    @property
    def outer_bound(self) -> float:
        """What a row adds."""
        return float(self.units)

    @property
    def inner_range(self) -> tuple[int, int]:
        """Two rows are in one cell, or in two."""
        return 0, self.units**2

    @property
    def most_rows(self) -> int:
        """With so many rows all counts fit int64."""
        return _LARGEST_SUM // self.units

    @property
    def _largest_product(self) -> int:
        return self.units

    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:
        """Cells are counted, not weighed: `cells`.

        Args:
            features: not used.
            values: not used.
            weights: not used.
        """
        raise NotImplementedError


def _add_capped(places: Integers, total: Integers, cap: int) -> None:
    """Add records of many rows, each scaled so that what it adds is at most `cap`.

    A record with c of its n rows in a cell adds ⌊c·cap/n⌋ there: Σ ⌊c·cap/n⌋ ≤ cap, exactly. (In
    two steps, so that no product leaves int64: cap = q·n + r, and c·r < n².)
    """
    ordered = np.sort(places, axis=1)
    records, rows = ordered.shape
    first = np.ones_like(ordered, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(first.ravel())
    counts = np.diff(np.append(starts, records * rows))
    whole, rest = divmod(cap, rows)
    np.add.at(total, ordered.ravel()[starts], counts * whole + counts * rest // rows)
