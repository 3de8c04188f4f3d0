"""From a caller's arrays, or iterators of chunks, into a collector."""

from collections.abc import Iterator, Sequence
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
        layers: arrays, or iterators of chunks.
        groups: the record of each row, likewise; None if each row is its own.
        tables: of the arrays; None for iterators.
    """

    layers: Layers
    groups: Array
    tables: list[Table] | None

    @classmethod
    def of(cls, layers: Layers, groups: Array) -> "Feed":
        """Return rows that have been looked at as far as their shapes go."""
        layers = list(layers)
        return cls(layers, groups, None if _are_streams(layers) else tables_of(layers))

    def rows_hint(self, given: int | None, neighbours: object) -> int | None:
        """Return the number of rows, where that is public and no other was given."""
        replaced = isinstance(neighbours, str) and neighbours == Neighbours.REPLACE
        if given is None and replaced and self.tables is not None and self.groups is None:
            return max(self.tables[0].rows, 1)
        return given

    def into(self, collector: Collector[RowLayout], *, progress: bool) -> None:
        """Add all rows, with or without a progress bar."""
        if self.tables is None:
            chunks, total = _streamed(self.layers, self.groups), None
        else:
            chunks, total = (
                iter([(self.tables, self.groups)]),
                self.tables[0].rows * len(self.tables),
            )
        with progress_bar("adding up rows", rows=total, show=progress) as advance:
            for chunk, of_row in chunks:
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
