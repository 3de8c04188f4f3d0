"""Arrow's columns as numpy's: numbers, lists of numbers, texts. Needs the extra `parquet`.

Without copies where numbers lie side by side already. And Parquet files, which are made of such
columns: some of them as one array, or a few rows at a time; and written, once there is something to
give away.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet, types

from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.tables.columns import (
    Chunk,
    Columns,
    FilePart,
    Form,
    Forms,
    check_unpacked,
    listed,
    sentences,
)

# pyarrow's own types are not annotated.
Arrow = Any

_LISTS = (
    types.is_list,
    types.is_large_list,
    types.is_fixed_size_list,
    types.is_list_view,
    types.is_large_list_view,
)
_TEXTS = (types.is_string, types.is_large_string, types.is_string_view)
_NUMBERS = (types.is_floating, types.is_integer, types.is_boolean)

# So many numbers are unpacked at once; a few megabytes. What a row has is in the footer.
_NUMBERS_AT_ONCE = 2**20
_ROWS_AT_ONCE = 2**16


def forms_of(schema: Arrow, columns: Columns, where: str) -> Forms:
    """Return what the columns of a schema hold, if all are there and can be read."""
    check_names(schema, columns.all, where)
    keys = number_form(schema, columns.keys, where)
    if columns.labels:
        values = _single_form(schema, columns.values[0], where, numbers=_NUMBERS, wanted="number")
    else:
        values = number_form(schema, columns.values, where)
    groups = None
    if columns.groups is not None:
        groups = _single_form(
            schema, columns.groups, where, numbers=(types.is_integer,), wanted="whole number"
        )
    return Forms(keys, values, groups, where)


def chunk_of(batch: Arrow, columns: Columns, where: str) -> Chunk:
    """Return the columns of a record batch as arrays."""
    keys = numbers(batch, columns.keys, where)
    if columns.labels:
        values = single(batch, columns.values[0], where)
        values = values.astype(str) if values.dtype == object else values
    else:
        values = numbers(batch, columns.values, where)
    return keys, values, None if columns.groups is None else single(batch, columns.groups, where)


def check_names(schema: Arrow, names: list[str], where: str, *, hint: str = "") -> None:
    """Raise `InvalidInput` unless there is one column of each name."""
    for name in names:
        if schema.names.count(name) != 1:
            known = listed(schema.names)
            raise InvalidInput(
                f"Expected {where} to have one column {name!r}; it has: {known}{hint}."
            )


def number_form(schema: Arrow, names: tuple[str, ...], where: str) -> Form:
    """Return what these columns hold together, if that is numbers, or lists of them."""
    kinds = [_plain(schema.field(name).type) for name in names]
    nested = any(map(_is_nested, kinds))
    if nested and len(names) > 1:
        raise InvalidInput(f"Expected one column of lists in {where}, or many of numbers.")
    for name, kind in zip(names, kinds, strict=True):
        if not _is_number(_plain(kind.value_type) if nested else kind):
            raise InvalidInput(
                f"Expected {name} in {where} to be numbers, or lists of them, and it is {kind}."
            )
    if not nested:
        return Form("numbers", len(names))
    return Form("lists", kinds[0].list_size if types.is_fixed_size_list(kinds[0]) else None)


def is_text(kind: Arrow) -> bool:
    """Return whether a column of this type holds texts."""
    return any(test(_plain(kind)) for test in _TEXTS)


def embeddings(schema: Arrow) -> list[str]:
    """Return the names of the columns that hold lists of numbers with a point."""
    return [
        each.name
        for each in schema
        if _is_nested(each.type) and types.is_floating(_plain(each.type.value_type))
    ]


def numbers(batch: Arrow, names: tuple[str, ...], where: str) -> NDArray[Any]:
    """Return columns of numbers, or lists of one length, as the rows of an array (m, width)."""
    columns = [_column(batch, name, where) for name in names]
    if _is_nested(columns[0].type):
        return _flat(columns[0], names[0], where)
    arrays = [_numpy(column) for column in columns]
    return arrays[0][:, None] if len(arrays) == 1 else np.stack(arrays, axis=1)


def single(batch: Arrow, name: str, where: str) -> NDArray[Any]:
    """Return a column with one number or text for each row, shape (m,); texts are Python's own."""
    column = _column(batch, name, where)
    if not is_text(column.type):
        return _numpy(column)
    # Each text is made once. Python's own, because numpy's drop zeros at their end.
    coded = column.cast(pa.large_string()).dictionary_encode()
    known = np.empty(len(coded.dictionary), dtype=object)
    try:
        known[:] = coded.dictionary.to_pylist()
    except UnicodeDecodeError:  # its message quotes them
        raise InvalidInput(f"Expected texts of {name} in {where} to be UTF-8.") from None
    return np.asarray(known[_numpy(coded.indices)])


