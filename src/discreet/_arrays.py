"""Which library an array belongs to, and whether it holds plain numbers."""

import sys
from collections.abc import Sequence

import array_api_compat
import array_api_compat.numpy
import numpy as np

from discreet._typing import Array, Floats
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
