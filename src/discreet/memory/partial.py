"""Exact integer sums over some of the rows. PRIVATE: noise is added in `release`, and only there.

Sums of integers do not depend on the order of rows, on chunking or on how rows (or whole records)
are divided among partials: any way of adding them up gives the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.errors import InvalidInput
from discreet.kernels.base import Floats
from discreet.memory import records
from discreet.memory.joint import Joint, Unit
from discreet.memory.layout import Layout
from discreet.memory.progress import Advance, unseen
from discreet.memory.rows import Index, Table, record_ids
from discreet.noise.entropy import Integers

# So many features are computed at a time, over all heads: a few buffers of 32 MiB. Half as many
# entries of Gram matrices.
_FEATURES_AT_ONCE = 2**22
_GRAM_ENTRIES = 2**21


@dataclass(frozen=True, eq=False, repr=False)
class Partial:
    """The exact sums over some rows. It cannot be printed, pickled or saved.

    Attributes:
        joint: the public settings.
        sums: one array for each layer, in lattice units, shape (heads, d_v + 1, r).
        rows: how many rows there were.
        ids: the records that they belong to, sorted; None where the unit is a row.
    """

    joint: Joint
    sums: tuple[Integers, ...]
    rows: int
    ids: NDArray[Any] | None

    def __repr__(self) -> str:
        return "<Partial: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @classmethod
    def empty(cls, joint: Joint) -> "Partial":
        """Return the sums over no rows."""
        sums = tuple(np.zeros(layout.shape, dtype=np.int64) for layout in joint.layouts)
        return cls(joint, sums, 0, None)

    @classmethod
    def of(
        cls,
        tables: Sequence[Table],
        joint: Joint,
        *,
        groups: object = None,
        advance: Advance = unseen,
    ) -> "Partial":
        """Return the sums over the rows of some tables, one for each layer.

        Args:
            tables: keys and values of each layer; their rows belong together by position.
            joint: the public settings.
            groups: the record of each row, if the unit is a record.
            advance: told how many rows have been added, for a progress bar.
        """
        rows = _check_tables(tables, joint)
        if (groups is None) is (joint.unit is Unit.RECORD):
            _validate.reject("groups", None if groups is None else "...", f"for unit {joint.unit}")
        adder = _Adder(joint, tables, advance)
        ids = None
        if groups is None:
            adder.add_rows(range(rows), adder.sums)
        else:
            of_row = record_ids(groups, rows)
            ids = np.unique(of_row) if rows else None
            for size, members in records.by_size(of_row):
                adder.add_records(size, members)
        return cls(joint, tuple(adder.sums), rows, ids)

    def merge(self, other: "Partial") -> "Partial":
        """Return the sums over the rows of both."""
        _validate.instance("other", other, Partial)
        if self.joint != other.joint or not _same_kernels(self.joint, other.joint):
            raise InvalidInput("Expected partials with the same public settings.")
        for layout in self.joint.layouts:
            layout.check_rows(self.rows + other.rows)
        sums = tuple(mine + theirs for mine, theirs in zip(self.sums, other.sums, strict=True))
        return Partial(self.joint, sums, self.rows + other.rows, _merged(self.ids, other.ids))


class _Adder:
    """Adds rows of tables to sums, chunk by chunk, in buffers that are used again."""

    def __init__(self, joint: Joint, tables: Sequence[Table], advance: Advance) -> None:
        self.joint = joint
        self.tables = tables
        self.advance = advance
        self.sums = [np.zeros(layout.shape, dtype=np.int64) for layout in joint.layouts]
        widest = max(
            layout.head_count * (layout.kernel.features + 4 * (layout.kernel.dim + layout.columns))
            for layout in joint.layouts
        )
        exact = min(layout.exact_rows for layout in joint.layouts)
        # A short record is handled in one piece, whatever its width.
        least = records.gram_rows(joint) if joint.unit is Unit.RECORD else 1
        self.chunk = max(min(_FEATURES_AT_ONCE // widest, exact), least)
        self._buffers = [
            layout.kernel.feature_buffer(self.chunk * layout.head_count) for layout in joint.layouts
        ]

    def parts(self, index: Index) -> list[tuple[Floats, Floats]]:
        """Return features (heads, m, r) and weighed values (heads, m, d_v + 1) of some rows."""
        return [
            _contributions(table, layout, buffer, index)
            for table, layout, buffer in zip(
                self.tables, self.joint.layouts, self._buffers, strict=True
            )
        ]

    def add_rows(self, members: range | Integers, sums: list[Integers]) -> None:
        """Add the contributions of some rows, as they are, to the given sums."""
        for start in range(0, len(members), self.chunk):
            index = members[start : start + self.chunk]
            # A slice of a memory map is read without a copy.
            rows = slice(index.start, index.stop) if isinstance(index, range) else index
            _add(sums, [exact_sum(*part) for part in self.parts(rows)])
            self.advance(len(index))

    def add_records(self, size: int, members: Integers) -> None:
        """Add records of one size, each with at most the influence that it may have.

        Args:
            size: rows of each record.
            members: row numbers, shape (records, size).
        """
        if size <= self.joint.group_rows:  # by the triangle inequality
            self.add_rows(np.sort(members.ravel()), self.sums)
        elif size <= records.gram_rows(self.joint):
            together = max(min(self.chunk, _GRAM_ENTRIES // size) // size, 1)
            for start in range(0, len(members), together):
                self._add_short(size, members[start : start + together])
        else:
            for member in members:
                self._add_long(member)

    def _add_short(self, size: int, members: Integers) -> None:
        parts = self.parts(members.ravel())
        scaled = records.scale_down(self.joint, parts, size)
        pairs = zip(parts, scaled, strict=True)
        _add(self.sums, [exact_sum(features, weighed) for (features, _), weighed in pairs])
        self.advance(members.size)

    def _add_long(self, member: Integers) -> None:
        record = [np.zeros_like(total) for total in self.sums]
        self.add_rows(member, record)
        _add(self.sums, records.shrink_sums(self.joint, record))


def _add(totals: list[Integers], more: list[Integers]) -> None:
    for total, part in zip(totals, more, strict=True):
        np.add(total, part, out=total)


def exact_sum(features: Floats, weighed: Floats) -> Integers:
    """Return Σ w ⊗ a over rows, exactly: so few rows at a time that no sum exceeds 2^53.

    Args:
        features: integers, shape (heads, m, r).
        weighed: integers, shape (heads, m, d_v + 1).
    """
    # This orientation is half as fast again as its transpose in BLAS.
    return np.asarray(np.matmul(weighed.swapaxes(1, 2), features), dtype=np.int64)


def _contributions(
    table: Table, layout: Layout, buffer: Floats, index: Index
) -> tuple[Floats, Floats]:
    keys, values = table.read(index)
    mapped = layout.kernel.key_features(keys, out=buffer)
    weighed = layout.weigh(values, mapped.weights)
    heads = layout.head_count
    return (
        mapped.features.reshape(heads, -1, layout.kernel.features),
        weighed.reshape(heads, -1, layout.columns),
    )


def _check_tables(tables: Sequence[Table], joint: Joint) -> int:
    """Return the number of rows, if all layers have as many and their shapes are as laid out."""
    counts = {table.rows for table in tables}
    if len(counts) != 1:
        raise InvalidInput("Expected the same number of rows in every layer.")
    rows = counts.pop()
    for table, layout in zip(tables, joint.layouts, strict=True):
        wanted = (layout.heads, layout.kernel.dim, layout.value_dim)
        given = (table.heads, table.key_dim, table.value_dim)
        if given != wanted:
            _validate.reject("(heads, d, d_v)", given, f"{wanted}, as in the first chunk")
        layout.check_rows(rows)
    return rows


def _same_kernels(mine: Joint, theirs: Joint) -> bool:
    """Return whether what the kernels computed is the same, too (on another machine, perhaps)."""
    pairs = [
        (left.kernel.arrays(), right.kernel.arrays())
        for left, right in zip(mine.layouts, theirs.layouts, strict=True)
        if left.kernel is not right.kernel
    ]
    return all(
        np.array_equal(left[name], right[name]) for left, right in pairs for name in left | right
    )


def _merged(mine: NDArray[Any] | None, theirs: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return the record ids of both, or raise `InvalidInput` if one record is in both."""
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    if mine.dtype.kind != theirs.dtype.kind:
        raise InvalidInput("Expected the groups of all chunks to be of one type.")
    both = np.concatenate([mine, theirs])
    both.sort(kind="stable")
    if np.any(both[1:] == both[:-1]):
        raise InvalidInput(
            "Expected every record to lie within one chunk or partial: its influence would add up."
        )
    return both
