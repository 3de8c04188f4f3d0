"""Chunks of rows: cut and joined to one size, or with every record wholly in one of them."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._ids import distinct, encoded
from discreet._typing import Array, Words
from discreet.errors import InvalidInput
from discreet.tables.columns import Chunk

# Numbers of keys and values in a chunk: 32 MB as float64.
_NUMBERS = 2**22

# What a pass keeps, as float64, and what is held of a stream that comes once.
_BYTES_AT_ONCE = 2**28
_BYTES_HELD = 2**30

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def sized(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the same rows in the same order, in chunks of about 2^22 numbers, at least one row."""
    held: list[Chunk] = []
    rows = 0
    for chunk in chunks:
        most = max(1, _NUMBERS // _row_numbers(chunk))
        for start in range(0, max(len(chunk[0]), 1), most):
            piece = _cut(chunk, slice(start, start + most))
            if held and rows + len(piece[0]) > most:
                yield _joined(held)
                held, rows = [], 0
            held.append(piece)
            rows += len(piece[0])
    if held:
        yield _joined(held)


def gathered(
    open_chunks: Callable[[], Iterator[Chunk]], *, rows: int | None, row_bytes: int, again: bool
) -> Iterator[Chunk]:
    """Yield all rows, such that every record lies wholly in one chunk; at least one chunk.

    Rows that can be read again are: once for every 256 MB of them, and maybe once more to count
    them. A pass keeps the records of one bucket. Which one that is depends on the id alone, so no
    record can be in two, whatever the source does between passes; and if ids have changed, that is
    an error.

    Args:
        open_chunks: begins a pass over all rows.
        rows: how many there are, if that is known; else they are counted.
        row_bytes: of keys and values, as float64.
        again: whether there can be more than one pass.
    """
    if not again:
        yield _held(open_chunks())
        return
    if rows is None:
        rows = sum(len(keys) for keys, _, _ in open_chunks())
    buckets = max(1, math.ceil(rows * row_bytes / _BYTES_AT_ONCE))
    passes: set[tuple[int, int]] = set()
    for bucket in range(buckets):
        kept: list[Chunk] = []
        seen, ids = 0, 0
        for chunk in open_chunks():
            mixed = _mixed(chunk[2])
            seen, ids = seen + len(mixed), ids + _sum_of_rows(mixed, chunk)
            kept.append(_of_bucket(chunk, mixed % np.uint64(buckets) == bucket, buckets))
        passes.add((seen, ids % 2**64))
        if len(passes) > 1 or seen != rows:  # a row that has another id now counts twice, or never
            raise InvalidInput("Expected the same rows whenever they are read: they have changed.")
        whole = _joined(kept)
        if len(whole[0]) or bucket == 0:
            yield whole
        del whole  # before the next is gathered


def _sum_of_rows(ids: Words, chunk: Chunk) -> int:
    """Return a sum over rows, each with its id: the same in any order, and for no other rows.

    (Not by chance, that is: nobody has a reason to look for others.)
    """
    rows = ids.copy()
    for array in chunk[:2]:
        if array.dtype.kind in "iufb":
            columns = array if array.ndim == 2 else array[:, None]
            bits = np.ascontiguousarray(columns, dtype=np.float64)
            # Odd multiples of the golden ratio, one for each column.
            weights = np.arange(1, 2 * bits.shape[1], 2, dtype=np.uint64) * _GOLDEN
            rows = _spread(rows ^ (bits.view(np.uint64) @ weights))
        else:
            rows = _spread(rows ^ _mixed(array))
    return int(rows.sum(dtype=np.uint64))


def _of_bucket(chunk: Chunk, kept: NDArray[np.bool_], buckets: int) -> Chunk:
    if buckets == 1:
        return chunk
    keys, values, groups = chunk
    return keys[kept], values[kept], None if groups is None else groups[kept]


def _mixed(groups: Array) -> Words:
    """Return bits of each row's id that are spread evenly, shape (m,): of the same id, the same.

    Nobody sees them, so they may be faster than `digests_of`: whole numbers are mixed as in
    SplitMix64.
    """
    if isinstance(groups, np.ndarray) and groups.dtype.kind in "iu":
        bits = groups.astype(np.uint64)
    else:
        ids, of_row = distinct(groups)
        bits = np.array(list(map(_bits, ids)), dtype=np.uint64)[of_row]
    return _spread(bits)


def _spread(bits: Words) -> Words:
    """Return 64 bits of which each depends on all that were given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _bits(record: Any) -> int:  # noqa: ANN401
    """Return a whole number as 64 bits, as numpy has it, and of other ids a digest."""
    if type(record) is int:
        return record & (2**64 - 1)
    return int.from_bytes(hashlib.blake2b(encoded(record), digest_size=8).digest(), "little")


def _held(chunks: Iterator[Chunk]) -> Chunk:
    """Return all rows of a stream that comes once, if they are not too many."""
    kept: list[Chunk] = []
    size = 0
    for chunk in chunks:
        size += chunk[0].nbytes + chunk[1].nbytes
        if size > _BYTES_HELD:
            raise InvalidInput(
                "Expected a stream with groups to fit in 1 GiB, since its rows come once and a "
                "record's rows belong together. Write it to Parquet files first: they can be read "
                "again."
            )
        kept.append(chunk)
    return _joined(kept)


def _joined(chunks: list[Chunk]) -> Chunk:
    """Return the rows of all these chunks, at least one, as one. The list is emptied."""
    keys, values, groups = (list(each) for each in zip(*chunks, strict=True))
    chunks.clear()
    return _stacked(keys), _stacked(values), None if groups[0] is None else _joined_ids(groups)


def _row_numbers(chunk: Chunk) -> int:
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
