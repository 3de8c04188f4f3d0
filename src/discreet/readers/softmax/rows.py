"""Rows of a classifier: labels of public classes."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discreet._arrays import PLAIN, element_types, has_mask, is_number, plain_numbers
from discreet._typing import Array, Integers
from discreet.errors import InvalidInput
from discreet.sums.source import Chunk, Form, Table, names_of

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
