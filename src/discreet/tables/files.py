"""From what was typed, FILE or FILE:NAME, to an array. Nothing is read before it is needed."""

import lzma
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array
from discreet.errors import DiscreetError, InvalidInput
from discreet.tables.formats import read_npy, read_npz, read_safetensors

# Takes a file, the name that was asked for and the role of the array.
Reader = Callable[[Path, str | None, str], Array]

# What readers raise for files that are not their own.
_NOT_AN_ARRAY = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_array(given: Path, role: str) -> NDArray[Any]:
    """Return the array of real numbers that was asked for.

    Raises `InvalidInput`, with a sentence that names the file and no value of it, if there is none.

    Args:
        given: FILE or FILE:NAME.
        role: the name to look for in a file with several arrays, if none is given.
    """
    array = _load(given, role)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
        raise InvalidInput(f"Expected {given} to hold an array of real numbers.")
    return array


def read_groups(given: Path) -> Array:
    """Return the record of each row, whole numbers or texts, shape (n,)."""
    groups = _load(given, "groups")
    if isinstance(groups, list):
        return groups
    column = groups[:, 0] if groups.ndim == 2 and groups.shape[1] == 1 else groups
    if column.dtype.kind not in "iuUS" or column.ndim != 1:
        raise InvalidInput(f"Expected {given} to hold a whole number or text for each row.")
    return np.asarray(column)


def _load(given: Path, role: str) -> Array:
    path, name = split(given)
    if path.is_dir():
        raise InvalidInput(f"Expected {path} to be a file, and it is a directory.")
    if not path.is_file():
        raise InvalidInput(f"Expected {path} to be a file, and there is none of this name.")
    kind = path.suffix.lower()
    if kind not in _READERS:
        raise InvalidInput(f"Expected {path} to end in one of {', '.join(_READERS)}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of readers: what is wrong becomes one sentence
            return _READERS[kind](path, name, role)
    except DiscreetError:
        raise
    except PermissionError:
        raise InvalidInput(f"Expected {path} to be readable: permission was denied.") from None
    except _NOT_AN_ARRAY:
        # `from None`: the original message may quote what is in the file.
        raise InvalidInput(
            f"Expected {path} to be a whole {kind} file that holds an array of numbers."
        ) from None


def split(given: Path) -> tuple[Path, str | None]:
    """Return file and name. A colon that belongs to an existing file's name stays there."""
    file, colon, name = str(given).rpartition(":")
    if not colon or given.exists():
        return given, None
    return Path(file), name


def _read_parquet(path: Path, name: str | None, role: str) -> Array:
    """Return one column of lists, or several of numbers ("age,income"), of a .parquet file.

    Unpacked in memory, a batch of rows at a time.
    """
    try:
        from discreet.tables.parquet import read_columns
    except ImportError:
        raise InvalidInput(
            f"Expected pyarrow to read {path}: pip install 'discreet[parquet]'."
        ) from None
    return read_columns(path, (name or role).split(","))


_READERS: dict[str, Reader] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".parquet": _read_parquet,
}
