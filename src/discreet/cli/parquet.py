"""Columns of a Parquet file as one array. Needs the extra `parquet`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from discreet.errors import InvalidInput

_ROWS_AT_ONCE = 2**16

Check = Callable[[Path, int], None]


def read_columns(path: Path, names: list[str], *, check: Check) -> Any:  # noqa: ANN401
    """Return one column of lists of equal length, or several of numbers, shape (n, width).

    A single column of texts is returned as a list: record ids.

    Args:
        path: the file.
        names: its columns, in order.
        check: told how many bytes the array will have, before there is one.
    """
    try:
        with parquet.ParquetFile(path, memory_map=True) as file:
            missing = [name for name in names if name not in file.schema_arrow.names]
            if missing:
                listed = ", ".join(sorted(file.schema_arrow.names)[:8])
                raise InvalidInput(
                    f"Expected {path} to have a column {missing[0]!r}; it has: {listed} "
                    f"(write {path.name}:COLUMN or {path.name}:ONE,TWO)."
                )
            return _read(path, file, names, check)
    except pa.ArrowException:  # its message may quote what is in the file
        raise InvalidInput(f"Expected {path} to be a whole .parquet file.") from None


def _read(path: Path, file: Any, names: list[str], check: Check) -> Any:  # noqa: ANN401
    rows, types = file.metadata.num_rows, [file.schema_arrow.field(name).type for name in names]
    if len(names) == 1 and (pa.types.is_string(types[0]) or pa.types.is_large_string(types[0])):
        check(path, 64 * rows)
        return _complete(path, file.read(columns=names).column(0)).to_pylist()
    lists = [pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) for kind in types]
    if any(lists) and len(names) > 1:
        raise InvalidInput(f"Expected one column of lists in {path}, or several of numbers.")
    kinds = [kind.value_type if nested else kind for kind, nested in zip(types, lists, strict=True)]
    if not all(map(_is_number, kinds)):
        raise InvalidInput(f"Expected columns of numbers, or of lists of numbers, in {path}.")
    dtype = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
    array: NDArray[Any] | None = None
    start = 0
    for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=names):
        part = _flat(path, batch.column(0)) if lists[0] else _stacked(path, batch, names)
        if array is None:
            check(path, rows * part.shape[1] * dtype.itemsize)
            array = np.empty((rows, part.shape[1]), dtype)
        if part.shape[1] != array.shape[1]:
            raise InvalidInput(f"Expected lists of one length in {path}.")
        array[start : start + len(part)] = part
        start += len(part)
    if array is None:
        raise InvalidInput(f"Expected {path} to have rows: without any, its width is unknown.")
    return array


def _is_number(kind: Any) -> bool:  # noqa: ANN401
    return any(
        test(kind) for test in (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean)
    )


def _complete(path: Path, column: Any) -> Any:  # noqa: ANN401
    if column.null_count:
        raise InvalidInput(f"Expected no missing value in the columns of {path}.")
    return column


def _stacked(path: Path, batch: Any, names: list[str]) -> NDArray[Any]:  # noqa: ANN401
    columns = [_complete(path, batch.column(name)) for name in names]
    return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)


def _flat(path: Path, column: Any) -> NDArray[Any]:  # noqa: ANN401
    """Return lists of one length as the rows of an array."""
    numbers = _complete(path, _complete(path, column).flatten())
    flat = numbers.to_numpy(zero_copy_only=False)
    width = len(flat) // max(len(column), 1)
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    if np.any(lengths != width):
        raise InvalidInput(f"Expected lists of one length in {path}.")
    return np.asarray(flat.reshape(len(column), width))
