"""Who has had rows in which steps: what enforces that nobody has more than the guarantee is for.

Kept are keyed hashes of ids with counts, one sealed file for each step that had any, and nothing
else. Whether a record's rows are taken depends on its own earlier rows and on nobody else's; so one
record more or less changes nothing about the others.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet._arrays import marks_of
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.noise.correlated import Participation
from discreet.sums.source import Records, Table

_DIGEST_BYTES = 16
_ENTRY = struct.Struct(f"<{_DIGEST_BYTES}sI")
_LEAD = struct.Struct("<qc")
_LEAST = 2**12


@dataclass(frozen=True)
class Cap:
    """How often a record may come.

    Attributes:
        participation: in how many steps, and how far apart.
        rows: all its rows together, where these are counted.
    """

    participation: Participation
    rows: int

    def left(self, seen: tuple[int, int] | None, step: int) -> int | None:
        """Return how many rows more are taken in a step; None for all of them.

        Args:
            seen: how often it came, or with how many rows, and in which step last.
            step: the number of the step that it is in now.
        """
        if self.participation.steps is None:
            return self.rows - (0 if seen is None else seen[0])
        if seen is None:
            return None
        count, last = seen
        early = step - last < self.participation.separation
        return 0 if early or count >= self.participation.steps else None


@dataclass(eq=False, repr=False)
class People:
    """Everybody who has had rows so far, by hash. PRIVATE.

    Attributes:
        key: of the hashes.
        cap: how often anybody may come.
        seen: of each: how often, or with how many rows, and the number of the last step.
        kind: the letter of the type of all ids; empty before the first.
    """

    key: bytes = field(repr=False)
    cap: Cap
    seen: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    kind: bytes = b""

    def nobody(self) -> "People":
        """Return the same, before anybody came."""
        return People(self.key, self.cap)

    def visit(self, step: int) -> "Visit":
        """Return what admits rows of one step; nothing is kept before `keep`.

        Args:
            step: its number.
        """
        return Visit(self, step)

    def keep(self, visit: "Visit") -> None:
        """Count those who were admitted in a step.

        Args:
            visit: of the step after the last one.
        """
        self._count(visit.came, visit.step)
        self.kind = visit.kind

    def restore(self, contents: memoryview, step: int) -> None:
        """Count those who were admitted in a step, from what was sealed of it.

        Args:
            contents: of `Visit.contents`.
            step: its number.
        """
        count, kind = _LEAD.unpack(contents[: _LEAD.size])
        entries = contents[_LEAD.size : _LEAD.size + count * _ENTRY.size]
        self._count(dict(_ENTRY.iter_unpack(entries)), step)
        self.kind = kind

    def _count(self, came: dict[bytes, int], step: int) -> None:
        by_rows = self.cap.participation.steps is None
        for digest, rows in came.items():
            before, _ = self.seen.get(digest, (0, 0))
            self.seen[digest] = (before + (rows if by_rows else 1), step)


class Visit:
    """Admits the records of one step. PRIVATE.

    Args:
        people: who came before.
        step: its number.
    """

    def __init__(self, people: People, step: int) -> None:
        self.step = step
        self.kind = people.kind
        self.came: dict[bytes, int] = {}
        self._people = people

    def admit(self, tables: Sequence[Table], groups: Array) -> tuple[Sequence[Table], Array]:
        """Return a chunk without the rows of those who have had their share.

        Args:
            tables: of all layers.
            groups: the record of each row.
        """
        groups = groups if hasattr(groups, "__len__") else list(groups)  # read twice
        records = Records.of(groups, tables[0].rows)
        left = np.array([self._left(mark) for mark in map(_mark, records.ids)], dtype=np.int64)
        sizes = np.bincount(records.of_row, minlength=len(records.ids))
        taken = np.minimum(left, sizes)
        for each, rows in zip(records.ids, taken.tolist(), strict=True):
            if rows:
                self._came(_mark(each), rows)
        if np.array_equal(taken, sizes):
            return tables, groups
        index = _first_of_each(records, taken)
        some = [Table(table.keys[..., index, :], table.values[..., index, :]) for table in tables]
        return some, [records.ids[each] for each in records.of_row[index].tolist()]

    def admit_marks(self, marks: Iterable[bytes]) -> None:
        """Admit the records of sums that were added up elsewhere, all of them or none.

        Args:
            marks: of `marks_of`; each in one step counts as one row.

        Raises:
            InvalidInput: one of them has had its share: sums cannot be taken apart again.
        """
        for mark in marks:
            if self._left(mark) == 0 or self._people.cap.participation.steps is None:
                raise InvalidInput(
                    "Expected shards of records that may have rows in this step: one has had its "
                    "share, and sums cannot be taken apart. Give the rows themselves."
                )
            self._came(mark, 1)

    def contents(self) -> list[bytes]:
        """Return what is to be sealed: hashes and counts, padded to a power of two."""
        entries = b"".join(_ENTRY.pack(digest, rows) for digest, rows in self.came.items())
        lead = _LEAD.pack(len(self.came), self.kind or b"-")
        size = max(_LEAST, 1 << (len(lead) + len(entries) - 1).bit_length())
        return [lead, entries, bytes(size - len(lead) - len(entries))]

    def _left(self, mark: bytes) -> int:
        """Return how many rows of a record are taken; more than there can be for all."""
        if self.kind not in {b"", b"-", mark[:1]}:
            raise InvalidInput("Expected the groups of all steps to be of one type.")
        self.kind = mark[:1]
        left = self._people.cap.left(self._people.seen.get(self._digest(mark)), self.step)
        return np.iinfo(np.int64).max if left is None else left

    def _came(self, mark: bytes, rows: int) -> None:
        self.came[self._digest(mark)] = min(rows, 2**32 - 1)

    def _digest(self, mark: bytes) -> bytes:
        key = self._people.key
        return hashlib.blake2b(mark, digest_size=_DIGEST_BYTES, key=key).digest()


def _mark(record: object) -> bytes:
    [mark] = marks_of([record])
    return mark


def _first_of_each(records: Records, taken: Array) -> Array:
    """Return the numbers of the rows that are taken: the first so many of each record."""
    order = np.argsort(records.of_row, kind="stable")
    sizes = np.bincount(records.of_row, minlength=len(records.ids))
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(order)) - starts[records.of_row[order]]
    return np.sort(order[place < taken[records.of_row[order]]])
