"""A shuffle: brings all rows of a record to one place, and nobody on the way can read them.

A record's influence is bounded as a whole, so its rows have to be added up together, and they may
lie in any file. `scatter` divides the rows of a shard by a hash of their records, and seals each
piece; `gather` opens the pieces of one part, from all shards.

What can be read on the way is public: a hash of the settings, the shard's name, the part, and how
long a piece is. The length tells about how many rows a piece has: it is padded to that of at least
256 rows, and by up to an eighth. Nothing else about the rows changes it: ids travel as keyed hashes
that are all equally long.
"""

import hashlib
import io
import math
import re
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import digests_of, float64
from discreet.errors import InvalidInput
from discreet.sums.partial import Envelope
from discreet.sums.source import Chunk, Table, names_of

# Keys, values, and a hash of the record of each row.
Piece = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

_PIECE = Envelope(b"discreet-rows-2\n", "a sealed piece of rows")
_PART_NAME = re.compile(r"records \d+ of \d+")
_LEAD = struct.Struct("<3qc32s")

# Pieces with fewer rows than these are all as long as one with so many.
_LEAST_ROWS = 256


def part_name(part: int, parts: int) -> str:
    """Return the name that the sums over one part's records have, as a shard."""
    return f"records {part + 1} of {parts}"


def is_part_name(name: str) -> bool:
    """Return whether a shard is called like the sums over one part's records."""
    return _PART_NAME.fullmatch(name) is not None


def check_whole(names: Collection[str]) -> None:
    """Raise `InvalidInput` if some shards are parts of a shuffle, and not all of one.

    Parts carry no ids: that they share no record is known because one hash divided all rows.
    """
    parts = sum(map(is_part_name, names))
    if parts and set(names) != {part_name(part, parts) for part in range(parts)}:
        raise InvalidInput("Expected all parts of one shuffle, and no shard besides them.")


def scatter(
    chunks: Iterable[Chunk], *, shard: str, parts: int, digest: str, key: bytes
) -> list[bytes]:
    """Return the rows of a shard, divided by record and sealed: one piece for each part.

    Args:
        chunks: keys and values of one layer, and the record of each row, shape (n,).
        shard: the shard's name.
        parts: how many pieces.
        digest: of the public settings.
        key: of the job.
    """
    pieces: list[list[Piece]] = [[] for _ in range(parts)]
    kind = b""
    for [table], groups in chunks:
        if groups is None:
            raise InvalidInput("Expected groups with every chunk: the unit is a record.")
        names = names_of(groups)
        if len(names) != table.rows:
            raise InvalidInput("Expected groups to name one record for each row.")
        kind = _one_kind({kind, _kind(names)})
        ids = digests_of(names, _hash(key, b"ids"))
        of_row = (ids.view("<u8")[::2] % np.uint64(parts)).astype(np.int64)
        order = np.argsort(of_row, kind="stable")
        ends = np.searchsorted(of_row[order], np.arange(parts + 1))
        for part in range(parts):
            index = order[ends[part] : ends[part + 1]]
            pieces[part].append((*_taken(table, index), ids[index]))
    if not pieces[0]:
        raise InvalidInput("Expected at least one chunk of rows (it may have none).")
    saved = [_saved_piece(_joined(piece)) for piece in pieces]
    origin = _hash(key, b"shard", *(part for piece in saved for part in piece.contents))
    return [
        _PIECE.seal(
            {"settings": digest, "shard": shard, "part": part, "parts": parts},
            piece.sealed(kind, origin),
            key,
        )
        for part, piece in enumerate(saved)
    ]


