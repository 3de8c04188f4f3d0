"""Arrays that callers give: their library, whether they hold plain numbers, and ids of records.

Records are called by whole numbers, texts or bytes, and by hashes that stand for them.
"""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput

# Whole numbers with and without a sign, floats and booleans. numpy makes one type of several of
# these without moving a number by more than float64 does by itself; of a date, a text and a number
# it makes something else, for all rows, because of one.
PLAIN = "iufb"


def namespace(array: Array) -> Array:
    """Return the functions of the array's library, under the names of the array API.

    What array_api_compat offers for this keeps a cache, which torch.compile does not follow.
    """
    if isinstance(array, np.ndarray):
        return array_api_compat.numpy
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        from array_api_compat import torch as functions

        return functions
    return array_api_compat.array_namespace(array)


def plain_numbers(name: str, values: object) -> Array:
    """Return real numbers or booleans as an array whose rows can be sliced, or raise.

    Nothing else is taken: one date, text or missing number among many would decide the unit or the
    type of all others. Torch tensors and memory maps stay what they are.

    Args:
        name: of the argument, for the message. No value is in it.
        values: an array, a tensor, or nested lists.

    Raises:
        InvalidInput: for dates, texts, objects, complex numbers, masks and ragged lists.
    """
    if is_torch(values) and not values.is_complex():  # type: ignore[attr-defined]
        return values
    try:
        array = np.asanyarray(None if has_mask(values) else values)  # a memory map stays one
    except Exception:  # noqa: BLE001 (objects that may say anything, numbers included)
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in PLAIN:
        # `from None`: the original message may quote a value.
        raise InvalidInput(f"Expected {name} to be an array of real numbers.") from None
    return array


def float64(array: Array) -> Floats:
    """Return a copy of plain numbers, in double precision, in numpy's own memory."""
    if is_torch(array):
        try:
            array = array.detach().cpu().double().numpy()
        except Exception:  # noqa: BLE001 (sparse, quantised, nested, without data)
            raise InvalidInput("Expected tensors to be dense, of real numbers.") from None
    with np.errstate(all="ignore"):  # what a conversion says about values is nobody's business
        return np.array(array, dtype=np.float64, order="C", copy=True)


def element_types(array: Array) -> set[type]:
    """Return the types of the elements of an array of Python's objects, or of nested lists."""
    return set(map(type, np.array(array, dtype=object).ravel().tolist()))


def is_number(kind: type) -> bool:
    """Whether objects of this type are real numbers or booleans, and no spans of time."""
    numbers = (bool, int, float, np.bool_, np.integer, np.floating)
    return issubclass(kind, numbers) and not issubclass(kind, np.timedelta64)


def has_mask(values: object) -> bool:
    """Whether some numbers are marked as missing: numpy drops the mask of rows in a list."""
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return any(has_mask(each) for each in values if isinstance(each, np.ndarray | Sequence))
    return isinstance(values, np.ma.MaskedArray)


def is_torch(values: object) -> bool:
    """Whether this is a tensor of torch, without loading torch."""
    return type(values).__module__.split(".")[0] == "torch" and hasattr(values, "detach")


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
