"""Arrays in files: one by FILE or FILE:NAME, or some of a file as the columns of a table.

Arrays of .npy, .npz and .safetensors files are mapped where they can be, and nothing is unpickled.
Errors name files, names and types, never a value.
"""

import json
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.tables.columns import (
    Chunk,
    Columns,
    FilePart,
    Form,
    Forms,
    check_unpacked,
    listed,
    needing_pyarrow,
    sentences,
)

# Takes a file, the name that was asked for and the role of the array ("keys", ...), which is the
# name to look for when none was given.
Reader = Callable[[Path, str | None, str], Array]

# What is compressed has to be unpacked in memory. Real numbers do not shrink a hundredfold; what
# does, and is large, is refused, because unpacking is all that such a file is for.
_LARGE = 2**28
_LARGEST_RATIO = 100

_ROWS_AT_ONCE = 2**16


def read_array(given: Path, role: str, *, name: str | None = None) -> NDArray[Any]:
    """Return the array of real numbers that was asked for.

    Args:
        given: FILE or FILE:NAME.
        role: the name to look for in a file with several arrays, if none is given.
        name: if it is known already; then FILE is a file alone.

    Returns:
        It, mapped if the file stores it as it is.

    Raises:
        InvalidInput: if there is none; the sentence names the file and no value of it.
    """
    array = _load(given, role, name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
        where = given if name is None else f"{name} in {given}"
        raise InvalidInput(f"Expected {where} to hold an array of real numbers.")
    return array


def read_groups(given: Path, *, name: str | None = None) -> Array:
    """Return the record of each row.

    Args:
        given: FILE or FILE:NAME; without a name, "groups" is looked for.
        name: if it is known already; then FILE is a file alone.

    Returns:
        Whole numbers or texts, shape (n,); texts of a .parquet file as a list.

    Raises:
        InvalidInput: if there are none; the sentence names the file and no value of it.
    """
    return _read_column(given, "groups", name, kinds="iuUS", wanted="whole number or text")


def read_labels(given: Path, *, name: str | None = None) -> NDArray[Any]:
    """Return the label of each row.

    Args:
        given: FILE or FILE:NAME; without a name, "label" is looked for.
        name: if it is known already; then FILE is a file alone.

    Returns:
        Numbers or texts, shape (n,).

    Raises:
        InvalidInput: if there are none; the sentence names the file and no value of it.
    """
    column = _read_column(given, "label", name, kinds="iufbUS", wanted="number or text")
    labels = np.asarray(column, dtype=str if isinstance(column, list) else None)
    if labels.dtype.kind != "S":
        return labels
    try:
        return np.char.decode(labels, "utf-8")
    except UnicodeDecodeError:  # its message quotes them
        raise InvalidInput(f"Expected texts in {given} to be UTF-8.") from None


def split(given: Path) -> tuple[Path, str | None]:
    """Return file and name. A colon that belongs to an existing file's name stays there.

    Args:
        given: FILE or FILE:NAME.

    Returns:
        The file, and the name or None.
    """
    file, colon, name = str(given).rpartition(":")
    if not colon or given.exists():
        return given, None
    return Path(file), name


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
    wanted = f"a whole {kind} file that holds an array of numbers"
    with sentences(path, wanted), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of readers: what is wrong becomes one sentence
        return _READERS[kind](path, name, role)


class ArrayPart(FilePart):
    """One .npz or .safetensors file as a table: its arrays are the columns."""

    @contextmanager
    def opened(self, columns: Columns) -> "Iterator[_Arrays]":
        """Open the file for one pass. Every array is opened when it is asked for."""
        yield _Arrays(self.path, columns)


class _Arrays:
    """Some arrays of a file."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path, self._columns = path, columns

    @property
    def rows(self) -> int:
        """The number of rows. PRIVATE."""
        return len(self._keys[0])

    def forms(self) -> Forms:
        """Return what the arrays hold."""
        keys, values, groups = self._all
        of_groups = None if groups is None else _form([groups])
        return Forms(_form(keys), _form(values), of_groups, str(self._path))

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, some at a time."""
        keys, values, groups = self._all
        for start in range(0, self.rows, _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            yield (
                _side_by_side(keys, some),
                values[0][some] if self._columns.labels else _side_by_side(values, some),
                None if groups is None else groups[some],
            )

    @cached_property
    def _keys(self) -> list[NDArray[Any]]:
        return self._numbers(self._columns.keys)

    @cached_property
    def _all(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]], NDArray[Any] | None]:
        keys, columns = self._keys, self._columns
        values = (
            [read_labels(self._path, name=columns.values[0])]
            if columns.labels
            else self._numbers(columns.values)
        )
        groups = None
        if columns.groups is not None:
            groups = np.asarray(read_groups(self._path, name=columns.groups))
        arrays = [*keys, *values, *([] if groups is None else [groups])]
        if len({len(each) for each in arrays}) != 1:
            raise InvalidInput(f"Expected the arrays in {self._path} to have as many rows each.")
        return keys, values, groups

    def _numbers(self, names: tuple[str, ...]) -> list[NDArray[Any]]:
        """Return one array of shape (n, d), or several of shape (n,), one for each name."""
        arrays = [read_array(self._path, name, name=name) for name in names]
        flat = all(each.ndim == 1 for each in arrays)
        if not flat and not (len(arrays) == 1 and arrays[0].ndim == 2):
            raise InvalidInput(
                f"Expected {','.join(names)} in {self._path} to be one array of shape (n, d), or "
                "several of shape (n,)."
            )
        return arrays


