"""Arrow's columns as numpy's: numbers, lists of numbers, texts. Needs the extra `parquet`.

Pure, and without copies where numbers lie side by side already.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from discreet.errors import InvalidInput
from discreet.tables.columns import Chunk, Columns, Form, Forms, listed

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
