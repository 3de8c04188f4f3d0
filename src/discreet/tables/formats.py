"""Arrays in .npy, .npz and .safetensors files: mapped where they can be, never unpickled.

Each reader takes a file, the name that was asked for and the role of the array ("keys", ...), which
is the name to look for when none was given. Errors name files, names and types, never a value.
"""

import json
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.tables.limits import check_unpacked
from discreet.tables.names import choose

# What is compressed has to be unpacked in memory. Real numbers do not shrink a hundredfold; what
# does, and is large, is refused, because unpacking is all that such a file is for.
_LARGE = 2**28
_LARGEST_RATIO = 100


def read_npy(path: Path, name: str | None, _role: str) -> NDArray[Any]:
    """Return the array of a .npy file, mapped."""
    if name is not None:
        raise InvalidInput(f"Expected {path} without a name: a .npy file holds one array.")
    return _map_npy(path, 0, path.stat().st_size)


def read_npz(path: Path, name: str | None, role: str) -> NDArray[Any]:
    """Return one array of a .npz file: mapped, if it is stored as it is (`numpy.savez`)."""
    with zipfile.ZipFile(path) as archive:
        members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
        member = members[choose(path, name, role, members)]
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


def read_safetensors(path: Path, name: str | None, role: str) -> NDArray[Any]:
    """Return one array of a .safetensors file, mapped."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as tensors:  # checks the header as a whole
            chosen = choose(path, name, role, list(tensors.keys()))
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
