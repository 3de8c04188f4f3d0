"""Exact sums that travel: encrypted and authenticated, bound to their settings and shards.

What can be read without the key is public (`envelope`): a hash of the settings, the names of the
shards, and how long the whole is. The number of rows is inside, and hashes of the record ids, all
equally long and padded to a power of two: the length tells of records no more than the order of
magnitude of their number.

    rows | bytes of ids | origin | ids, padded | sums
"""

import json
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._ids import MARK_BYTES, marks_of
from discreet.memory.envelope import Envelope
from discreet.memory.row_layout import AnyLayout_co, RowLayout
from discreet.memory.settings import Settings

if TYPE_CHECKING:
    from discreet.memory.partial import Partial

_PARTIAL = Envelope(b"discreet-partial-2\n", "a sealed partial")
_LEAD = struct.Struct("<qq64s")
_LEAST_IDS = 2**12

# Of an earlier version: ids as they are, in JSON, behind the number of rows and their length.
_FIRST = Envelope(b"discreet-partial-1\n", "a sealed partial")
_FIRST_LEAD = struct.Struct("<qq")


def seal(partial: "Partial[RowLayout]", key: bytes) -> bytes:
    """Return the sums of a partial, readable with the key only.

    Args:
        partial: the exact sums.
        key: 32 random bytes (`new_key`), for at most 2^32 partials.
    """
    header = {"settings": partial.settings.digest, "shards": sorted(partial.shards)}
    return _PARTIAL.seal(header, _contents(partial), key)


def unseal(data: bytes, key: bytes, settings: Settings[AnyLayout_co]) -> "Partial[AnyLayout_co]":
    """Return the partial that was sealed under this key, with these settings.

    Raises:
        InvalidInput: it belongs to other settings.
        CorruptRelease: it was altered or cut short, or the key is another.
    """
    first = isinstance(data, bytes) and data.startswith(_FIRST.magic)
    header, contents = (_FIRST if first else _PARTIAL).unseal(data, key, settings.digest)
    return _restored(contents, settings, frozenset(header["shards"]), first=first)


def _contents(partial: "Partial[RowLayout]") -> list[Any]:
    """Return what is encrypted."""
    ids = b"".join(partial.ids)
    lead = _LEAD.pack(partial.rows, len(ids), partial.origin.encode())
    sums = (np.ascontiguousarray(each, dtype="<i8") for each in partial.sums)
    return [lead, ids.ljust(_padded(len(ids)), b"\0"), *sums]


def _padded(size: int) -> int:
    return max(_LEAST_IDS, 1 << (size - 1).bit_length())


def _restored(
    contents: memoryview, settings: Settings[AnyLayout_co], shards: frozenset[str], *, first: bool
) -> "Partial[AnyLayout_co]":
    from discreet.memory.partial import Partial

    rows, ids, origin, start = _first_lead(contents) if first else _lead(contents)
    sums = []
    for layout in settings.layouts:
        for shape in layout.shapes:
            flat = np.frombuffer(contents, dtype="<i8", count=math.prod(shape), offset=start)
            sums.append(flat.astype(np.int64).reshape(shape))
            start += flat.nbytes
    return Partial(settings, tuple(sums), rows, ids, shards, origin)


def _lead(contents: memoryview) -> tuple[int, frozenset[bytes], str, int]:
    """Return the number of rows, ids and origin, and where sums begin."""
    rows, size, origin = _LEAD.unpack(contents[: _LEAD.size])
    ids = bytes(contents[_LEAD.size : _LEAD.size + size])
    marks = frozenset(ids[at : at + MARK_BYTES] for at in range(0, size, MARK_BYTES))
    return rows, marks, origin.rstrip(b"\0").decode(), _LEAD.size + _padded(size)


def _first_lead(contents: memoryview) -> tuple[int, frozenset[bytes], str, int]:
    """Return the same of what an earlier version has sealed."""
    rows, padded = _FIRST_LEAD.unpack(contents[: _FIRST_LEAD.size])
    stored = json.loads(bytes(contents[_FIRST_LEAD.size : _FIRST_LEAD.size + padded]))
    ids = map(bytes.fromhex, stored["ids"]) if stored["bytes"] else stored["ids"]
    return rows, marks_of(ids), stored.get("origin", ""), _FIRST_LEAD.size + padded
