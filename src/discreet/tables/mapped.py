"""One .npz or .safetensors file as a table: its arrays are the columns."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.tables.columns import Chunk, Columns, FilePart, Form, Forms
from discreet.tables.files import read_array, read_groups, read_labels

_ROWS_AT_ONCE = 2**16


class ArrayPart(FilePart):
    """One file as a table."""

    def forms(self, columns: Columns) -> Forms:
        """Return what the arrays hold."""
        keys, values, groups = self._arrays(columns)
        return Forms(
            _form(keys), _form(values), None if groups is None else _form([groups]), self.where
        )

    def count(self, columns: Columns) -> int:
        """Return the number of rows. PRIVATE."""
        return len(self._numbers(columns.keys)[0])

    def chunks(self, columns: Columns) -> Iterator[Chunk]:
        """Yield all rows, some at a time."""
        keys, values, groups = self._arrays(columns)
        for start in range(0, len(keys[0]), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            yield (
                _side_by_side(keys, some),
                values[0][some] if columns.labels else _side_by_side(values, some),
                None if groups is None else groups[some],
            )

    def _arrays(
        self, columns: Columns
    ) -> tuple[list[NDArray[Any]], list[NDArray[Any]], NDArray[Any] | None]:
        keys = self._numbers(columns.keys)
        values = (
            [read_labels(self.path, name=columns.values[0])]
            if columns.labels
            else self._numbers(columns.values)
        )
        groups = None
        if columns.groups is not None:
            groups = np.asarray(read_groups(self.path, name=columns.groups))
        arrays = [*keys, *values, *([] if groups is None else [groups])]
        if len({len(each) for each in arrays}) != 1:
            raise InvalidInput(f"Expected the arrays in {self.path} to have as many rows each.")
        return keys, values, groups

    def _numbers(self, names: tuple[str, ...]) -> list[NDArray[Any]]:
        """Return one array of shape (n, d), or several of shape (n,), one for each name."""
        arrays = [read_array(self.path, name, name=name) for name in names]
        flat = all(each.ndim == 1 for each in arrays)
        if not flat and not (len(arrays) == 1 and arrays[0].ndim == 2):
            raise InvalidInput(
                f"Expected {','.join(names)} in {self.path} to be one array of shape (n, d), or "
                "several of shape (n,)."
            )
        return arrays


def _form(arrays: list[NDArray[Any]]) -> Form:
    if arrays[0].dtype.kind in "US":
        return Form("texts" if arrays[0].dtype.kind == "U" else "bytes")
    return Form("numbers", len(arrays) if arrays[0].ndim == 1 else arrays[0].shape[1])


def _side_by_side(arrays: list[NDArray[Any]], some: slice) -> NDArray[Any]:
    if arrays[0].ndim == 2:
        return arrays[0][some]
    return np.stack([each[some] for each in arrays], axis=1)
