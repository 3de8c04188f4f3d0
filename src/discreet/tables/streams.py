"""Arrow's own tables, streams and datasets, and iterables of them. Needs the extra `parquet`."""

import abc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from discreet.errors import InvalidInput
from discreet.tables.arrow import Arrow, chunk_of, forms_of, is_text
from discreet.tables.columns import Chunk, Columns, Forms, InMemory, Part, sentences

# What a cell of a column of objects holds that is no number, no text and no list of them.
_OTHER = "another type"

# Rows that become arrays at once, and that a dataset unpacks before the length of lists is known.
_ROWS_AT_ONCE = 2**16
_ROWS_UNPACKED = 2**13

_READABLE = "readable to the end"

_ONCE = (
    "Expected rows that can be read again, and a stream is read once. Give a table, or write "
    "Parquet files and give those."
)


def arrow_parts(given: object) -> list[Part]:
    """Return the tables that something of Arrow's stands for, at least one."""
    from pyarrow import dataset

    if isinstance(given, dataset.Dataset):
        return _dataset_parts(given)
    if _speaks_arrow(given):
        once = partial(_stream, given)
        return [_Once(once) if isinstance(given, Iterator) else _Table(given)]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | dict):
        return [_Once(partial(_chained, given)) if _comes_once(given) else _Tables(given)]
    kind = type(given).__name__
    hint = "; .collect() makes a table of it" if kind == "LazyFrame" else ""
    raise InvalidInput(f"Expected files, or something that speaks Arrow, and it is a {kind}{hint}.")


