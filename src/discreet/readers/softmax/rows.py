"""Rows of a classifier: labels of public classes, and features that are cached between passes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet._arrays import PLAIN, element_types, has_mask, is_number, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.features.base import RowMap
from discreet.sums.accumulate import share_out, thread_count
from discreet.sums.layout import RowLayout
from discreet.sums.source import Chunk, Form, Index, RowSource, Table, names_of

# numpy makes one type of all labels in a list, and one that is no whole number makes all of them
# floats. That must not turn the label of another row into a class that it is not.
_INEXACT = 2**53


@dataclass(frozen=True, eq=False)
class Labels:
    """A public list of classes.

    Attributes:
        classes: distinct, in order, shape (C,); at least two.
    """

    classes: Array

    @classmethod
    def of(cls, labels: Array, *, distinct: bool) -> Self:
        """Return the classes among some labels.

        Args:
            labels: numbers or texts, shape (n,).
            distinct: whether each must be there once.

        Raises:
            InvalidInput: there are fewer than two, or they are not of one kind.
        """
        given = np.asarray(_plain_texts(labels))
        if given.ndim != 1:
            raise InvalidInput("Expected classes to be a list of labels.")
        found = _sorted(given)[0]
        if distinct and len(found) != given.size:
            raise InvalidInput("Expected classes to be distinct labels.")
        if len(found) < 2:
            raise InvalidInput("Expected at least two classes: with one class nothing is learnt.")
        if any(isinstance(each, int) and abs(each) >= _INEXACT for each in found.tolist()):
            raise InvalidInput(
                "Expected classes that are whole numbers to be below 2^53; write them as texts."
            )
        return cls(found)

    @property
    def count(self) -> int:
        """The number of classes C."""
        return len(self.classes)

    def places(self, labels: Array) -> Integers:
        """Return the place of each label among the classes, shape (n,).

        Args:
            labels: shape (n,).

        Raises:
            InvalidInput: one of them is no class; the message does not say which.
        """
        present, inverse = _sorted(labels)
        known = {label: place for place, label in enumerate(self.classes.tolist())}
        try:
            places = [known.get(label, -1) for label in present.tolist()]
        except TypeError:  # of labels that are no numbers and no texts
            places = [-1]
        if -1 in places:
            raise InvalidInput("Expected every label to be one of classes.")
        return np.asarray(places, dtype=np.int64)[inverse]


def of_one_kind(labels: object) -> Array:
    """Return labels as an array, if all of them are numbers, or all of them texts.

    One text among numbers would make texts of all, and one date in a finer unit would change what
    all others are called: dates are refused, and so is a mixture. No label is in the message.
    """
    try:
        labels = _plain_texts(labels)
        given = np.asarray(None if has_mask(labels) else labels)
        sound = given.dtype.kind in PLAIN or _are_alike(labels, given)
    except Exception:  # noqa: BLE001 (objects that may say anything)
        sound = False
    if not sound:
        raise InvalidInput(
            "Expected labels of shape (n,), one for each row, all of one kind: numbers, or texts. "
            "No dates, no mask, and none missing."
        ) from None
    return given


def _plain_texts(labels: Any) -> Any:  # noqa: ANN401
    """Return a list whose texts are Python's own: members of an Enum of texts as what they are.

    numpy would write their names, cut off where the longest of their texts ends.
    """
    if isinstance(labels, list | tuple) and any(_is_subtype(type(each)) for each in labels):
        return [str.__str__(each) if isinstance(each, str) else each for each in labels]
    return labels


def _is_subtype(kind: type) -> bool:
    return issubclass(kind, str) and kind not in (str, np.str_)


def _are_alike(labels: object, given: Array) -> bool:
    """Whether labels that are no array of numbers are all texts, or all numbers."""
    if given.dtype.kind in "US" and hasattr(labels, "dtype"):
        return True
    found = element_types(labels if given.dtype.kind in "US" else given)
    if given.dtype.kind not in "USO":
        return False
    alike = any(all(issubclass(each, kind) for each in found) for kind in (str, bytes))
    return alike or all(map(is_number, found))


def _sorted(labels: Array) -> tuple[Array, Integers]:
    """Return distinct labels in order, and which of them each is."""
    try:
        return np.unique(labels, return_inverse=True)
    except Exception:  # noqa: BLE001 (numbers and texts, or objects that may say anything)
        raise InvalidInput(
            "Expected labels to be of one kind: all numbers, or all texts."
        ) from None


def check_classes(classes: tuple[Any, ...]) -> None:
    """Raise `InvalidInput` unless these are classes in order that a file gives back as they are."""
    for each in classes:
        number = type(each) in (bool, int, float) and math.isfinite(each)
        if not number and not (type(each) is str and _is_utf8(each)):
            raise InvalidInput("Expected classes to be finite numbers, or texts.")
    found = Labels.of(np.asarray(classes), distinct=True).classes.tolist()
    if found != list(classes) or [*map(type, found)] != [*map(type, classes)]:
        raise InvalidInput("Expected classes to be of one kind, in order.")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
