"""Private bytes that travel: encrypted and authenticated, with a public header.

An `Envelope` is AES-256 in Galois/counter mode. Without the key, one can read the header and how
long the whole is; nobody can alter either without being noticed.

    magic | length of header | header (JSON) | nonce | ciphertext | tag

`seal` and `unseal` put the exact sums of a `Partial` in such an envelope. Its header is public: a
hash of the settings, and the names of the shards. The number of rows is encrypted, and so are
hashes of the record ids, all equally long and padded to a power of two: the length of the whole
tells no more than the order of magnitude of the number of records.

    rows | bytes of ids | origin | ids, padded | sums
"""

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet import _validate
from discreet._ids import MARK_BYTES, marks_of
from discreet.errors import CorruptRelease, InvalidInput
from discreet.noise import SystemEntropy
from discreet.sums.layout import AnyLayout_co, RowLayout
from discreet.sums.settings import Settings

if TYPE_CHECKING:
    from discreet.sums.partial import Partial

_KEY_BYTES, _NONCE_BYTES, _TAG_BYTES = 32, 12, 16

# The cipher takes less than 2 GiB at a time.
_AT_ONCE = 2**30


def new_key() -> bytes:
    """Return a fresh key. Whoever has it can read what is sealed: keep it where the rows are."""
    return _random(_KEY_BYTES)


@dataclass(frozen=True)
class Envelope:
    """One kind of sealed bytes.

    Attributes:
        magic: how they begin.
        noun: what they are called in messages.
    """

    magic: bytes
    noun: str

    def seal(self, header: Mapping[str, object], contents: Iterable[Any], key: bytes) -> bytes:
        """Return some contents, readable with the key only.

        Args:
            header: public, and JSON; under "settings", a hash of the public settings.
            contents: private, one buffer after the other.
            key: 32 random bytes (`new_key`), for at most 2^32 envelopes.
        """
        encoded = json.dumps(header, ensure_ascii=False).encode()
        public = self.magic + struct.pack("<I", len(encoded)) + encoded + _random(_NONCE_BYTES)
        encryptor = Cipher(algorithms.AES256(_checked(key)), modes.GCM(_nonce(public))).encryptor()
        encryptor.authenticate_additional_data(public)
        sealed = bytearray(public)
        for part in contents:
            view = memoryview(part).cast("B")
            for start in range(0, len(view), _AT_ONCE):
                sealed += encryptor.update(view[start : start + _AT_ONCE])
        sealed += encryptor.finalize()
        sealed += encryptor.tag
        return bytes(sealed)

    def unseal(self, data: bytes, key: bytes, digest: str) -> tuple[dict[str, Any], memoryview]:
        """Return header and contents, if they were sealed under this key and these settings.

        Args:
            data: the sealed bytes.
            key: that they were sealed with.
            digest: a hash of the public settings that they must have.

        Raises:
            InvalidInput: they belong to other settings.
            CorruptRelease: they were altered or cut short, or the key is another.
        """
        public = self._public(data)
        tag, end = bytes(data[-_TAG_BYTES:]), len(data) - _TAG_BYTES
        decryptor = Cipher(
            algorithms.AES256(_checked(key)), modes.GCM(_nonce(public), tag)
        ).decryptor()
        decryptor.authenticate_additional_data(public)
        contents = bytearray()
        view = memoryview(data)[len(public) : end]
        for start in range(0, len(view), _AT_ONCE):
            contents += decryptor.update(view[start : start + _AT_ONCE])
        try:
            contents += decryptor.finalize()
        except InvalidTag:
            raise CorruptRelease(
                f"Expected {self.noun} as it was sealed, and its key: it was altered, or the key "
                "is another."
            ) from None
        # Whoever has the key wrote this: only now is it worth reading.
        header: dict[str, Any] = json.loads(public[len(self.magic) + 4 : -_NONCE_BYTES])
        if header["settings"] != digest:
            raise InvalidInput(f"Expected {self.noun} with the same public settings.")
        return header, memoryview(contents)

    def _public(self, data: bytes) -> bytes:
        """Return what can be read without a key; raise `CorruptRelease` if data are cut short."""
        start = len(self.magic) + 4
        if isinstance(data, bytes) and data.startswith(self.magic) and len(data) >= start:
            (length,) = struct.unpack_from("<I", data, len(self.magic))
            if len(data) >= start + length + _NONCE_BYTES + _TAG_BYTES:
                return data[: start + length + _NONCE_BYTES]
        raise CorruptRelease(f"Expected {self.noun}, and this is none.")


def _checked(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        _validate.reject("key", "...", f"{_KEY_BYTES} bytes, as new_key() makes them")
    return key


def _nonce(public: bytes) -> bytes:
    return public[-_NONCE_BYTES:]


def _random(count: int) -> bytes:
    return SystemEntropy().words(-(-count // 8)).tobytes()[:count]


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

    Args:
        data: the sealed bytes.
        key: that they were sealed with.
        settings: that the partial was made with.

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
    from discreet.sums.partial import Partial

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
