"""Private bytes that travel: encrypted and authenticated, with a public header.

AES-256 in Galois/counter mode. Without the key, one can read the header and how long the whole is;
nobody can alter either without being noticed.

    magic | length of header | header (JSON) | nonce | ciphertext | tag
"""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet import _validate
from discreet.errors import CorruptRelease, InvalidInput
from discreet.noise import SystemEntropy

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
        """Return what can be read without a key: as long as it says, or `CorruptRelease`."""
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
