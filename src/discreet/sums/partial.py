"""Exact integer sums over some of the rows. PRIVATE: noise is added by `door.release` only.

Sums of integers do not depend on the order of rows, on chunking or on how rows (or whole records)
are divided among partials: any way of adding them up gives the same bits. Rows must not count
twice, so a partial knows the names of the shards that it holds.

The integers of a row must not depend on the machine that adds it up, either: removing one row may
send others to another machine, and would change those, too. All that rows go through is exact, or
rounded as IEEE 754 prescribes, but for numpy's exp, cos and sin, whose last bits differ between
processors. `fingerprint` tells whether two machines compute these alike.

Private bytes travel encrypted and authenticated, with a public header. An `Envelope` is AES-256 in
Galois/counter mode. Without the key, one can read the header and how long the whole is; nobody can
alter either without being noticed.

    magic | length of header | header (JSON) | nonce | ciphertext | tag

The header of sealed sums is public: a hash of the settings, and the names of the shards. The number
of rows is encrypted, and so are hashes of the record ids, all equally long and padded to a power of
two: the length of the whole tells no more than the order of magnitude of the number of records.

    rows | bytes of ids | origin | ids, padded | sums
"""

import hashlib
import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, NoReturn

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet import _validate
from discreet._arrays import MARK_BYTES, kind_of, marks_of
from discreet._typing import Integers
from discreet.errors import CorruptRelease, InvalidInput
from discreet.noise import SystemEntropy
from discreet.sums.accumulate import Accumulator, check_disjoint, zeros
from discreet.sums.layout import AnyLayout_co, RowLayout
from discreet.sums.settings import Settings
from discreet.sums.source import Advance, Table, unseen

_KEY_BYTES, _NONCE_BYTES, _TAG_BYTES = 32, 12, 16

# The cipher takes less than 2 GiB at a time.
_AT_ONCE = 2**30


def new_key() -> bytes:
    """Return a fresh key. Whoever has it can read what is sealed: keep it where the rows are."""
    return _random(_KEY_BYTES)


def derived_key(key: bytes, purpose: str) -> bytes:
    """Return another key, for one purpose: nobody can tell the key itself from it.

    Args:
        key: 32 random bytes (`new_key`).
        purpose: a public name.
    """
    return hashlib.blake2b(purpose.encode(), key=_checked(key), digest_size=_KEY_BYTES).digest()


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

    def header(self, data: bytes) -> dict[str, Any]:
        """Return what is public about sealed bytes, as they say it: nobody has checked it.

        Args:
            data: the sealed bytes.

        Raises:
            CorruptRelease: they are none.
        """
        try:
            found = json.loads(self._public(data)[len(self.magic) + 4 : -_NONCE_BYTES])
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise CorruptRelease(f"Expected {self.noun}, and this is none.")
        return found

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


_ARGUMENTS = 2**15
_POWERS = 2**10


