"""Rows of a classifier: keys with labels, and features that are kept between passes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet._arrays import plain_numbers
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.features.base import RowMap
from discreet.readers.softmax.labels import Labels, of_one_kind
from discreet.sums.layout import RowLayout
from discreet.sums.source import Chunk, Form, Index, RowSource, Table, names_of
from discreet.sums.threads import share_out, thread_count

# So many features are computed at a time, by all threads together.
_FEATURES_AT_ONCE = 2**22

# Integer features are below 2^24, so single precision holds them exactly, in half of the memory.
KEPT = np.dtype(np.float32)


def labelled(classes: Labels) -> Form:
    """Return what the rows of a classifier consist of: keys, labels and groups."""

    def chunk(keys: Array, labels: Array, groups: Array) -> Chunk:
        table = _table(keys, labels, classes)
        if groups is None:
            return [table], None
        # Copied, and read once: in every pass a row belongs to the record that it belonged to.
        of_row = names_of(groups)
        if len(of_row) != table.rows:
            raise InvalidInput("Expected groups to name one record for each row.")
        return [table], of_row

    return Form(values="labels", chunk=chunk, passes=True)


def _table(keys: Array, labels: Array, classes: Labels) -> Table:
    """Return keys with the place of each row's label among the classes."""
    given = of_one_kind(labels)
    if given.ndim != 1:
        raise InvalidInput("Expected labels of shape (n,), one for each row.")
    places = classes.places(given)[:, None]
    keys = plain_numbers("keys", keys)
    if len(keys.shape) != 2:
        raise InvalidInput("Expected keys of shape (n, d): a classifier has no heads.")
    if len(keys) != len(places):
        raise InvalidInput("Expected as many labels as there are rows of keys.")
    return Table(keys, places)


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
