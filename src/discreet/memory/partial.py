"""Exact integer sums over some of the rows. PRIVATE: noise is added in `release`, and only there.

Sums of integers do not depend on the order of rows, on chunking or on how rows (or whole records)
are divided among partials: any way of adding them up gives the same bits. What may not happen is
that rows count twice: a partial knows the names of the shards that it holds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn

from discreet import _validate
from discreet._typing import Integers
from discreet.errors import InvalidInput
from discreet.memory.adder import Adder, check_disjoint, zeros
from discreet.memory.progress import Advance, unseen
from discreet.memory.row_layout import AnyLayout_co
from discreet.memory.rows import Table
from discreet.memory.settings import Settings
from discreet.noise import SystemEntropy


@dataclass(frozen=True, eq=False, repr=False)
class Partial(Generic[AnyLayout_co]):
    """The exact sums over some rows. Neither printed nor pickled nor copied; `seal` encrypts it.

    Attributes:
        settings: the public settings.
        sums: one array for each part of each layer, in lattice units (`RowLayout.shapes`).
        rows: how many rows there were.
        ids: the records that they belong to; none where the unit is a row.
        shards: the names of the pieces of data that were added up.
    """

    settings: Settings[AnyLayout_co]
    sums: tuple[Integers, ...]
    rows: int
    ids: frozenset[object]
    shards: frozenset[str]

    def __repr__(self) -> str:
        return "<Partial: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @classmethod
    def empty(cls, settings: Settings[AnyLayout_co]) -> "Partial[AnyLayout_co]":
        """Return the sums over no rows."""
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
        adder = Adder(settings, threads=threads)
        for tables, groups in chunks:
            adder.add(tables, groups=groups, advance=advance)
        return cls(settings, tuple(adder.sums), adder.rows, frozenset(adder.ids), frozenset([name]))

    def merge(self, other: "Partial[AnyLayout_co]") -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of both."""
        _validate.instance("other", other, Partial)
        if self.settings.digest != other.settings.digest:
            raise InvalidInput("Expected partials with the same public settings.")
        if not self.shards.isdisjoint(other.shards):
            raise InvalidInput("Expected partials of different shards: rows would count twice.")
        for layout in self.settings.layouts:
            layout.check_rows(self.rows + other.rows)
        check_disjoint(self.ids, other.ids)
        return Partial(
            self.settings,
            tuple(mine + theirs for mine, theirs in zip(self.sums, other.sums, strict=True)),
            self.rows + other.rows,
            self.ids | other.ids,
            self.shards | other.shards,
        )

    def seal(self, key: bytes) -> bytes:
        """Return the sums, encrypted and authenticated: see `sealing`."""
        from discreet.memory.sealing import seal

        return seal(self, key)

    @classmethod
    def unseal(
        cls, data: bytes, key: bytes, settings: Settings[AnyLayout_co]
    ) -> "Partial[AnyLayout_co]":
        """Return sums that were sealed under this key and these settings: see `sealing`."""
        from discreet.memory.sealing import unseal

        return unseal(data, key, settings)


def _fresh_name() -> str:
    return SystemEntropy().words(2).tobytes().hex()


def checked_name(shard: str) -> str:
    """Return the name of a shard, if it is one."""
    if not isinstance(shard, str) or not shard.strip() or not shard.isprintable():
        _validate.reject("shard", "...", "a name that can be printed")
    return shard
