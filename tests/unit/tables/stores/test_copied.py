"""Rows in the binary format of COPY, made by hand: what does not fit is never taken for numbers."""

import struct

import numpy as np
import pytest

from discreet.errors import InvalidInput
from discreet.tables.stores.copied import Field, Layout, without_header

KEY, VALUE = Field("key", "", "floats"), Field("value", "", "doubles")
NUMBER, NAME = Field("number", "", "whole"), Field("name", "", "text")
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)


def listed(numbers, code, kind=None, *, dimensions=1, missing=0):
    kind = {"f": 700, "d": 701}[code] if kind is None else kind
    size = struct.calcsize(f">{code}")
    cells = b"".join(struct.pack(f">i{code}", size, each) for each in numbers)
    return struct.pack(">5i", dimensions, missing, kind, len(numbers), 1) + cells


def row(*fields, count=None):
    sized = (
        b"\xff\xff\xff\xff" if each is None else struct.pack(">i", len(each)) + each
        for each in fields
    )
    return struct.pack(">h", len(fields) if count is None else count) + b"".join(sized)


FIRST = row(listed([1, 2], "f"), listed([3, 4, 5], "d"))
LAYOUT = Layout.of(FIRST, [KEY, VALUE], "the query")


def test_rows_become_arrays():
    other = row(listed([6, 7], "f"), listed([8, 9, np.pi], "d"))
    arrays = LAYOUT.arrays([FIRST, memoryview(other)])
    np.testing.assert_array_equal(arrays[KEY], np.float32([[1, 2], [6, 7]]), strict=True)
    np.testing.assert_array_equal(arrays[VALUE], [[3, 4, 5], [8, 9, np.pi]])
    mixed = [row(struct.pack(">q", 2**62), text) for text in (b"ann", b"", "né".encode())]
    arrays = Layout.of(mixed[0], [NUMBER, NAME], "the query").arrays(mixed)
    assert arrays[NUMBER].tolist() == [[2**62]] * 3
    assert arrays[NAME].tolist() == ["ann", "", "né"]


@pytest.mark.parametrize(
    "wrong",
    [
        row(listed([1, 2, 3, 4], "f"), listed([3, 4], "d") + b"\0" * 8),  # as long in all
        row(listed([1, 2], "f", missing=1), listed([3, 4, 5], "d")),
        row(listed([1, 2], "f", dimensions=2), listed([3, 4, 5], "d")),
        row(listed([1, 2], "f", kind=23), listed([3, 4, 5], "d")),
        row(listed([1, 2], "f"), listed([3, 4, 5], "d"), count=3),
        row(listed([1, 2], "f"), None),
        row(listed([1, 2], "f")[:-8] + struct.pack(">if", -1, 0), listed([3, 4, 5], "d")),
        FIRST + b"\0",
        FIRST[:-1] + b"",
    ],
)
def test_a_row_that_is_unlike_the_first_is_refused(wrong):
    with pytest.raises(InvalidInput, match=r"complete, in|as PostgreSQL does"):
        LAYOUT.arrays([FIRST, wrong, FIRST])


def test_the_header_may_come_alone_or_with_a_row():
    for sent in ([HEADER + FIRST], [HEADER, FIRST]):
        assert list(without_header(iter([*sent, FIRST, b"\xff\xff"]))) == [FIRST, FIRST]
    assert list(without_header(iter([HEADER + b"\xff\xff"]))) == []
    for sent in ([], [b"\xff\xff"], [FIRST]):
        with pytest.raises(InvalidInput, match="binary format"):
            list(without_header(iter(sent)))
