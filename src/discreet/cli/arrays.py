"""Reading arrays from files, a few rows at a time, and never by unpickling."""

import tokenize
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput

Array = NDArray[np.generic]

# What numpy's reader raises for files that are not its own.
_NOT_AN_ARRAY = (
    EOFError,
    MemoryError,
    OSError,
    OverflowError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
)


def read_array(path: Path) -> Array:
    """Return the array in a .npy file, mapped into memory: nothing is read before it is needed.

    Raises `InvalidInput`, with a sentence that names the file and no value of it, if there is no
    array of real numbers in it.
    """
    array = _load(path)
    if array.dtype.kind not in "iufb":
        raise InvalidInput(f"Expected {path} to hold an array of real numbers.")
    return array


def read_groups(path: Path) -> Array:
    """Return the record of each row from a .npy file of whole numbers or texts, shape (n,)."""
    array = _load(path)
    if array.dtype.kind not in "iuUS" or array.ndim != 1:
        raise InvalidInput(f"Expected {path} to hold a whole number or text for each row.")
    return np.asarray(array)


def _load(path: Path) -> Array:
    if path.is_dir():
        raise InvalidInput(f"Expected {path} to be a file, and it is a directory.")
    if not path.exists():
        raise InvalidInput(f"Expected {path} to be a file, and there is none of this name.")
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except _NOT_AN_ARRAY:
        # `from None`: the original message may quote what is in the file.
        raise InvalidInput(
            f"Expected {path} to be a .npy file of numbers, as numpy.save writes them."
        ) from None
    return array