class _Batches:
    """Record batches that are read once; those up to the first row are looked at before.

    Args:
        batches: at least one, with these columns or more.
        columns: what is wanted of them.
        where: what messages call them.
        rows: how many there are, if that is known. PRIVATE.
        again: whether there can be another pass; else batches without rows that come first, which
            may have any columns, are passed over.
    """

    def __init__(
        self,
        batches: Iterator[Arrow],
        columns: Columns,
        where: str,
        *,
        rows: int | None = None,
        again: bool = True,
    ) -> None:
        self.rows = rows
        self._columns, self._where, self._again = columns, where, again
        self._begin: list[Arrow] = []
        self._rest: Iterator[Arrow] | None = batches

    def forms(self) -> Forms:
        """Return what the columns hold; of lists, the first tells how long they are."""
        if self._rest is None:
            raise InvalidInput(_ONCE)
        self._begin = self._begin or _up_to_rows(self._rest)
        if not self._again:
            del self._begin[:-1]
        first = self._begin[-1]
        forms = forms_of(first.schema, self._columns, self._where)
        if first.num_rows == 0 or None not in (forms.keys.width, forms.values.width):
            return forms
        return forms.of_chunk(chunk_of(first.slice(0, 1), self._columns, self._where))

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, some at a time."""
        if self._rest is None:
            raise InvalidInput(_ONCE)
        batches = _drained(self._begin, self._rest)
        self._begin, self._rest = [], None
        known: Forms | None = None
        for batch in batches:
            forms = forms_of(batch.schema, self._columns, self._where)
            known = known or forms
            known.check_fits(forms, self._columns)
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                yield chunk_of(batch.slice(start, _ROWS_AT_ONCE), self._columns, self._where)


class Readable(Part):
    """What can be read as often as wanted."""

    @abc.abstractmethod
    def _batches(self, columns: Columns) -> Iterator[Arrow]:
        """Yield record batches, with these columns or more, at least one."""

    @abc.abstractmethod
    def _count(self) -> int | None:
        """Return the number of rows, if it is there already. PRIVATE."""

    @contextmanager
    def opened(self, columns: Columns) -> Iterator[_Batches]:
        """Begin a pass. Nothing is asked for before somebody looks."""
        with sentences(self.where, _READABLE):
            yield _Batches(self._batches(columns), columns, self.where, rows=self._count())


@dataclass(frozen=True, eq=False, repr=False)
class _Table(InMemory, Readable):
    """A table, a data frame, or a relation that is asked again. PRIVATE."""

    given: Arrow
    name: str = "table"
    where: str = "the table"

    def _batches(self, columns: Columns) -> Iterator[Arrow]:
        return _stream(self.given, columns.all)

    def _count(self) -> int | None:
        return _length(self.given)


@dataclass(frozen=True, eq=False, repr=False)
class _Tables(InMemory, Readable):
    """Several tables or batches. PRIVATE."""

    given: Iterable[Arrow]
    name: str = "tables"
    where: str = "the tables"

    def _batches(self, columns: Columns) -> Iterator[Arrow]:
        return _chained(self.given, columns.all)

    def _count(self) -> int | None:
        if not isinstance(self.given, list | tuple):
            return None
        lengths = [_length(each) for each in self.given]
        return None if None in lengths else sum(lengths)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class _Dataset(Readable):
    """A dataset, or one file of it.

    Attributes:
        given: it.
        name: of the file.
        where: what messages call it.
        schema: of the dataset; for a file, other columns than its own may come with it.
        folders: names of columns that are read off the names of folders.
    """

    given: Arrow
    name: str
    where: str
    schema: Arrow | None = None
    folders: frozenset[str] = frozenset()

    def _batches(self, columns: Columns) -> Iterator[Arrow]:
        schema = self.given.schema if self.schema is None else self.schema
        self._check_folders(schema, columns)
        names = columns.all
        options = {"batch_size": _ROWS_UNPACKED, "batch_readahead": 2, "fragment_readahead": 1}
        if self.schema is not None:
            options["schema"] = schema
        if all(schema.names.count(name) == 1 for name in names):
            yield from self.given.to_batches(columns=names, **options)
        yield no_rows(schema)  # of which whoever looks for a column can say what there is

    def _count(self) -> int | None:
        """Return the number of rows in the footer, if it has one. PRIVATE."""
        rows = getattr(getattr(self.given, "metadata", None), "num_rows", None)
        return rows if isinstance(rows, int) else None

    def _check_folders(self, schema: Arrow, columns: Columns) -> None:
        """Raise `InvalidInput` if the names of folders decide which type ids have.

        They are whole numbers if all can be read so: one folder more, and 1 and 01 are two records.
        """
        exact = {columns.groups} | set(columns.values if columns.labels else ())
        for name in sorted(self.folders & (exact - {None})):
            if schema.names.count(name) == 1 and not is_text(schema.field(name).type):
                raise InvalidInput(
                    f"Expected {name}, which is read off the names of folders, to be texts: "
                    f"partitioning=partitioning(schema([({name!r}, string())]), flavor='hive')."
                )


class _Once(InMemory, Part):
    """A stream that comes once. PRIVATE."""

    name = "stream"
    where = "the stream"
    again: ClassVar[bool] = False

    def __init__(self, batches: Callable[[list[str]], Iterator[Arrow]]) -> None:
        self._batches = batches
        self._reading: _Batches | None = None

    @contextmanager
    def opened(self, columns: Columns) -> Iterator[_Batches]:
        """Begin the only pass, or go on with it: what has been looked at is kept for later."""
        with sentences(self.where, _READABLE):
            if self._reading is None:
                batches = self._batches(columns.all)
                self._reading = _Batches(batches, columns, self.where, again=False)
            yield self._reading


def _comes_once(given: Iterable[Arrow]) -> bool:
    """Return whether whoever iterates a second time goes on where the first one stopped."""
    return isinstance(given, Iterator) or iter(given) is iter(given)


def _dataset_parts(dataset: Arrow) -> list[Part]:
    """Return one part for each file, or one for all where there are none or some are filtered."""
    with sentences("the dataset", _READABLE):
        try:
            fragments = list(dataset.get_fragments())
        except ValueError:  # filtered or projected, which files by themselves are not
            fragments = []
        folders = frozenset(_folders(dataset))
        _check_formats(dataset)
    paths = [str(getattr(each, "path", "")) for each in fragments]
    files = [os.path.realpath(path) for path in paths if os.path.exists(path)]
    if len(set(files)) != len(files) or (all(paths) and len(set(paths)) != len(paths)):
        raise InvalidInput("Expected every file of the dataset once: rows would count twice.")
    if not all(paths) or not paths:
        with sentences("the dataset", _READABLE):
            _check_types(dataset, dataset.schema)
        return [_Dataset(dataset, "dataset", "the dataset", None, folders)]
    root = os.path.commonpath([os.path.dirname(path) for path in paths])
    schemas = [_own_schema(each, dataset.schema) for each in fragments]
    return [
        _Dataset(each, os.path.relpath(path, root), path, schema, folders)
        for each, path, schema in zip(fragments, paths, schemas, strict=True)
    ]


def _own_schema(fragment: Arrow, schema: Arrow) -> Arrow:
    """Return a dataset's columns in the types that this file has them in.

    A dataset has the types of its first file, and would round all others to them.
    """
    own = fragment.physical_schema
    known = [name for name in schema.names if own.names.count(name) == 1]
    types = [own.field(each.name) if each.name in known else each for each in schema]
    return pa.schema(types)


def _check_types(dataset: Arrow, schema: Arrow) -> None:
    """Raise `InvalidInput` if a dataset that cannot be read by file rounds some of its files.

    Args:
        dataset: it, or one of those that it is the union of.
        schema: the types that all are read in.
    """
    from pyarrow import dataset as datasets

    for child in getattr(dataset, "children", ()):
        _check_types(child, schema)
    for path in getattr(dataset, "files", ()):
        own = datasets.dataset(path, format=dataset.format, filesystem=dataset.filesystem).schema
        for field in own:
            taken = schema.field(field.name) if schema.names.count(field.name) == 1 else field
            if field.type != taken.type:
                raise InvalidInput(
                    f"Expected {field.name} to have one type in all files of a dataset that is "
                    f"filtered, and it is {field.type} in {path}, {taken.type} in others: rows "
                    "would be rounded."
                )


def _check_formats(dataset: Arrow) -> None:
    """Raise `InvalidInput` if files do not say which types they have: those are guessed from rows.

    One id that is no number would make texts of all, and 1 and 01 would be two records.
    """
    for child in getattr(dataset, "children", ()):
        _check_formats(child)
    kind = getattr(getattr(dataset, "format", None), "default_extname", "parquet")
    if kind in ("csv", "json"):
        raise InvalidInput(
            f"Expected files that say which types they have, such as Parquet: those of {kind} "
            "files are guessed from the rows. pyarrow.csv.open_csv with column_types= is a stream "
            "that says them."
        )


def _folders(dataset: Arrow) -> Iterator[str]:
    """Yield the names of columns that are read off the names of folders."""
    for child in getattr(dataset, "children", ()):
        yield from _folders(child)
    partitioning = getattr(dataset, "partitioning", None)
    yield from () if partitioning is None else partitioning.schema.names


def _up_to_rows(batches: Iterator[Arrow]) -> list[Arrow]:
    """Return batches up to the first that has rows, at least one."""
    begin = []
    for batch in batches:
        begin.append(batch)
        if batch.num_rows:
            break
    if not begin:
        raise InvalidInput("Expected at least one table (it may have no rows).")
    return begin


def _drained(begin: list[Arrow], rest: Iterator[Arrow]) -> Iterator[Arrow]:
    """Yield all batches, and keep none of those that have been looked at."""
    while begin:
        yield begin.pop(0)
    yield from rest


def no_rows(schema: Arrow) -> Arrow:
    """Return a batch without rows, which has all columns of a schema."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def _stream(given: Arrow, names: list[str]) -> Iterator[Arrow]:
    """Yield the batches of something that speaks Arrow, at least one, with these columns or more.

    Args:
        given: it.
        names: what is wanted of it. Where one is not there, whoever looks for it will say so.
    """
    if isinstance(given, pa.Table) and all(given.schema.names.count(each) == 1 for each in names):
        given = given.select(names)
    if hasattr(given, "to_native"):  # narwhals, around a frame
        given = given.to_native()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(given, pandas.Series | pandas.Index):
        raise InvalidInput("Expected a table, and it is one column of pandas, of any type.")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        given = _wanted(given, names)
        _check_objects(given)
        pandas = None
    if not hasattr(given, "__arrow_c_stream__"):
        yield pa.record_batch(given)
        return
    reader = pa.RecordBatchReader.from_stream(given)
    library = type(given).__module__.split(".")[0]
    if pandas is not None and library != "pyarrow" and b"pandas" in (reader.schema.metadata or {}):
        raise InvalidInput("Expected a pandas frame itself, and it is inside something else.")
    some = False
    for batch in reader:
        some = True
        yield batch
    if not some:
        yield no_rows(reader.schema)


