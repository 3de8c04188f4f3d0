"""Exact integer sums over some of the rows. PRIVATE: noise is added by `door.release` only.

Sums of integers do not depend on the order of rows, on chunking or on how rows (or whole records)
are divided among partials: any way of adding them up gives the same bits. Rows must not count
twice, so a partial knows the names of the shards that it holds.

The integers of a row must not depend on the machine that adds it up, either: removing one row may
send others to another machine, and would change those, too. All that rows go through is exact, or
rounded as IEEE 754 prescribes, but for numpy's exp, cos and sin, whose last bits differ between
processors. `fingerprint` tells whether two machines compute these alike.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, NoReturn

import numpy as np

from discreet import _validate
from discreet._ids import kind_of, marks_of
from discreet._typing import Integers
from discreet.errors import InvalidInput
from discreet.noise import SystemEntropy
from discreet.sums.accumulate import Accumulator, check_disjoint, zeros
from discreet.sums.layout import AnyLayout_co
from discreet.sums.settings import Settings
from discreet.sums.source import Advance, Table, unseen

_ARGUMENTS = 2**15
_POWERS = 2**10


@cache
def fingerprint() -> str:
    """Return a hash of exp, cos and sin at many arguments, as this machine computes them."""
    # Multiples of the golden ratio, modulo one, lie evenly, and on no grid.
    even = np.arange(_ARGUMENTS) * 0.6180339887498949 % 1.0
    hashed = hashlib.sha256()
    computed = (np.exp(-even), np.exp(-32 * even), np.cos(7 * even), np.sin(7 * even))
    powers = (np.power(7 * even, 1.7), [float(each) ** 0.3 for each in even[:_POWERS]])
    for values in (*computed, *powers):
        hashed.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return hashed.hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Partial(Generic[AnyLayout_co]):
    """The exact sums over some rows. Neither printed nor pickled nor copied; `seal` encrypts it.

    Attributes:
        settings: the public settings.
        sums: one array for each part of each layer, in lattice units (`RowLayout.shapes`).
        rows: how many rows there were.
        ids: hashes of the records that they belong to (`marks_of`), all equally long; none where
            the unit is a row.
        shards: the names of the pieces of data that were added up.
        origin: what they were made from, if that has to be the same for all that merge with them;
            else empty.
    """

    settings: Settings[AnyLayout_co]
    sums: tuple[Integers, ...]
    rows: int
    ids: frozenset[bytes]
    shards: frozenset[str]
    origin: str = ""

    def __repr__(self) -> str:
        return "<Partial: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @classmethod
    def empty(cls, settings: Settings[AnyLayout_co]) -> "Partial[AnyLayout_co]":
        """Return the sums over no rows.

        Args:
            settings: the public settings.
        """
        return cls(settings, tuple(zeros(settings)), 0, frozenset(), frozenset())

    @classmethod
    def of(
        cls,
        tables: Sequence[Table],
        settings: Settings[AnyLayout_co],
        *,
        groups: object = None,
        shard: str | None = None,
        advance: Advance = unseen,
    ) -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of some tables, one for each layer.

        Args:
            tables: keys and values of each layer; their rows belong together by position.
            settings: the public settings.
            groups: the record of each row, if the unit is a record.
            shard: a public name for these rows, so that they are counted once; by default one that
                nothing else has.
            advance: told how many rows have been added, for a progress bar.
        """
        return cls.of_chunks([(tables, groups)], settings, shard=shard, advance=advance)

    @classmethod
    def of_chunks(
        cls,
        chunks: Iterable[tuple[Sequence[Table], object]],
        settings: Settings[AnyLayout_co],
        *,
        shard: str | None = None,
        threads: int | None = None,
        advance: Advance = unseen,
    ) -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of all chunks, read one after the other.

        Args:
            chunks: tables and groups, as for `of`; a record lies within one chunk.
            settings: likewise.
            shard: likewise.
            threads: the most to use; by default one for each processor.
            advance: likewise.
        """
        name = _fresh_name() if shard is None else checked_name(shard)
        adder = Accumulator(settings, threads=threads)
        some = False
        for tables, groups in chunks:
            adder.add(tables, groups=groups, advance=advance)
            some = True
        if not some:  # a stream that was read before would count as no rows
            raise InvalidInput("Expected at least one chunk of rows (it may have none).")
        ids = marks_of(adder.ids)
        return cls(settings, tuple(adder.sums), adder.rows, ids, frozenset([name]))

    def merge(self, other: "Partial[AnyLayout_co]") -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of both.

        Args:
            other: of other shards, with the same settings.

        Raises:
            InvalidInput: settings differ, or a shard or record is in both.
        """
        _validate.instance("other", other, Partial)
        return Partial.merged(self.settings, [self, other])

    @classmethod
    def merged(
        cls, settings: Settings[AnyLayout_co], partials: "Iterable[Partial[AnyLayout_co]]"
    ) -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of all these partials, one after the other.

        Args:
            settings: the public settings, the same for all.
            partials: of different shards.

        Raises:
            InvalidInput: settings differ, or a shard or record is in two of them.
        """
        sums, rows = zeros(settings), 0
        ids: set[bytes] = set()
        shards: set[str] = set()
        origin = ""
        for each in partials:
            if settings.digest != each.settings.digest:
                raise InvalidInput("Expected partials with the same public settings.")
            if not shards.isdisjoint(each.shards):
                raise InvalidInput("Expected partials of different shards: rows would count twice.")
            if shards and each.shards and origin != each.origin:
                raise InvalidInput("Expected partials that were made from the same rows.")
            for layout in settings.layouts:
                layout.check_rows(rows + each.rows)
            check_disjoint(ids, each.ids, kind_of)
            for total, part in zip(sums, each.sums, strict=True):
                np.add(total, part, out=total)
            rows += each.rows
            ids |= each.ids
            shards |= each.shards
            origin = each.origin or origin
        return cls(settings, tuple(sums), rows, frozenset(ids), frozenset(shards), origin)

    def seal(self, key: bytes) -> bytes:
        """Return the sums, encrypted and authenticated: see `sealing`.

        Args:
            key: 32 random bytes (`sealing.new_key`).
        """
        from discreet.sums.sealing import seal

        return seal(self, key)

    @classmethod
    def unseal(
        cls, data: bytes, key: bytes, settings: Settings[AnyLayout_co]
    ) -> "Partial[AnyLayout_co]":
        """Return sums that were sealed under this key and these settings: see `sealing`.

        Args:
            data: the sealed bytes.
            key: that they were sealed with.
            settings: that they were made with.

        Raises:
            InvalidInput: they belong to other settings.
            CorruptRelease: they were altered or cut short, or the key is another.
        """
        from discreet.sums.sealing import unseal

        return unseal(data, key, settings)


def _fresh_name() -> str:
    return SystemEntropy().words(2).tobytes().hex()


def checked_name(shard: str) -> str:
    """Return the name of a shard, if it is one.

    Args:
        shard: what the caller gave.

    Raises:
        InvalidInput: it is no text that can be printed.
    """
    if not isinstance(shard, str) or not shard.strip() or not shard.isprintable():
        _validate.reject("shard", "...", "a text that can be printed")
    return shard
