"""What records are called: whole numbers, texts or bytes, and hashes that stand for them."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array, Integers
from discreet.errors import InvalidInput

_DIGEST_BYTES = 16
MARK_BYTES = 1 + _DIGEST_BYTES


def digests_of(groups: Array, key: bytes = b"") -> NDArray[np.bytes_]:
    """Return a hash of each row's id, as many bytes for each, shape (m,).

    The same id has the same hash in every file, width of type and machine: BLAKE2b of what it is
    called. Two of n ids share one with probability below n²/2^129; whoever lacks the key cannot
    look for such.

    Args:
        groups: ids of records, shape (m,): whole numbers, texts or bytes.
        key: at most 64 bytes; empty if anybody may know.
    """
    ids, of_row = distinct(groups)
    joined = b"".join(_digest(encoded(each), key) for each in ids)
    # Numpy drops zeros at the end of such bytes. All are equally long, so that makes no two alike.
    return np.frombuffer(joined, dtype=f"S{_DIGEST_BYTES}")[of_row]


def marks_of(ids: Iterable[object]) -> frozenset[bytes]:
    """Return a hash of each id, behind the letter of its type (`kind_of`)."""
    return frozenset(code[:1] + _digest(code) for code in map(encoded, ids))


def kind_of(mark: bytes) -> bytes:
    """Return the letter of the type of an id that `marks_of` hashed."""
    return mark[:1]


def distinct(groups: Array) -> tuple[list[Any], Integers]:
    """Return every id once, as Python has it, and the place of each row's id among them."""
    if isinstance(groups, np.ndarray) and groups.dtype != object:
        ids, of_row = np.unique(groups, return_inverse=True)
        return ids.tolist(), of_row
    places: dict[Any, int] = {}
    plain = (each.item() if isinstance(each, np.generic) else each for each in groups)
    of_row = np.fromiter((places.setdefault(each, len(places)) for each in plain), np.int64)
    return list(places), of_row


def encoded(record: object) -> bytes:
    """Return bytes that no other id has, whatever its type; they begin with a letter for it."""
    if type(record) is int:
        return b"i%d" % record
    if type(record) is str:
        return b"s" + record.encode("utf-8", "surrogatepass")
    if type(record) is bytes:
        return b"b" + record
    raise InvalidInput("Expected groups to be whole numbers, or texts, shape (n,).")


def _digest(code: bytes, key: bytes = b"") -> bytes:
    return hashlib.blake2b(code, digest_size=_DIGEST_BYTES, key=key).digest()
