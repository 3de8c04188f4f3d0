"""Features of rows that are read in several passes, kept between them. PRIVATE."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array, Floats
from discreet.features.base import RowMap
from discreet.sums.accumulate import share_out, thread_count
from discreet.sums.layout import RowLayout
from discreet.sums.source import Chunk, Index, RowSource, Table

# Bytes of features that are kept between rounds.
MEMORY_LIMIT = 2e9

# So many features are computed at a time, by all threads together.
_FEATURES_AT_ONCE = 2**22

# Integer features are below 2^24, so single precision holds them exactly, in half of the memory.
KEPT = np.dtype(np.float32)


def with_cached_features(rows: RowSource, kernel: RowMap, limit: float) -> RowSource:
    """Return the same rows, with their features if these take no more bytes than the limit.

    Either way every pass adds up the same numbers, to the bit.
    """
    known = rows.count()
    if known is not None and bytes_of(known, kernel) > limit:
        return rows
    kept: list[Chunk] = []
    count = 0
    for [table], of_row in rows.chunks():
        count += table.rows
        # Whoever adds up will complain of another width.
        if bytes_of(count, kernel) > limit or table.shape.key_dim != kernel.dim:
            return rows
        kept.append(([CachedFeatures.of(table, kernel)], of_row))
    return RowSource(lambda: kept, form=rows.form, rows=lambda: count)


@dataclass(frozen=True, eq=False, repr=False)
class CachedFeatures(Table):
    """A table whose keys have been mapped. PRIVATE.

    Attributes:
        keys: zeros, shape (n, d).
        values: shape (n, 1).
        kept: the integer features of all rows, shape (n, r).
    """

    kept: NDArray[np.float32] = field(kw_only=True)

    @classmethod
    def of(cls, table: Table, kernel: RowMap) -> "CachedFeatures":
        """Return the table with the features of its rows (one head, and no weights)."""
        kept = np.empty((table.rows, kernel.features), dtype=KEPT)
        threads = thread_count()
        chunk = max(_FEATURES_AT_ONCE // threads // kernel.features, 1)
        memory = np.empty((threads, chunk * kernel.features))
        starts = range(0, table.rows, chunk)

        def fill(start: int, thread: int) -> Iterator[None]:
            keys, _ = table.read(slice(start, start + chunk))
            kept[start : start + chunk] = kernel.key_features(keys, out=memory[thread]).features
            yield

        share_out(starts, fill, lambda _: None, threads=threads)
        # Keys themselves are not needed any more: a zero in their shape takes eight bytes.
        keys = np.broadcast_to(0.0, (table.rows, table.shape.key_dim))
        return cls(keys, table.values, kept=kept)

    def read(self, index: Index) -> tuple[Array, Floats]:
        """Return the features of some rows for their keys, and their values."""
        return self.kept[index], np.array(self.values[index], dtype=np.float64)

    def features(
        self,
        layout: RowLayout,  # noqa: ARG002
        keys: Array,
        memory: Floats,
    ) -> tuple[Floats, Floats | None]:
        """Return what was read, in double precision: shape (1, m, r)."""
        features = memory[: keys.size].reshape(1, *keys.shape)
        features[...] = keys
        return features, None


def bytes_of(rows: int, kernel: RowMap) -> int:
    """Return how much memory the features of so many rows take."""
    return rows * kernel.features * KEPT.itemsize
