"""Rows of tables, wherever they are: chunks of keys and values, and of whole records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.tables.chunks import gathered, sized
from discreet.tables.columns import Chunk, Columns, FilePart, Form, Forms, Names, Part
from discreet.tables.sources import parts_of


class Rows:
    """Some columns of a table, or of many that are alike, in chunks of bounded size. PRIVATE.

    Iterating yields (keys, values), or (keys, values, groups) with every record wholly in one
    chunk: numpy arrays of shapes (m, d), (m, d_v) and (m,). With `labels`, those stand where values
    would: shape (m,), numbers or texts. Floats keep their width; groups that are texts are Python's
    own, in an array of objects. It can be iterated over again,
    unless the source comes once (a reader, a generator).

    Without groups a chunk has about 2^22 numbers. With them the source is read once for every
    256 MB of rows (as float64), and a chunk has about so many; what comes once is held, up to
    1 GiB.

    Args:
        source: a directory (read recursively, sorted), a pattern like "data/*.parquet", a file
            (.parquet, .npz or .safetensors) or a list of them; or anything that speaks Arrow: a
            table, a data frame of pandas or Polars, a relation of DuckDB, a dataset or reader of
            pyarrow, or an iterable of such tables and batches.
        keys: the column of lists, or columns of numbers: "embedding", "age,income" or
            ["age", "income"].
        values: likewise.
        labels: the column of labels, instead of values.
        groups: the column that says which record a row belongs to, whole numbers or texts.
        widths: of keys and values, if they are known: for a table, or a list of tables, that may
            have no rows and so nothing to tell them by.
    """

    def __init__(
        self,
        source: object,
        *,
        keys: Names,
        values: Names | None = None,
        labels: str | None = None,
        groups: str | None = None,
        widths: tuple[int, int] | None = None,
    ) -> None:
        self._columns = Columns.of(keys, values, labels, groups)
        nothing = widths is not None and isinstance(source, list) and not source
        self._tables = [] if nothing else parts_of(source)
        self._given_widths = widths

    def __repr__(self) -> str:
        return f"<Rows of {self.name}: private>"

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if not self.by_record:
            return ((keys, values) for keys, values, _ in self.chunks())
        return self._records()

    def chunks(self) -> Iterator[Chunk]:
        """Yield (keys, values, groups or None) in the order of the source, at least one chunk.

        A record's rows lie where they lie: whoever bounds what a record adds must gather them.
        """
        return sized(self._alike())

    def parts(self) -> list["Rows"]:
        """Return one for each file, or fragment of a dataset; itself, if there is but one.

        Those of files can be pickled: they hold paths and names, and nothing that was read.
        """
        if len(self._tables) < 2:
            return [self]
        widths = self._found_widths()
        return [self._part(each, widths) for each in self._tables]

    def check(self) -> None:
        """Raise `InvalidInput` if a file or schema is not what was asked for, or unlike others."""
        known: Forms | None = None
        for table in self._tables:
            known = self._met(known, table.forms(self._columns))

    @property
    def name(self) -> str:
        """The public name of a part: its path relative to what was given. Of many, the first's."""
        return self._tables[0].name if self._tables else "nothing"

    @property
    def files(self) -> list[Path]:
        """The files that are read, if they are files."""
        return [table.path for table in self._tables if isinstance(table, FilePart)]

    @property
    def has_texts(self) -> bool:
        """Whether labels are texts."""
        return self._tables[0].forms(self._columns).values.kind == "texts"

    @property
    def key_dim(self) -> int:
        """The width of keys."""
        return self._widths()[0]

    @property
    def value_dim(self) -> int:
        """The width of values; 1 for labels."""
        return self._widths()[1]

    @property
    def count(self) -> int | None:
        """How many rows there are, if that is known without reading them. PRIVATE."""
        counts = [table.count(self._columns) for table in self._tables]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    @property
    def in_files(self) -> bool:
        """Whether all rows are in files, which other processes can open, too."""
        return all(isinstance(table, FilePart) for table in self._tables)

    @property
    def by_record(self) -> bool:
        """Whether rows come with the record that they belong to."""
        return self._columns.groups is not None

    def _part(self, table: Part, widths: tuple[int, int] | None) -> "Rows":
        part = object.__new__(Rows)
        part._columns, part._tables, part._given_widths = self._columns, [table], widths
        return part

    def _records(self) -> Iterator[Chunk]:
        return gathered(
            self._alike,
            rows=self.count,
            row_bytes=8 * sum(self._widths()),
            again=all(table.again for table in self._tables),
        )

    def _alike(self) -> Iterator[Chunk]:
        """Yield all rows, if they can stand in one table."""
        known: Forms | None = None
        empty = True
        for table in self._tables:
            with table.opened(self._columns) as reading:
                if self._given_widths is not None and reading.rows == 0:
                    continue  # its columns may be of no type at all
                forms = reading.forms()
                known = self._met(known, forms)
                for chunk in reading.chunks():
                    if len(chunk[0]):
                        known = self._met(known, forms.of_chunk(chunk))
                        empty = False
                        yield chunk
        if empty:
            yield self._nothing(known)

    def _met(self, known: Forms | None, met: Forms) -> Forms:
        """Return what rows hold as far as it is known by now, if what was met fits to it."""
        if known is None:
            return met
        known.check_fits(met, self._columns)
        return met if None in (known.keys.width, known.values.width) else known

    def _widths(self) -> tuple[int, int]:
        widths = self._found_widths()
        if widths is None:
            raise self._unknown()
        return widths

    def _found_widths(self) -> tuple[int, int] | None:
        """Return the widths of keys and values, from the first table that tells them."""
        if self._given_widths is not None:
            return self._given_widths
        known: Forms | None = None
        for table in self._tables:
            known = self._met(known, table.forms(self._columns))
            if known.keys.width is not None and known.values.width is not None:
                return known.keys.width, known.values.width
        return None

    def _nothing(self, forms: Forms | None) -> Chunk:
        """Return a chunk without rows."""
        key_dim, value_dim = self._given_widths or (
            (None, None) if forms is None else (forms.keys.width, forms.values.width)
        )
        if key_dim is None or value_dim is None:
            raise self._unknown()
        values = np.empty((0, value_dim))
        if self._columns.labels:
            values = np.empty(0, _dtype(None if forms is None else forms.values))
        groups = np.empty(0, _dtype(None if forms is None else forms.groups))
        return np.empty((0, key_dim)), values, groups if self.by_record else None

    def _unknown(self) -> InvalidInput:
        where = self._tables[0].where if self._tables else "the table"
        return InvalidInput(f"Expected {where} to have rows: else its width is unknown.")


def _dtype(form: Form | None) -> Any:  # noqa: ANN401
    return np.int64 if form is None else {"texts": str, "bytes": bytes}.get(form.kind, np.int64)
