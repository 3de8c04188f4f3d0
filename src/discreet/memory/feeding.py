"""From a caller's arrays, or iterators of chunks, into a collector."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.memory.collector import Collector, Layers, tables_of
from discreet.memory.progress import progress_bar
from discreet.memory.row_layout import RowLayout
from discreet.memory.rows import Table
from discreet.privacy import Neighbours


@dataclass(frozen=True, eq=False, repr=False)
class Feed:
    """Keys and values of all layers, and the record of each row. PRIVATE.

    Attributes:
        chunks: the tables of all layers, and the record of each row; None if each row is its own.
        rows: how many there are, of all layers together, where somebody knows: for a progress bar.
        public_rows: how many there are, if they are arrays and each row is its own record: public
            where rows are replaced.
    """

    chunks: Iterable[tuple[list[Table], Array]]
    rows: Callable[[], int | None]
    public_rows: int | None

    @classmethod
    def of(cls, layers: Layers, groups: Array) -> "Feed":
        """Return rows that have been looked at as far as their shapes go."""
        layers = list(layers)
        if _are_streams(layers):
            return cls(_streamed(layers, groups), lambda: None, None)
        tables = tables_of(layers)
        rows = tables[0].rows
        return cls([(tables, groups)], lambda: rows * len(tables), rows if groups is None else None)

    @classmethod
    def of_one(cls, keys: Array, values: Array, groups: Array) -> "Feed":
        """Return the rows of one layer: keys and values, or chunks of both."""
        if isinstance(keys, str | os.PathLike) or hasattr(keys, "__arrow_c_stream__"):
            raise InvalidInput(
                "Expected arrays, or chunks of them: discreet.tables.Rows reads files and tables."
            )
        if values is not None:
            return cls.of([(keys, values)], groups)
        if not isinstance(keys, Iterable) or hasattr(keys, "__array__"):
            raise InvalidInput(
                "Expected values, one for each row of keys; or chunks (keys, values) instead of "
                "both."
            )
        if groups is not None:
            raise InvalidInput("Expected groups to come with the chunks: (keys, values, groups).")
        return cls(_together(keys), lambda: _count(keys), None)

    def rows_hint(self, given: int | None, neighbours: object) -> int | None:
        """Return the number of rows, where that is public and no other was given."""
        replaced = isinstance(neighbours, str) and neighbours == Neighbours.REPLACE
        if given is None and replaced and self.public_rows is not None:
            return max(self.public_rows, 1)
        return given

    def into(self, collector: Collector[RowLayout], *, progress: bool) -> None:
        """Add all rows, with or without a progress bar."""
        total = self.rows() if progress else None
        with progress_bar("adding up rows", rows=total, show=progress) as advance:
            for chunk, of_row in self.chunks:
                collector.add_tables(chunk, of_row, advance=advance)


def _are_streams(layers: Sequence[Array]) -> bool:
    """Return whether keys and values are iterators of chunks; all are, or none."""
    streams = {isinstance(part, Iterator) for layer in layers for part in layer}
    if len(streams) > 1:
        raise InvalidInput("Expected all keys and values to be arrays, or all iterators of chunks.")
    return streams == {True}


def _streamed(layers: Layers, groups: Array) -> Iterator[tuple[list[Table], Array]]:
    """Yield the tables of all layers, and the record of each row, chunk by chunk."""
    columns = [part for layer in layers for part in layer]
    if groups is not None:
        columns.append(iter(groups))
    try:
        for parts in zip(*columns, strict=True):
            pairs = [parts[i : i + 2] for i in range(0, 2 * len(layers), 2)]
            if groups is not None and parts[-1] is None:
                raise InvalidInput(
                    "Expected groups for every chunk, since there are groups at all."
                )
            yield tables_of(pairs), None if groups is None else parts[-1]
    except ValueError as error:
        if isinstance(error, InvalidInput) or "zip()" not in str(error):
            raise
        raise InvalidInput("Expected as many chunks of keys as of values and groups.") from None


def _together(chunks: Iterable[object]) -> Iterator[tuple[list[Table], Array]]:
    """Yield the table of each chunk (keys, values) or (keys, values, groups), and its groups."""
    by_record: bool | None = None
    for chunk in chunks:
        if not isinstance(chunk, tuple) or len(chunk) not in {2, 3}:
            raise InvalidInput("Expected chunks to be (keys, values) or (keys, values, groups).")
        keys, values, of_row = chunk if len(chunk) == 3 else (*chunk, None)
        if by_record is None:
            by_record = of_row is not None
        if by_record is not (of_row is not None):
            raise InvalidInput("Expected groups with every chunk, or with none.")
        yield tables_of([(keys, values)]), of_row


def _count(chunks: object) -> int | None:
    """Return the number of rows, if whoever has them knows it: `count`, which lists have, too."""
    count = getattr(chunks, "count", None)
    return count if isinstance(count, int) else None