def gather(
    pieces: Iterable[bytes],
    *,
    part: int,
    parts: int,
    expected: Collection[str],
    digest: str,
    key: bytes,
) -> tuple[Piece, str]:
    """Return keys, values and groups of all records of one part, and what they were made from.

    The latter is a hash of all rows of all shards: parts of different origins must not meet, since
    a shard that was divided twice, after its ids had changed, has rows in two of them or in none.

    Args:
        pieces: of this part, one from every shard.
        part: from 0 on.
        parts: how many there are.
        expected: the names of all shards.
        digest: of the public settings.
        key: of the job.
    """
    parts = _validate.whole("parts", parts, at_least=1)
    part = _validate.whole("part", part, at_least=0, at_most=parts - 1)
    found: list[Piece] = []
    shards: dict[str, bytes] = {}
    kinds: set[bytes] = set()
    for data in pieces:
        header, contents = _PIECE.unseal(data, key, digest)
        if (header["part"], header["parts"]) != (part, parts):
            raise InvalidInput(
                f"Expected pieces of part {part} of {parts} only; one belongs to another part."
            )
        if header["shard"] in shards:
            raise InvalidInput("Expected one piece from each shard: rows would count twice.")
        kind, origin, piece = _restored(contents)
        shards[header["shard"]] = origin
        found.append(piece)
        kinds.add(kind)
    if shards.keys() != set(expected) or not found:
        raise InvalidInput("Expected a piece from every shard, and from no other.")
    _one_kind(kinds)
    named = (each for name in sorted(shards) for each in (name.encode(), shards[name]))
    return _joined(found), _hash(key, b"shards", *named).hex()


def _hash(key: bytes, *parts: bytes) -> bytes:
    """Return a keyed hash of a list of bytes, 32 bytes long, that says nothing of the key."""
    hashed = hashlib.blake2b(key=key, digest_size=32, person=b"discreet rows")
    for part in parts:
        hashed.update(struct.pack("<q", len(part)))
        hashed.update(part)
    return hashed.digest()


def _taken(table: Table, index: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return copies of some rows, in double precision whatever they had.

    Else one row in double precision would make all pieces of a shuffle longer.
    """
    keys, values = (float64(each[..., index, :]) for each in (table.keys, table.values))
    return keys, values


def _joined(pieces: list[Piece]) -> Piece:
    keys, values, groups = zip(*pieces, strict=True)
    widths = {(array.shape[:-2], array.shape[-1]) for array in keys}
    if len(widths) > 1 or len({array.shape[-1] for array in values}) > 1:
        raise InvalidInput("Expected keys and values of one width in all shards.")
    return (
        np.concatenate(keys, axis=-2),
        np.concatenate(values, axis=-2),
        np.concatenate(groups),
    )


def _kind(names: NDArray[Any] | list[Any]) -> bytes:
    """Return whether ids are numbers, texts or bytes; nothing if there are none."""
    if len(names) == 0:
        return b""
    plain = names[:1].tolist() if isinstance(names, np.ndarray) else names
    return {int: b"i", str: b"s", bytes: b"b"}[type(plain[0])]


def _one_kind(kinds: set[bytes]) -> bytes:
    """Return the kind of all ids: 7 and "7" may be one person, and would be two records."""
    known = kinds - {b"", b"-"}
    if len(known) > 1:
        raise InvalidInput("Expected the groups of all chunks to be of one type.")
    return known.pop() if known else b""


@dataclass(frozen=True)
class _SavedPiece:
    """Rows as bytes.

    Attributes:
        contents: of keys, values and groups.
        least: as long as this many bytes at least.
    """

    contents: tuple[bytes, bytes, bytes]
    least: int

    def sealed(self, kind: bytes, origin: bytes) -> list[bytes]:
        """Return what is encrypted: lengths, kind of ids and origin, contents, padding."""
        lengths = [len(part) for part in self.contents]
        size = _LEAD.size + sum(lengths)
        padding = bytes(_padded(max(size, self.least)) - size)
        return [_LEAD.pack(*lengths, kind or b"-", origin), *self.contents, padding]


def _saved_piece(piece: Piece) -> _SavedPiece:
    keys, values, groups = piece
    width = sum(
        array.itemsize * math.prod(array.shape[:-2]) * array.shape[-1] for array in (keys, values)
    )
    contents = (_saved(keys), _saved(values), _saved(groups))
    return _SavedPiece(contents, _LEAST_ROWS * (width + groups.itemsize))


def _restored(contents: memoryview) -> tuple[bytes, bytes, Piece]:
    *lengths, kind, origin = _LEAD.unpack(contents[: _LEAD.size])
    ends = np.cumsum([_LEAD.size, *lengths])
    keys, values, groups = (_loaded(contents[ends[i] : ends[i + 1]]) for i in range(3))
    return kind, origin, (keys, values, groups)


def _padded(size: int) -> int:
    """Return a length that tells three binary digits of the true one, and its magnitude."""
    step = 1 << max(size.bit_length() - 4, 0)
    return -(-size // step) * step


def _saved(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _loaded(data: memoryview) -> NDArray[Any]:
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array