@cache
def fingerprint() -> str:
    """Return a hash of exp, cos and sin at many arguments, as this machine computes them."""
    # Multiples of the golden ratio, modulo one, lie evenly, and on no grid.
    even = np.arange(_ARGUMENTS) * 0.6180339887498949 % 1.0
    hashed = hashlib.sha256()
    computed = (np.exp(-even), np.exp(-32 * even), np.cos(7 * even), np.sin(7 * even))
    powers = (np.power(7 * even, 1.7), [float(each) ** 0.3 for each in even[:_POWERS]])
    for values in (*computed, *powers):
        hashed.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return hashed.hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Partial(Generic[AnyLayout_co]):
    """The exact sums over some rows. Neither printed nor pickled nor copied; `seal` encrypts it.

    Attributes:
        settings: the public settings.
        sums: one array for each part of each layer, in lattice units (`RowLayout.shapes`).
        rows: how many rows there were.
        ids: hashes of the records that they belong to (`marks_of`), all equally long; none where
            the unit is a row.
        shards: the names of the pieces of data that were added up.
        origin: what they were made from, if that has to be the same for all that merge with them;
            else empty.
    """

    settings: Settings[AnyLayout_co]
    sums: tuple[Integers, ...]
    rows: int
    ids: frozenset[bytes]
    shards: frozenset[str]
    origin: str = ""

    def __repr__(self) -> str:
        return "<Partial: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @classmethod
    def empty(cls, settings: Settings[AnyLayout_co]) -> "Partial[AnyLayout_co]":
        """Return the sums over no rows.

        Args:
            settings: the public settings.
        """
        return cls(settings, tuple(zeros(settings)), 0, frozenset(), frozenset())

    @classmethod
    def of(
        cls,
        tables: Sequence[Table],
        settings: Settings[AnyLayout_co],
        *,
        groups: object = None,
        shard: str | None = None,
        advance: Advance = unseen,
    ) -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of some tables, one for each layer.

        Args:
            tables: keys and values of each layer; their rows belong together by position.
            settings: the public settings.
            groups: the record of each row, if the unit is a record.
            shard: a public name for these rows, so that they are counted once; by default one that
                nothing else has.
            advance: told how many rows have been added, for a progress bar.
        """
        return cls.of_chunks([(tables, groups)], settings, shard=shard, advance=advance)

    @classmethod
    def of_chunks(
        cls,
        chunks: Iterable[tuple[Sequence[Table], object]],
        settings: Settings[AnyLayout_co],
        *,
        shard: str | None = None,
        threads: int | None = None,
        advance: Advance = unseen,
    ) -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of all chunks, read one after the other.

        Args:
            chunks: tables and groups, as for `of`; a record lies within one chunk.
            settings: likewise.
            shard: likewise.
            threads: the most to use; by default one for each processor.
            advance: likewise.
        """
        name = _fresh_name() if shard is None else checked_name(shard)
        adder = Accumulator(settings, threads=threads)
        some = False
        for tables, groups in chunks:
            adder.add(tables, groups=groups, advance=advance)
            some = True
        if not some:  # a stream that was read before would count as no rows
            raise InvalidInput("Expected at least one chunk of rows (it may have none).")
        ids = marks_of(adder.ids)
        return cls(settings, tuple(adder.sums), adder.rows, ids, frozenset([name]))

    def merge(self, other: "Partial[AnyLayout_co]") -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of both.

        Args:
            other: of other shards, with the same settings.

        Raises:
            InvalidInput: settings differ, or a shard or record is in both.
        """
        _validate.instance("other", other, Partial)
        return Partial.merged(self.settings, [self, other])

    @classmethod
    def merged(
        cls, settings: Settings[AnyLayout_co], partials: "Iterable[Partial[AnyLayout_co]]"
    ) -> "Partial[AnyLayout_co]":
        """Return the sums over the rows of all these partials, one after the other.

        Args:
            settings: the public settings, the same for all.
            partials: of different shards.

        Raises:
            InvalidInput: settings differ, or a shard or record is in two of them.
        """
        sums, rows = zeros(settings), 0
        ids: set[bytes] = set()
        shards: set[str] = set()
        origin = ""
        for each in partials:
            if settings.digest != each.settings.digest:
                raise InvalidInput("Expected partials with the same public settings.")
            if not shards.isdisjoint(each.shards):
                raise InvalidInput("Expected partials of different shards: rows would count twice.")
            if shards and each.shards and origin != each.origin:
                raise InvalidInput("Expected partials that were made from the same rows.")
            for layout in settings.layouts:
                layout.check_rows(rows + each.rows)
            check_disjoint(ids, each.ids, kind_of)
            for total, part in zip(sums, each.sums, strict=True):
                np.add(total, part, out=total)
            rows += each.rows
            ids |= each.ids
            shards |= each.shards
            origin = each.origin or origin
        return cls(settings, tuple(sums), rows, frozenset(ids), frozenset(shards), origin)

    def seal(self, key: bytes) -> bytes:
        """Return the sums, encrypted and authenticated.

        Args:
            key: 32 random bytes (`new_key`), for at most 2^32 partials.
        """
        header = {"settings": self.settings.digest, "shards": sorted(self.shards)}
        return _PARTIAL.seal(header, _contents(self), key)

    @classmethod
    def unseal(
        cls, data: bytes, key: bytes, settings: Settings[AnyLayout_co]
    ) -> "Partial[AnyLayout_co]":
        """Return sums that were sealed under this key and these settings.

        Args:
            data: the sealed bytes.
            key: that they were sealed with.
            settings: that they were made with.

        Raises:
            InvalidInput: they belong to other settings.
            CorruptRelease: they were altered or cut short, or the key is another.
        """
        first = isinstance(data, bytes) and data.startswith(_FIRST.magic)
        header, contents = (_FIRST if first else _PARTIAL).unseal(data, key, settings.digest)
        return _restored(contents, settings, frozenset(header["shards"]), first=first)


def _contents(partial: Partial[RowLayout]) -> list[Any]:
    """Return what is encrypted."""
    ids = b"".join(partial.ids)
    lead = _LEAD.pack(partial.rows, len(ids), partial.origin.encode())
    sums = (np.ascontiguousarray(each, dtype="<i8") for each in partial.sums)
    return [lead, ids.ljust(_padded(len(ids)), b"\0"), *sums]


def _padded(size: int) -> int:
    return max(_LEAST_IDS, 1 << (size - 1).bit_length())


def _restored(
    contents: memoryview, settings: Settings[AnyLayout_co], shards: frozenset[str], *, first: bool
) -> Partial[AnyLayout_co]:
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


def _fresh_name() -> str:
    return SystemEntropy().words(2).tobytes().hex()


def checked_name(shard: str) -> str:
    """Return the name of a shard, if it is one.

    Args:
        shard: what the caller gave.

    Raises:
        InvalidInput: it is no text that can be printed.
    """
    if not isinstance(shard, str) or not shard.strip() or not shard.isprintable():
        _validate.reject("shard", "...", "a text that can be printed")
    return shard


def names_of_shards(expected: Iterable[str]) -> frozenset[str]:
    """Return the names of all shards, if each is there once.

    Args:
        expected: what the caller gave.
    """
    if isinstance(expected, str | bytes) or not isinstance(expected, Iterable):
        _validate.reject_argument("expected", expected, "the names of all shards")
    names = [checked_name(name) for name in expected]
    if len(set(names)) != len(names) or not names:
        raise InvalidInput("Expected the names of all shards, at least one, each once.")
    return frozenset(names)


def check_shards(found: frozenset[str], expected: frozenset[str]) -> None:
    """Raise `InvalidInput` unless all shards are there, and no other.

    Args:
        found: names of those that are there.
        expected: names of all.
    """
    for names, what in ((expected - found, "missing"), (found - expected, "not expected")):
        if names:
            some = ", ".join(repr(name) for name in sorted(names)[:3])
            more = ", ..." if len(names) > 3 else ""
            raise InvalidInput(
                f"Expected the shards that were named, each once; {what}: {some}{more}."
            )
