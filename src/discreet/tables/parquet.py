"""Parquet files: some columns as one array, or a few rows at a time. Needs the extra `parquet`."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.tables.arrow import (
    Arrow,
    check_names,
    chunk_of,
    forms_of,
    is_text,
    number_form,
    numbers,
    single,
)
from discreet.tables.columns import (
    Chunk,
    Columns,
    FilePart,
    Form,
    Forms,
    check_unpacked,
    sentences,
)

# So many numbers are unpacked at once; a few megabytes. What a row has is in the footer.
_NUMBERS_AT_ONCE = 2**20
_ROWS_AT_ONCE = 2**16


class ParquetPart(FilePart):
    """One file as a table. Its footer knows how many rows there are, and how long lists are."""

    @contextmanager
    def opened(self, columns: Columns) -> "Iterator[_Opened]":
        """Open the file for one pass.

        Its footer is read anew, rather than handed on from a look (`metadata=`): the footer of a
        file that has been replaced since would find other rows.
        """
        with _opened(self.path) as file:
            yield _Opened(file, self.path, columns)


@dataclass(frozen=True, eq=False)
class _Opened:
    """A file that is open, and the columns that are read of it."""

    file: Arrow
    path: Path
    columns: Columns

    @property
    def rows(self) -> int:
        """The number of rows in the footer. PRIVATE."""
        return int(self.file.metadata.num_rows)

    def forms(self) -> Forms:
        """Return what the columns hold; the footer tells how long lists are."""
        forms = forms_of(self.file.schema_arrow, self.columns, str(self.path))
        return replace(
            forms,
            keys=_with_length(forms.keys, self.file, self.columns.keys[0]),
            values=_with_length(forms.values, self.file, self.columns.values[0]),
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, a few megabytes at a time."""
        for batch in _batches(self.path, self.file, self.columns.all):
            yield chunk_of(batch, self.columns, str(self.path))


def read_columns(path: Path, names: list[str], *, named: bool) -> Array:
    """Return one column of lists of equal length, or several of numbers, shape (n, width).

    A single column of texts is returned as a list: record ids. What does not fit in memory is
    refused before there is an array.

    Args:
        path: the file.
        names: its columns, in order.
        named: whether somebody asked for them by name; else a message says how to.
    """
    hint = "" if named else f" (write {path.name}:COLUMN or {path.name}:ONE,TWO)"
    with _opened(path) as file:
        schema = file.schema_arrow
        check_names(schema, names, str(path), hint=hint)
        if len(names) == 1 and is_text(schema.field(names[0]).type):
            return _read_texts(path, file, names[0])
        number_form(schema, tuple(names), str(path))
        return _read_numbers(path, file, names)


def _read_texts(path: Path, file: Arrow, name: str) -> list[str]:
    texts: list[str] = []
    size = 0
    for batch in _batches(path, file, [name]):
        size += batch.nbytes
        check_unpacked(path, size)
        texts += single(batch, name, str(path)).tolist()
    return texts


def _read_numbers(path: Path, file: Arrow, names: list[str]) -> NDArray[Any]:
    rows = file.metadata.num_rows
    array: NDArray[Any] | None = None
    start = 0
    for batch in _batches(path, file, names):
        part = numbers(batch, tuple(names), str(path))
        if array is None:
            check_unpacked(path, rows * part.shape[1] * part.itemsize)
            array = np.empty((rows, part.shape[1]), part.dtype)
        if part.shape[1] != array.shape[1]:
            raise InvalidInput(f"Expected lists of one length in {path}.")
        array[start : start + len(part)] = part
        start += len(part)
    if array is None:
        raise InvalidInput(f"Expected {path} to have rows: else its width is unknown.")
    return array


@contextmanager
def _opened(path: Path) -> Iterator[Arrow]:
    """Yield a file; what is wrong with it becomes a sentence."""
    wanted = "a whole .parquet file"
    with sentences(path, wanted), parquet.ParquetFile(path, memory_map=True) as file:
        yield file


def _batches(path: Path, file: Arrow, names: list[str]) -> Iterator[Arrow]:
    """Yield some rows at a time, if there are as many as the file says."""
    rows = file.metadata.num_rows
    seen = 0
    for batch in file.iter_batches(_rows_at_once(file, names), columns=names, use_threads=False):
        if batch.num_columns != len(names):  # a name with a dot in it may be a path, too
            raise InvalidInput(f"Expected {path} to have columns that can be told apart by name.")
        seen += batch.num_rows
        if seen > rows:
            break
        yield batch
    if seen != rows:
        raise InvalidInput(f"Expected {path} to have as many rows as it says.")


def _rows_at_once(file: Arrow, names: list[str]) -> int:
    """Return how many rows are a few megabytes, by the footer: lists may be of any length."""
    width = 1.0
    for rows, columns in _row_groups(file, names):
        sizes = [max(each.num_values, each.total_uncompressed_size // 8) for each in columns]
        width = max(width, sum(sizes) / rows)
    return max(1, min(_ROWS_AT_ONCE, math.floor(_NUMBERS_AT_ONCE / width)))


def _with_length(form: Form, file: Arrow, name: str) -> Form:
    """Return a form with the length of lists that the footer implies, if it is one length."""
    if form.width is not None:
        return form
    lengths = {
        divmod(sum(each.num_values for each in columns), rows)
        for rows, columns in _row_groups(file, [name])
        if len(columns) == 1  # else there are columns called NAME.SOMETHING, too
    }
    if len(lengths) != 1:  # no rows, or lists that differ: whoever reads them will see
        return form
    ((length, rest),) = lengths
    return form if rest else Form(form.kind, length)


def _row_groups(file: Arrow, names: list[str]) -> Iterator[tuple[int, list[Arrow]]]:
    """Yield the rows of each row group that has any, and what the footer says of some columns."""
    metadata = file.metadata
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    wanted = [
        index
        for index, path in enumerate(paths)
        if any(path == name or path.startswith(f"{name}.") for name in names)
    ]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows > 0:
            yield group.num_rows, [group.column(index) for index in wanted]