def _single_form(
    schema: Arrow, name: str, where: str, *, numbers: tuple[Any, ...], wanted: str
) -> Form:
    kind = schema.field(name).type
    if is_text(kind):
        return Form("texts")
    if not any(test(_plain(kind)) for test in numbers):
        raise InvalidInput(
            f"Expected {name} in {where} to hold a {wanted} or text for each row, and it is {kind}."
        )
    return Form("numbers")


def _column(batch: Arrow, name: str, where: str) -> Arrow:
    column = _decoded(batch.column(name))
    if column.null_count:
        raise InvalidInput(f"Expected no missing value in {name} of {where}.")
    return column


def _decoded(column: Arrow) -> Arrow:
    """Return what a dictionary stands for in each row: a categorical of pandas, an Enum of Polars.

    Polars has views of texts in it, of which pyarrow cannot take some.
    """
    if not types.is_dictionary(column.type):
        return column
    if types.is_string_view(column.type.value_type):
        texts = column.dictionary.cast(pa.large_string())
        column = pa.DictionaryArray.from_arrays(column.indices, texts)
    return column.dictionary_decode()


def _flat(column: Arrow, name: str, where: str) -> NDArray[Any]:
    flat = _decoded(column.flatten())
    width = len(flat) // max(len(column), 1)
    if types.is_fixed_size_list(column.type):
        width = column.type.list_size
        ragged = len(flat) != width * len(column)
    else:
        # Not `value_lengths`, which loads all of pyarrow.compute.
        views = hasattr(column, "sizes")
        lengths = _numpy(column.sizes) if views else np.diff(_numpy(column.offsets))
        ragged = bool(np.any(lengths != width))
    if ragged or flat.null_count:
        raise InvalidInput(f"Expected lists of one length, complete, in {name} of {where}.")
    return _numpy(flat).reshape(len(column), width)


def _numpy(numbers: Arrow) -> NDArray[Any]:
    """Return complete numbers as an array; pyarrow's own way loads all of pandas if it can."""
    if types.is_boolean(numbers.type):  # eight to a byte
        return np.asarray(numbers.to_numpy(zero_copy_only=False))
    return np.from_dlpack(numbers)


def _plain(kind: Arrow) -> Arrow:
    """Return the type of what a dictionary stands for."""
    return kind.value_type if types.is_dictionary(kind) else kind


def _is_nested(kind: Arrow) -> bool:
    return any(test(kind) for test in _LISTS)


def _is_number(kind: Arrow) -> bool:
    return any(test(kind) for test in _NUMBERS)


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


def write_parquet(batches: Iterable[Mapping[str, Any]], file: IO[bytes]) -> None:
    """Write rows as a Parquet file, numbers in the types that they have, vectors as lists.

    Args:
        batches: columns of some rows each, with the same names: numpy arrays of shape (m,) or
            (m, k), or lists of what Arrow has a type for.
        file: to write to.
    """
    parts = list(batches)
    names = parts[0] if parts else ()
    columns = {name: _joined([part[name] for part in parts]) for name in names}
    parquet.write_table(pa.table(columns), file)


def _joined(parts: Sequence[Any]) -> Arrow:
    """Return the parts of a column as one of Arrow's."""
    if not isinstance(parts[0], np.ndarray):
        return pa.array(list(chain.from_iterable(parts)))
    whole = np.concatenate(parts)
    if whole.ndim == 1:
        return pa.array(whole)
    ends = np.arange(len(whole) + 1, dtype=np.int64) * whole.shape[1]
    return pa.LargeListArray.from_arrays(ends, np.ascontiguousarray(whole).ravel())
