"""Rows in the binary format of PostgreSQL's COPY, as arrays; and lists that are written as texts.

A row is a number of fields, and each of them a length and so many bytes; an array's are dimensions,
whether some are missing, the type, one length and one bound for each dimension, then its elements,
again with their lengths; all of it big-endian. Numbers and lists of one length make rows of one
size, so that many rows become arrays at once, and everything about them is checked at once. Texts
come last in a row.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_TRAILER = b"\xff\xff"

# How numbers are sent, and their type in arrays.
_NUMBERS = {"number": ">f8", "whole": ">i8", "floats": ">f4", "doubles": ">f8"}
_ELEMENTS = {"floats": 700, "doubles": 701}


@dataclass(frozen=True)
class Field:
    """What is fetched of a row.

    Attributes:
        name: of the column.
        cast: the column, as SQL, in the type that is sent.
        kind: a number (float8), a whole one (int8), a list (float4[] or float8[]), or a text.
        parsed: whether the text is a list of numbers.
    """

    name: str
    cast: str
    kind: Literal["number", "whole", "floats", "doubles", "text"]
    parsed: bool = False


def without_header(rows: Iterator[bytes]) -> Iterator[bytes]:
    """Yield rows alone, of all that COPY sends: the first of them may come with the header."""
    first = bytes(next(rows, b""))
    if first[:11] != _SIGNATURE or len(first) < 19:
        raise InvalidInput("Expected PostgreSQL to send rows in its binary format.")
    (extension,) = struct.unpack_from(">i", first, 15)
    rest = first[19 + extension :]
    if rest and rest != _TRAILER:
        yield rest
    for row in rows:
        if len(row) != 2 or bytes(row) != _TRAILER:
            yield row


@dataclass(frozen=True, eq=False)
class Layout:
    """How rows are made up.

    Attributes:
        fields: in the order that they are sent, texts last.
        where: what messages call the table.
        widths: of lists.
        dtype: of all but the texts.
    """

    fields: list[Field]
    where: str
    widths: dict[Field, int]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, row: bytes, fields: list[Field], where: str) -> "Layout":
        """Return the layout of all rows, by the first: lists are as long as they are there."""
        widths = {}
        place = 2
        for field in fields:
            (size,) = struct.unpack_from(">i", row, place)
            _check(size >= 0, field, where)
            body = bytes(row[place + 4 : place + 4 + size])
            if field.kind in _ELEMENTS:
                _check(size >= 20 and struct.unpack_from(">i", body)[0] == 1, field, where)
                widths[field] = struct.unpack_from(">i", body, 12)[0]
            elif field.parsed:
                widths[field] = _parsed([body.decode()], field, where).shape[1]
            place += 4 + size
        parts: list[Any] = [("fields", ">i2")]
        for number, field in enumerate(fields):
            if field.kind != "text":
                parts.append((str(number), _dtype(field, widths.get(field, 0))))
        return cls(fields, where, widths, np.dtype(parts))

    def rows_of(self, size: int) -> int:
        """Return how many rows take so many bytes, without their texts."""
        return max(1, size // self.dtype.itemsize)

    def arrays(self, rows: Sequence[bytes]) -> dict[Field, NDArray[Any]]:
        """Return each field of some rows: numbers of shape (m, width), or texts of shape (m,)."""
        size = self.dtype.itemsize
        if len(self.dtype.fields or ()) - 1 == len(self.fields):
            alike = all(len(row) == size for row in rows)
            bodies = rows
        else:
            alike = all(len(row) > size for row in rows)
            bodies = [row[:size] for row in rows]
        if not alike:
            self._explain(rows)
        table = np.frombuffer(b"".join(bodies), dtype=self.dtype)
        if np.any(table["fields"] != len(self.fields)):
            self._explain(rows)
        arrays = {}
        for number, field in enumerate(self.fields):
            if field.kind != "text":
                arrays[field] = self._numbers(table[str(number)], field, rows)
        texts = [field for field in self.fields if field.kind == "text"]
        if texts:
            arrays |= self._texts(rows, texts)
        return arrays

    def _numbers(self, cells: NDArray[Any], field: Field, rows: Sequence[bytes]) -> NDArray[Any]:
        native = np.dtype(_NUMBERS[field.kind]).newbyteorder("=")
        width = self.widths.get(field)
        if width is None:
            if np.any(cells["size"] != native.itemsize):
                self._explain(rows)
            return cells["number"].astype(native)[:, None]
        head = cells["head"]
        expected = [20 + width * (4 + native.itemsize), 1, 0, _ELEMENTS[field.kind], width]
        elements = cells["elements"]
        if np.any(head[:, :5] != expected) or np.any(elements["size"] != native.itemsize):
            self._explain(rows)
        return np.asarray(elements["number"].astype(native))

    def _texts(self, rows: Sequence[bytes], fields: list[Field]) -> dict[Field, NDArray[Any]]:
        columns: dict[Field, list[str]] = {field: [] for field in fields}
        for row in rows:
            place = self.dtype.itemsize
            for field in fields:
                (size,) = struct.unpack_from(">i", row, place)
                _check(size >= 0, field, self.where)
                columns[field].append(str(row[place + 4 : place + 4 + size], "utf-8"))
                place += 4 + size
        made = {}
        for field, texts in columns.items():
            if field.parsed:
                made[field] = _parsed(texts, field, self.where, self.widths[field])
            else:
                made[field] = np.empty(len(texts), dtype=object)
                made[field][:] = texts
        return made

    def _explain(self, rows: Sequence[bytes]) -> None:
        """Say what is wrong with the first row that is unlike others; it is not what is in it."""
        for row in rows:
            place = 2
            for field in self.fields:
                (size,) = struct.unpack_from(">i", row, place)
                _check(size >= 0, field, self.where)
                if field in self.widths and field.kind != "text":
                    head = struct.unpack_from(">5i", row, place)
                    complete = size >= 20 and head[1:3] == (1, 0)
                    _check(complete and head[4] == self.widths[field], field, self.where)
                place += 4 + size
        raise InvalidInput(f"Expected {self.where} to send rows as PostgreSQL does.")


def together(arrays: list[NDArray[Any]]) -> Any:  # noqa: ANN401
    """Return columns side by side; None if there are none."""
    if not arrays:
        return None
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)


def _parsed(
    texts: Sequence[str], field: Field, where: str, width: int | None = None
) -> NDArray[np.float64]:
    """Return lists of one length that are written as "[1, 2, 3]", as pgvector and JSON have them.

    Args:
        texts: one for each row.
        field: of the rows.
        where: what messages call the table.
        width: of all lists; by default that of the first.
    """
    inner = [each.strip() for each in texts]
    lists = all(each[:1] == "[" and each[-1:] == "]" for each in inner)
    _check(lists, field, where)
    inner = [each[1:-1] for each in inner]
    width = inner[0].count(",") + 1 if width is None else width
    _check(all(each.count(",") + 1 == width for each in inner), field, where)
    joined = ",".join(inner)
    # Each number by itself, as Python reads it (numpy makes -1 of a blank); without its "1_000".
    _check("_" not in joined and joined.isascii(), field, where)
    try:
        numbers = np.fromiter(map(float, joined.split(",")), dtype=np.float64)
    except ValueError:  # its message quotes what is no number
        numbers = np.empty(0)
    _check(numbers.size == len(texts) * width, field, where)
    return numbers.reshape(len(texts), width)


def _check(fits: bool, field: Field, where: str) -> None:  # noqa: FBT001
    if not fits:
        wanted = "lists of one length, complete," if field.kind in _ELEMENTS else "no missing value"
        wanted = "lists of one length, as [1, 2, 3]," if field.parsed else wanted
        raise InvalidInput(f"Expected {wanted} in {field.name} of {where}.")


def _dtype(field: Field, width: int) -> np.dtype[Any]:
    """Return how a field lies in a row; a list has its size and the four numbers of its head."""
    number = _NUMBERS[field.kind]
    if field.kind not in _ELEMENTS:
        return np.dtype([("size", ">i4"), ("number", number)])
    element = np.dtype([("size", ">i4"), ("number", number)])
    # Its size, dimensions, whether some are missing, type, length, lower bound.
    return np.dtype([("head", ">i4", (6,)), ("elements", element, (width,))])
