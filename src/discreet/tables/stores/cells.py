"""Cells that are Python's objects, as arrays. Whatever stands in other rows, a cell means the same.

numpy chooses one type for all cells, and would make numbers of texts, or texts of numbers. So types
are looked at first. Messages name columns, never a value.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.tables.columns import Form

_NUMBERS = {int, float, bool}


def form_of(cell: object, name: str, where: str) -> Form:
    """Return what a column holds, by one of its cells.

    Args:
        cell: the cell.
        name: of the column.
        where: what messages call the table.
    """
    if isinstance(cell, str):
        return Form("texts")
    if isinstance(cell, list | tuple):
        return Form("lists", len(cell))
    numbers([cell], name, where)
    return Form("numbers")


def numbers(cells: Sequence[Any], name: str, where: str) -> NDArray[np.float64]:
    """Return numbers, shape (m, 1), or lists of them, shape (m, width).

    Args:
        cells: of the column.
        name: of the column.
        where: what messages call the table.
    """
    kinds = _kinds(cells, name, where)
    if kinds <= {list, tuple}:
        if len(set(map(len, cells))) > 1 or type(None) in set().union(*map(_types, cells)):
            raise InvalidInput(f"Expected lists of one length, complete, in {name} of {where}.")
        kinds = set().union(*map(_types, cells))
    if not kinds <= _NUMBERS:
        raise InvalidInput(f"Expected {name} in {where} to be numbers, or lists of them.")
    try:
        array = np.array(cells, dtype=np.float64)
    except OverflowError:
        raise InvalidInput(f"Expected {name} in {where} to be numbers of 64 bits.") from None
    return array.reshape(len(cells), -1)


def labels(cells: Sequence[Any], name: str, where: str) -> NDArray[Any]:
    """Return a number or a text for each row, shape (m,).

    Args:
        cells: of the column.
        name: of the column.
        where: what messages call the table.
    """
    if _kinds(cells, name, where) <= {str}:
        return np.array(cells, dtype=str)
    array = numbers(cells, name, where)
    check_single(array, name, where)
    return array[:, 0]


def ids(cells: Sequence[Any], name: str, where: str) -> NDArray[Any]:
    """Return the record of each row, whole numbers or Python's texts, shape (m,).

    Args:
        cells: of the column.
        name: of the column.
        where: what messages call the table.
    """
    kinds = _kinds(cells, name, where)
    if kinds <= {str}:
        texts = np.empty(len(cells), dtype=object)
        texts[:] = cells
        return texts
    if not kinds <= {int}:
        raise InvalidInput(
            f"Expected {name} in {where} to hold a whole number for each row, or a text for each."
        )
    try:
        return np.array(cells, dtype=np.int64)
    except OverflowError:
        raise InvalidInput(f"Expected {name} in {where} to be numbers of 64 bits.") from None


def check_single(array: NDArray[Any], name: str, where: str) -> None:
    """Raise `InvalidInput` if there are lists where each row should have one number or text."""
    if array.ndim > 1 and array.shape[1] != 1:
        raise InvalidInput(f"Expected {name} in {where} to hold a number or text for each row.")


def _kinds(cells: Sequence[Any], name: str, where: str) -> set[type]:
    kinds = set(map(type, cells))
    if type(None) in kinds:
        raise InvalidInput(f"Expected no missing value in {name} of {where}.")
    return kinds


def _types(cells: Sequence[Any]) -> set[type]:
    return set(map(type, cells))
