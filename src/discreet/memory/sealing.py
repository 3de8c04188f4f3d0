"""Exact sums that travel: encrypted and authenticated, bound to their settings and shards.

AES-256 in Galois/counter mode. What can be read without the key is public: a hash of the settings,
the names of the shards, and how long the whole is. The number of rows and the record ids are
inside; ids are padded to a power of two, so that the length tells no more of them than its order of
magnitude.

    magic | length of header | header (JSON) | nonce | ciphertext | tag
"""

import json
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet import _validate
from discreet.errors import CorruptRelease, InvalidInput
from discreet.memory.row_layout import AnyLayout_co, RowLayout
from discreet.memory.settings import Settings
from discreet.noise import SystemEntropy

if TYPE_CHECKING:
    from discreet.memory.partial import Partial

_MAGIC = b"discreet-partial-1\n"
_KEY_BYTES, _NONCE_BYTES, _TAG_BYTES = 32, 12, 16
_LEAST_IDS = 2**12

# The cipher takes less than 2 GiB at a time.
_AT_ONCE = 2**30


def new_key() -> bytes:
    """Return a fresh key. Whoever has it can read the exact sums: keep it where the rows are."""
    return _random(_KEY_BYTES)


def seal(partial: "Partial[RowLayout]", key: bytes) -> bytes:
    """Return the sums of a partial, readable with the key only.

    Args:
        partial: the exact sums.
        key: 32 random bytes (`new_key`), for at most 2^32 partials.
    """
    header = {"settings": partial.settings.digest, "shards": sorted(partial.shards)}
    encoded = json.dumps(header, ensure_ascii=False).encode()
    public = _MAGIC + struct.pack("<I", len(encoded)) + encoded + _random(_NONCE_BYTES)
    encryptor = Cipher(algorithms.AES256(_checked(key)), modes.GCM(_nonce(public))).encryptor()
    encryptor.authenticate_additional_data(public)
    sealed = bytearray(public)
    for part in _contents(partial):
        view = memoryview(part).cast("B")
        for start in range(0, len(view), _AT_ONCE):
            sealed += encryptor.update(view[start : start + _AT_ONCE])
    sealed += encryptor.finalize()
    return bytes(sealed + encryptor.tag)


def unseal(data: bytes, key: bytes, settings: Settings[AnyLayout_co]) -> "Partial[AnyLayout_co]":
    """Return the partial that was sealed under this key, with these settings.

    Raises:
        InvalidInput: it belongs to other settings.
        CorruptRelease: it was altered or cut short, or the key is another.
    """
    public, header = _public(data)
    if header["settings"] != settings.digest:
        raise InvalidInput("Expected a sealed partial with the same public settings.")
    tag, end = bytes(data[-_TAG_BYTES:]), len(data) - _TAG_BYTES
    decryptor = Cipher(algorithms.AES256(_checked(key)), modes.GCM(_nonce(public), tag)).decryptor()
    decryptor.authenticate_additional_data(public)
    contents = bytearray()
    view = memoryview(data)[len(public) : end]
    for start in range(0, len(view), _AT_ONCE):
        contents += decryptor.update(view[start : start + _AT_ONCE])
    try:
        contents += decryptor.finalize()
    except InvalidTag:
        raise CorruptRelease(
            "Expected a sealed partial as it was sealed, and its key: it was altered, or the key "
            "is another."
        ) from None
    return _restored(memoryview(contents), settings, frozenset(header["shards"]))


def _contents(partial: "Partial[RowLayout]") -> list[Any]:
    """Return what is encrypted: the number of rows, the length of the ids, ids, sums."""
    ids = [each.hex() if isinstance(each, bytes) else each for each in partial.ids]
    raw = any(isinstance(each, bytes) for each in partial.ids)
    encoded = json.dumps({"bytes": raw, "ids": ids}).encode()  # as ASCII: a text may be no UTF-8
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
    return Partial(settings, tuple(sums), rows, frozenset(ids), shards)


def _public(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """Return what can be read without a key, and the header in it."""
    try:
        if not data.startswith(_MAGIC):
            raise ValueError
        (length,) = struct.unpack_from("<I", data, len(_MAGIC))
        start = len(_MAGIC) + 4
        header = json.loads(data[start : start + length])
        public = bytes(data[: start + length + _NONCE_BYTES])
        whole = isinstance(header, dict) and set(header) == {"settings", "shards"}
        if not whole or len(data) < len(public) + _TAG_BYTES:
            raise ValueError
    except (AttributeError, RecursionError, TypeError, ValueError, struct.error):
        raise CorruptRelease("Expected a sealed partial, and this is none.") from None
    return public, header


def _checked(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        _validate.reject("key", "...", f"{_KEY_BYTES} bytes, as new_key() makes them")
    return key


def _nonce(public: bytes) -> bytes:
    return public[-_NONCE_BYTES:]


def _random(count: int) -> bytes:
    return SystemEntropy().words(-(-count // 8)).tobytes()[:count]
