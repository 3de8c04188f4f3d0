"""Exact sums that travel: encrypted and authenticated, bound to their settings and shards.

What can be read without the key is public (`envelope`): a hash of the settings, the names of the
shards, and how long the whole is. The number of rows and the record ids are inside; ids are padded
to a power of two, so that the length tells no more of them than its order of magnitude.
"""

import json
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.memory.envelope import Envelope
from discreet.memory.row_layout import AnyLayout_co, RowLayout
from discreet.memory.settings import Settings

if TYPE_CHECKING:
    from discreet.memory.partial import Partial

_PARTIAL = Envelope(b"discreet-partial-1\n", "a sealed partial")
_LEAST_IDS = 2**12


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
    header, contents = _PARTIAL.unseal(data, key, settings.digest)
    return _restored(contents, settings, frozenset(header["shards"]))


def _contents(partial: "Partial[RowLayout]") -> list[Any]:
    """Return what is encrypted: the number of rows, the length of the ids, ids, sums."""
    ids = [each.hex() if isinstance(each, bytes) else each for each in partial.ids]
    raw = any(isinstance(each, bytes) for each in partial.ids)
    stored = {"bytes": raw, "ids": ids, "origin": partial.origin}
    encoded = json.dumps(stored).encode()  # as ASCII: a text may be no UTF-8
    padded = max(_LEAST_IDS, 1 << (len(encoded) - 1).bit_length())
    lead = struct.pack("<qq", partial.rows, padded) + encoded.ljust(padded)
    return [lead, *(np.ascontiguousarray(each, dtype="<i8") for each in partial.sums)]


def _restored(
    contents: memoryview, settings: Settings[AnyLayout_co], shards: frozenset[str]
) -> "Partial[AnyLayout_co]":
    from discreet.memory.partial import Partial

    rows, padded = struct.unpack("<qq", contents[:16])
    stored = json.loads(bytes(contents[16 : 16 + padded]))
    ids = map(bytes.fromhex, stored["ids"]) if stored["bytes"] else stored["ids"]
    sums, start = [], 16 + padded
    for layout in settings.layouts:
        for shape in layout.shapes:
            flat = np.frombuffer(contents, dtype="<i8", count=math.prod(shape), offset=start)
            sums.append(flat.astype(np.int64).reshape(shape))
            start += flat.nbytes
    return Partial(settings, tuple(sums), rows, frozenset(ids), shards, stored.get("origin", ""))
