"""From what was typed, FILE or FILE:NAME, to an array. Nothing is read before it is needed."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array
from discreet.errors import DiscreetError, InvalidInput
from discreet.tables.formats import read_npy, read_npz, read_safetensors
from discreet.tables.limits import UNREADABLE

# Takes a file, the name that was asked for and the role of the array.
Reader = Callable[[Path, str | None, str], Array]


def read_array(given: Path, role: str, *, name: str | None = None) -> NDArray[Any]:
    """Return the array of real numbers that was asked for.

    Raises `InvalidInput`, with a sentence that names the file and no value of it, if there is none.

    Args:
        given: FILE or FILE:NAME.
        role: the name to look for in a file with several arrays, if none is given.
        name: if it is known already; then FILE is a file alone.
    """
    array = _load(given, role, name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
        where = given if name is None else f"{name} in {given}"
        raise InvalidInput(f"Expected {where} to hold an array of real numbers.")
    return array


def read_groups(given: Path, *, name: str | None = None) -> Array:
    """Return the record of each row, whole numbers or texts, shape (n,)."""
    return _read_column(given, "groups", name, kinds="iuUS", wanted="whole number or text")


def read_labels(given: Path, *, name: str | None = None) -> NDArray[Any]:
    """Return the label of each row, a number or a text, shape (n,)."""
    column = _read_column(given, "label", name, kinds="iufbUS", wanted="number or text")
    labels = np.asarray(column, dtype=str if isinstance(column, list) else None)
    if labels.dtype.kind != "S":
        return labels
    try:
        return np.char.decode(labels, "utf-8")
    except UnicodeDecodeError:  # its message quotes them
        raise InvalidInput(f"Expected texts in {given} to be UTF-8.") from None


def _read_column(given: Path, role: str, name: str | None, *, kinds: str, wanted: str) -> Array:
    """Return one thing for each row: an array of one of these kinds, or a list of texts."""
    found = _load(given, role, name)
    if isinstance(found, list):
        return found
    column = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
    if column.dtype.kind not in kinds or column.ndim != 1:
        where = given if name is None else f"{name} in {given}"
        raise InvalidInput(f"Expected {where} to hold a {wanted} for each row.")
    return np.asarray(column)


def _load(given: Path, role: str, name: str | None) -> Array:
    path, name = split(given) if name is None else (given, name)
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
    except UNREADABLE:
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
    return read_columns(path, (name or role).split(","), named=name is not None)


_READERS: dict[str, Reader] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".parquet": _read_parquet,
}