def _wanted(frame: Arrow, names: list[str]) -> Arrow:
    """Return these columns of a pandas frame, those of its index among them, and no index."""
    levels = [name for name in frame.index.names if name in names and name not in frame.columns]
    frame = frame.reset_index(level=levels) if levels else frame
    return frame[[name for name in frame.columns if name in names]].reset_index(drop=True)


def _check_objects(frame: Arrow) -> None:
    """Raise `InvalidInput` if a column of Python's objects has several types, in a pandas frame.

    Arrow chooses one type for all, and one whole number makes it cut off what others have behind
    the point if they are float16. Python's own numbers it takes together without loss, or not.
    """
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        cells = frame.iloc[:, place]
        if hasattr(dtype, "categories"):
            cells, dtype = dtype.categories, dtype.categories.dtype  # noqa: PLW2901
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            found: set[str] = set().union(*map(_types, cells))
            if (len(found) > 1 and not found <= {"int", "float"}) or _OTHER in found:
                raise InvalidInput(
                    f"Expected {str(name)!r} in the table to hold one type in every row, none "
                    "missing: of a column of objects one row would decide what becomes of all."
                )


def _types(cell: object) -> set[str]:
    """Return the types in a cell of a column of objects: of lists, those of their numbers."""
    if isinstance(cell, np.ndarray) and cell.dtype.kind != "O":
        return {f"array of {cell.dtype}"}
    if isinstance(cell, list | tuple | np.ndarray):
        return set().union(*map(_types, cell)) if len(cell) else {"float"}
    plain = isinstance(cell, str | bytes | int | float | np.generic)
    return {type(cell).__name__ if plain else _OTHER}


def _chained(tables: Iterable[Arrow], names: list[str]) -> Iterator[Arrow]:
    for table in tables:
        if not _speaks_arrow(table):
            kind = type(table).__name__
            raise InvalidInput(f"Expected tables that speak Arrow, and there is a {kind}.")
        yield from _stream(table, names)


def _speaks_arrow(given: object) -> bool:
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")


def _length(table: Arrow) -> int | None:
    """Return the number of rows of what is in memory; a relation of DuckDB would run for it."""
    library = type(table).__module__.split(".")[0]
    return len(table) if library in ("pyarrow", "pandas", "polars") else None
