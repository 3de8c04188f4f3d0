"""Features that are kept between rounds, where they fit: a pass over them is all that is left.

Private rows that are read again in every round.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet._arrays import plain_numbers
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.features.base import RowMap
from discreet.readers.softmax.labels import Labels, of_one_kind
from discreet.sums.layout import RowLayout
from discreet.sums.source import Index, Table, names_of
from discreet.sums.threads import share_out, thread_count

# So many features are computed at a time, by all threads together.
_FEATURES_AT_ONCE = 2**22

# Integer features are below 2^24, so single precision holds them exactly, in half of the memory.
KEPT = np.dtype(np.float32)


@dataclass(frozen=True, eq=False, repr=False)
class Remembered(Table):
    """A table whose keys have been mapped. PRIVATE.

    Attributes:
        keys: zeros, shape (n, d).
        values: shape (n, 1).
        kept: the integer features of all rows, shape (n, r).
    """

    kept: NDArray[np.float32] = field(kw_only=True)

    @classmethod
    def of(cls, table: Table, kernel: RowMap) -> "Remembered":
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
        keys = np.broadcast_to(0.0, (table.rows, table.key_dim))
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


# A table of keys and places of labels, and the record of each row.
Chunk = tuple[Table, Array]

_ONCE = (
    "Expected rows that can be read again, and an iterator is read once: there are several rounds, "
    "and each reads all rows. Give arrays, or a function without arguments that returns a new "
    "iterator of chunks (keys, labels) or (keys, labels, groups)."
)


@dataclass(frozen=True, eq=False, repr=False)
class Passes:
    """Keys, labels and the record of each row, as often as they are asked for. PRIVATE.

    Attributes:
        open: begins a pass over all chunks.
        rows: how many there are, if that is known before they are read.
        by_record: whether rows come with the record that they belong to.
        dim: width of keys.
    """

    open: Callable[[], Iterable[Chunk]]
    rows: int | None
    by_record: bool
    dim: int

    def __reduce__(self) -> NoReturn:
        raise TypeError("Rows are private and are never pickled or copied.")

    @classmethod
    def of(cls, keys: Array, labels: Array, groups: Array, classes: Labels) -> "Passes":
        """Return arrays, or chunks of them, that have been looked at as far as shapes go.

        Args:
            keys: shape (n, d); or a function that returns an iterator of chunks (keys, labels) or
                (keys, labels, groups), or an object that can be iterated over again and again.
            labels: shape (n,); None with chunks.
            groups: the record of each row, shape (n,); None if each row is its own.
            classes: that labels are among.
        """
        if isinstance(keys, Iterator):
            raise InvalidInput(_ONCE)
        if labels is not None and callable(keys) and not hasattr(keys, "__array__"):
            raise InvalidInput("Expected labels to come with the chunks: (keys, labels).")
        if labels is not None:
            table, of_row = _chunk((keys, labels, groups), classes)
            return cls(lambda: [(table, of_row)], table.rows, of_row is not None, table.key_dim)
        if not callable(keys) and (not isinstance(keys, Iterable) or hasattr(keys, "__array__")):
            raise InvalidInput("Expected labels, one for each row of keys.")
        if groups is not None:
            raise InvalidInput("Expected groups to come with the chunks: (keys, labels, groups).")
        stream = _Stream(keys if callable(keys) else lambda: iter(keys), classes)
        table, of_row = stream.first()
        return cls(stream.chunks, None, of_row is not None, table.key_dim)

    def remembered(self, kernel: RowMap, limit: float) -> "Passes":
        """Return the same rows, counted, with their features if these take no more bytes than that.

        Either way every pass adds up the same numbers, to the bit.
        """
        if self.rows is not None and bytes_of(self.rows, kernel) > limit:
            return self
        kept: list[Chunk] = []
        rows = 0
        for table, of_row in self.open():
            rows += table.rows
            if bytes_of(rows, kernel) > limit or table.key_dim != self.dim:
                limit, kept = -1.0, []  # whoever adds up will complain of another width
            else:
                kept.append((Remembered.of(table, kernel), of_row))
        again = self.open if limit < 0 else lambda: kept
        return Passes(again, rows, self.by_record, self.dim)


class _Stream:
    """Chunks that are opened again in every pass, with the same records in the same order. PRIVATE.

    A record's influence is bounded in every pass by itself; it is the same record that all of them
    together protect, so rows must not change theirs.
    """

    def __init__(self, reopen: Callable[[], object], classes: Labels) -> None:
        self._reopen = reopen
        self._classes = classes
        self._opened: object = None
        self._begun: Iterator[Chunk] | None = None
        self._by_record: bool | None = None
        self._ids: list[Array] = []
        self._whole = False

    def first(self) -> Chunk:
        """Return the first chunk; the pass that it belongs to goes on with it."""
        chunks = self._next_pass()
        for chunk in chunks:
            self._begun = chain([chunk], chunks)
            return chunk
        raise InvalidInput("Expected at least one chunk of keys and labels (it may have no rows).")

    def chunks(self) -> Iterator[Chunk]:
        """Begin a pass."""
        begun, self._begun = self._begun, None
        return self._next_pass() if begun is None else begun

    def _next_pass(self) -> Iterator[Chunk]:
        opened = self._reopen()
        if not isinstance(opened, Iterable):
            raise InvalidInput("Expected keys() to return an iterator of chunks.")
        if isinstance(opened, Iterator) and opened is self._opened:
            raise InvalidInput(_ONCE)
        self._opened = opened
        return self._checked(opened)

    def _checked(self, opened: Iterable[object]) -> Iterator[Chunk]:
        for place, parts in enumerate(opened):
            table, of_row = _chunk(parts, self._classes)
            if self._by_record is None:
                self._by_record = of_row is not None
            if self._by_record is not (of_row is not None):
                raise InvalidInput("Expected groups with every chunk, or with none.")
            if of_row is not None:
                self._check_ids(place, of_row)
            yield table, of_row
        self._whole = True

    def _check_ids(self, place: int, of_row: Array) -> None:
        """Keep the ids of a chunk in the first pass, and compare with them in later ones."""
        if not self._whole and place == len(self._ids):
            self._ids.append(of_row)
        elif place >= len(self._ids) or not _same_ids(self._ids[place], of_row):
            raise InvalidInput("Expected every row to belong to the same record in every pass.")


def _same_ids(one: Array, other: Array) -> bool:
    """Return whether ids are the same; as Python has it, where they are Python's own numbers."""
    if isinstance(one, list) or isinstance(other, list):
        return list(one) == list(other)
    return bool(np.array_equal(one, other))


def _chunk(parts: object, classes: Labels) -> Chunk:
    if not isinstance(parts, tuple) or len(parts) not in {2, 3}:
        raise InvalidInput("Expected chunks to be (keys, labels) or (keys, labels, groups).")
    keys, labels, *groups = parts
    table = _table(keys, labels, classes)
    if not groups or groups[0] is None:
        return table, None
    # Copied, and read once: in every pass a row belongs to the record that it belonged to before.
    of_row = names_of(groups[0])
    if len(of_row) != table.rows:
        raise InvalidInput("Expected groups to name one record for each row.")
    return table, of_row


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
