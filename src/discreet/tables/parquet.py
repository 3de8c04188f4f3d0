"""Columns of a Parquet file as one array. Needs the extra `parquet`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet, types

from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.tables.limits import check_unpacked
from discreet.tables.names import listed

# pyarrow's own types are not annotated.
Arrow = Any

# Few enough that a batch of long lists fits in memory before their length is known.
_ROWS_AT_ONCE = 2**10


def read_columns(path: Path, names: list[str], *, named: bool) -> Array:
    """Return one column of lists of equal length, or several of numbers, shape (n, width).

    A single column of texts is returned as a list: record ids. What does not fit in memory is
    refused before there is an array.

    Args:
        path: the file.
        names: its columns, in order.
        named: whether somebody asked for them by name; else a message says how to.
    """
    try:
        with parquet.ParquetFile(path, memory_map=True) as file:
            return _Columns(path, file, names, named=named).read()
    except pa.ArrowException:  # its message may quote what is in the file
        raise InvalidInput(f"Expected {path} to be a whole .parquet file.") from None


class _Columns:
    """Some columns of a file that is open."""

    def __init__(self, path: Path, file: Arrow, names: list[str], *, named: bool) -> None:
        known = file.schema_arrow.names
        hint = "" if named else f" (write {path.name}:COLUMN or {path.name}:ONE,TWO)"
        for name in names:
            if known.count(name) != 1:
                raise InvalidInput(
                    f"Expected {path} to have one column {name!r}; it has: {listed(known)}{hint}."
                )
        self.path, self.file, self.names = path, file, names
        self.rows = file.metadata.num_rows
        self.types = [_plain(file.schema_arrow.field(name).type) for name in names]

    def read(self) -> Array:
        """Return the array, or the texts."""
        if len(self.names) == 1 and _is_text(self.types[0]):
            return self._texts()
        nested = any(map(_is_nested, self.types))
        if nested and len(self.names) > 1:
            raise InvalidInput(f"Expected one column of lists in {self.path}, or many of numbers.")
        kinds = [self.types[0].value_type] if nested else self.types
        if not all(map(_is_number, kinds)):
            raise InvalidInput(
                f"Expected {', '.join(self.names)} in {self.path} to be numbers, or lists of them."
            )
        return self._numbers(np.result_type(*(kind.to_pandas_dtype() for kind in kinds)))

    def _batches(self) -> Iterator[Any]:
        """Yield a few rows at a time, if there are as many as the file says and none is missing."""
        seen = 0
        for batch in self.file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=self.names):
            columns = [batch.column(name) for name in self.names]
            if batch.num_columns != len(columns) or any(each.null_count for each in columns):
                raise InvalidInput(f"Expected no missing value in the columns of {self.path}.")
            seen += batch.num_rows
            if seen > self.rows:
                break
            yield columns
        if seen != self.rows:
            raise InvalidInput(f"Expected {self.path} to have as many rows as it says.")

    def _texts(self) -> list[str]:
        texts: list[str] = []
        size = 0
        for [column] in self._batches():
            plain = column.cast(pa.large_string())
            size += plain.nbytes
            check_unpacked(self.path, size)
            texts += plain.to_pylist()
        return texts

    def _numbers(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        array: NDArray[Any] | None = None
        start = 0
        for columns in self._batches():
            part = self._flat(columns[0]) if _is_nested(self.types[0]) else _stacked(columns)
            if array is None:
                check_unpacked(self.path, self.rows * part.shape[1] * dtype.itemsize)
                array = np.empty((self.rows, part.shape[1]), dtype)
            if part.shape[1] != array.shape[1]:
                raise InvalidInput(f"Expected lists of one length in {self.path}.")
            array[start : start + len(part)] = part
            start += len(part)
        if array is None:
            raise InvalidInput(f"Expected {self.path} to have rows: else its width is unknown.")
        return array

    def _flat(self, column: Arrow) -> NDArray[Any]:
        """Return lists of one length as the rows of an array."""
        numbers = column.flatten()
        width = len(numbers) // max(len(column), 1)
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if numbers.null_count or np.any(lengths != width):
            raise InvalidInput(f"Expected lists of one length, complete, in {self.path}.")
        return np.asarray(numbers.to_numpy(zero_copy_only=False).reshape(len(column), width))


def _stacked(columns: list[Any]) -> NDArray[Any]:
    return np.stack([each.to_numpy(zero_copy_only=False) for each in columns], axis=1)


def _plain(kind: Arrow) -> Arrow:
    """Return the type of what a dictionary (pandas: a categorical) stands for."""
    return kind.value_type if types.is_dictionary(kind) else kind


def _is_text(kind: Arrow) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_nested(kind: Arrow) -> bool:
    return bool(types.is_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Arrow) -> bool:
    return any(test(kind) for test in (types.is_floating, types.is_integer, types.is_boolean))