def _form(arrays: list[NDArray[Any]]) -> Form:
    if arrays[0].dtype.kind in "US":
        return Form("texts" if arrays[0].dtype.kind == "U" else "bytes")
    return Form("numbers", len(arrays) if arrays[0].ndim == 1 else arrays[0].shape[1])


def _side_by_side(arrays: list[NDArray[Any]], some: slice) -> NDArray[Any]:
    if arrays[0].ndim == 2:
        return arrays[0][some]
    return np.stack([each[some] for each in arrays], axis=1)


def _read_npy(path: Path, name: str | None, _role: str) -> NDArray[Any]:
    """Return the array of a .npy file, mapped."""
    if name is not None:
        raise InvalidInput(f"Expected {path} without a name: a .npy file holds one array.")
    return _map_npy(path, 0, path.stat().st_size)


def _read_npz(path: Path, name: str | None, role: str) -> NDArray[Any]:
    """Return one array of a .npz file: mapped, if it is stored as it is (`numpy.savez`)."""
    with zipfile.ZipFile(path) as archive:
        members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
        member = members[_choose(path, name, role, members)]
        if member.flag_bits & 1:
            raise InvalidInput(f"Expected {path} not to be encrypted.")
        if member.compress_type == zipfile.ZIP_STORED:
            return _map_npy(path, _member_start(path, member), member.file_size)
        check_unpacked(path, member.file_size)
        packed = min(member.compress_size, path.stat().st_size)  # the former is what the file says
        if member.file_size > max(_LARGE, _LARGEST_RATIO * packed):
            raise InvalidInput(
                f"Expected {path} to unpack to less than {_LARGEST_RATIO} times its size; "
                "numpy.savez stores large arrays as they are."
            )
        with archive.open(member) as stream:
            shape, fortran, dtype = _npy_header(path, stream, member.file_size)
            array = np.empty(shape, dtype, order="F" if fortran else "C")
            _fill(stream, array.ravel(order="K").view(np.uint8))
        return array


def _read_safetensors(path: Path, name: str | None, role: str) -> NDArray[Any]:
    """Return one array of a .safetensors file, mapped."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as tensors:  # checks the header as a whole
            chosen = _choose(path, name, role, list(tensors.keys()))
    except SafetensorError:
        raise InvalidInput(f"Expected {path} to be a whole .safetensors file.") from None
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[chosen]
    kind, bits = entry["dtype"][:1], entry["dtype"][1:]
    if entry["dtype"] == "BOOL":
        kind, bits = "b", "8"
    if kind not in "FIUb" or not bits.isdecimal() or int(bits) < 8:
        raise InvalidInput(f"Expected {path} to hold float16, 32 or 64, or whole numbers.")
    dtype = np.dtype(f"<{kind.lower()}{int(bits) // 8}")
    return _map(path, dtype, tuple(entry["shape"]), 8 + length + entry["data_offsets"][0])


def _read_parquet(path: Path, name: str | None, role: str) -> Array:
    """Return one column of lists, or several of numbers ("age,income"), of a .parquet file.

    Unpacked in memory, a batch of rows at a time.
    """
    with needing_pyarrow(path):
        from discreet.tables.arrow import read_columns
    return read_columns(path, (name or role).split(","), named=name is not None)


_READERS: dict[str, Reader] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".parquet": _read_parquet,
}


def _choose(path: Path, name: str | None, role: str, names: Iterable[str]) -> str:
    """Return the array to read: the one that was named, or named like its role, or the only."""
    known = list(names)
    hint = f" (write {path.name}:NAME)" if name is None else ""
    if name is None:
        name = known[0] if len(known) == 1 else role
    if name not in known:
        raise InvalidInput(
            f"Expected {path} to hold an array {name!r}; it has: {listed(known)}{hint}."
        )
    return name


def _fill(stream: IO[bytes], flat: NDArray[Any]) -> None:
    """Read into memory that is there already: unpacking needs no second copy."""
    rest = memoryview(flat)  # type: ignore[arg-type]
    while rest and (count := stream.readinto(rest)):  # type: ignore[attr-defined]
        rest = rest[count:]
    if rest or stream.read(1):
        raise EOFError


def _member_start(path: Path, member: zipfile.ZipInfo) -> int:
    """Return where the bytes of a stored member begin: after its local header of 30 bytes."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        name, extra = struct.unpack("<26xHH", file.read(30))
    return int(member.header_offset + 30 + name + extra)


def _map_npy(path: Path, start: int, size: int) -> NDArray[Any]:
    with path.open("rb") as file:
        file.seek(start)
        shape, fortran, dtype = _npy_header(path, file, size)
        return _map(path, dtype, shape, file.tell(), "F" if fortran else "C")


def _npy_header(
    path: Path, stream: IO[bytes], size: int
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether in Fortran's order, and dtype, if the bytes that follow are as many."""
    before = stream.tell()
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(stream)]
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise InvalidInput(f"Expected {path} to hold numbers; it holds pickled objects.")
    count = 1
    for side in shape:  # Python's integers: no product overflows
        count *= side
    if min(shape, default=0) < 0 or stream.tell() - before + count * dtype.itemsize != size:
        raise InvalidInput(f"Expected {path} to be as long as its header says.")
    return shape, fortran, dtype


def _map(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, order: str = "C"
) -> NDArray[Any]:
    if 0 in shape:  # nothing to map
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape, order)  # type: ignore[call-overload,no-any-return]
