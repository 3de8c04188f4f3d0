"""Chunks of rows: cut where they are large, joined where they are small."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.tables.columns import Chunk

# Numbers of keys and values in a chunk: 32 MB as float64.
_NUMBERS = 2**22


def sized(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the same rows in the same order, in chunks of about 2^22 numbers, at least one row."""
    held: list[Chunk] = []
    rows = 0
    for chunk in chunks:
        most = max(1, _NUMBERS // row_numbers(chunk))
        for start in range(0, max(len(chunk[0]), 1), most):
            piece = _cut(chunk, slice(start, start + most))
            if held and rows + len(piece[0]) > most:
                yield joined(held)
                held, rows = [], 0
            held.append(piece)
            rows += len(piece[0])
    if held:
        yield joined(held)


def joined(chunks: list[Chunk]) -> Chunk:
    """Return the rows of all these chunks, at least one, as one. The list is emptied."""
    keys, values, groups = (list(each) for each in zip(*chunks, strict=True))
    chunks.clear()
    return _stacked(keys), _stacked(values), None if groups[0] is None else _joined_ids(groups)


def row_numbers(chunk: Chunk) -> int:
    """Return how many numbers of keys and values a row has."""
    keys, values, _ = chunk
    return int(keys.shape[1] + (1 if values.ndim == 1 else values.shape[1]))


def _cut(chunk: Chunk, some: slice) -> Chunk:
    keys, values, groups = chunk
    return keys[some], values[some], None if groups is None else groups[some]


def _stacked(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len(parts) == 1:
        return parts.pop()
    end = sum(map(len, parts))
    dtype = np.result_type(*(part.dtype for part in parts))
    whole = np.empty((end, *parts[0].shape[1:]), dtype)
    # Each part is let go of once it is copied, and pages are taken as they are written: at no time
    # is there everything twice.
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def _joined_ids(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return ids as they are: numpy would make floats of whole numbers with and without a sign."""
    if np.result_type(*(part.dtype for part in parts)).kind == "f":
        parts = [part.astype(object) for part in parts]
    return _stacked(parts)
