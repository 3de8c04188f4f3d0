"""The key of a row in a table is its own: no other row moves it, in whatever frame both stand.

The law: either a table is refused, or each row has the key, to the bit, that it has alone. And what
is refused alone is refused beside anything, where a table keeps values as they are.
"""

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._keys import MISSING
from discreet.errors import InvalidInput
from discreet.tables import Date, Private, Schema

EXAMPLES = settings(max_examples=60, deadline=None)
RANGE = Date("1990-01-01", "2030-01-01")

GONE = st.sampled_from([None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.float32("nan")])
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**53 + 1, 2**63, 2**64 - 1, -(2**63), 10**400, -(10**400)]),
    st.floats(),
    st.floats(width=32),
    st.floats(width=32).map(np.float32),
    st.floats(width=16).map(np.float16),
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.booleans(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.fractions(max_denominator=99),
    GONE,
)
TEXTS = st.sampled_from(["a", "b", "1", "", "nan", "é", "c" * 50]) | st.text(max_size=3)
CODES = st.one_of(
    st.sampled_from([0, 1, 2, 1.0, 2.5, True, False, np.int8(1), np.float32(2.5), np.nan, None]),
    st.sampled_from([2**53, 2**53 + 1, 2.0**53, 2**60 + 1]),
)
ZONES = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=-5))])
TIMES = st.datetimes(
    datetime.datetime(1800, 1, 1),  # noqa: DTZ001
    datetime.datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=ZONES,
)
UNITS = st.sampled_from(["D", "h", "s", "ms", "us", "ns"])
DATES = st.one_of(
    TIMES,
    TIMES.map(datetime.datetime.isoformat),
    TIMES.map(datetime.datetime.date),
    TIMES.map(pd.Timestamp),
    st.builds(
        lambda time, unit: np.datetime64(time.replace(tzinfo=None)).astype(f"datetime64[{unit}]"),
        TIMES,
        UNITS,
    ),
    st.sampled_from([None, pd.NaT, np.datetime64("NaT"), "2020-02-30", "never", 5]),
)
KINDS = {
    "numbers": ((-10, 10), NUMBERS),
    "private numbers": (Private("numbers"), NUMBERS),
    "dates": (RANGE, DATES),
    "private dates": (Private("dates"), DATES),
    "texts": (["a", "b", "1"], TEXTS | st.none() | st.just(1)),
    "codes": ([0, 1, 2.5, 2**53, 2**60 + 1], CODES),
    "private categories": (Private("categories"), CODES | TEXTS | st.just(Decimal(1))),
}


def objects(cells):
    """An array of objects, whatever they are."""
    made = np.empty(len(cells), dtype=object)
    made[:] = cells
    return made


# Tables that keep values as they are.
FAITHFUL = {
    "lists": lambda cells: {"a": list(cells), "b": [0] * len(cells)},
    "array of objects": lambda cells: np.column_stack([objects(cells), objects([0] * len(cells))]),
    "structured array": lambda cells: np.rec.fromarrays(
        [objects(cells), np.zeros(len(cells))], names=["a", "b"]
    ),
    "frame of objects": lambda cells: pd.DataFrame(
        {"a": pd.Series(objects(cells), dtype=object), "b": 0}
    ),
}


def wider(cell):
    """A narrow float as Python's own, where a library confuses it before we see it.

    Arrow makes a whole number of a float16 beside one that is whole; to categories of pandas a
    float32 is equal to a float that rounds to it.
    """
    return float(cell) if isinstance(cell, np.floating) else cell


# Tables that make one type of a column.
TYPED = {
    "frame": lambda cells: pd.DataFrame({"a": list(cells), "b": 0}),
    "nullable frame": lambda cells: pd.DataFrame({"a": list(cells), "b": 0}).convert_dtypes(),
    "frame of arrow": lambda cells: pd.DataFrame({"a": list(cells), "b": 0}).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "frame of categories": lambda cells: pd.DataFrame(
        {"a": [wider(each) for each in cells], "b": 0}
    ).astype({"a": "category"}),
    "two frames": lambda cells: pd.concat(
        [pd.DataFrame({"a": list(cells[:2]), "b": 0}), pd.DataFrame({"a": list(cells[2:]), "b": 0})]
    ),
    "polars": lambda cells: pl.DataFrame({"a": list(cells), "b": [0] * len(cells)}),
    "arrow": lambda cells: pa.table({"a": [wider(each) for each in cells], "b": [0] * len(cells)}),
}


def made(container, cells):
    """The table, or None where there is none of such values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries, while the table is made
        try:
            return container(cells)
        except (Exception, pl.exceptions.PanicException):  # noqa: BLE001 (there is no such table)
            return None


def keys_of(schema, table):
    """The keys of column a, or None if the table is refused."""
    try:
        return schema.keys(table)[:, 0]
    except InvalidInput:
        return None


def key_alone(schema, cell):
    """The key of a value that stands alone, or None if it is refused."""
    found = keys_of(schema, {"a": [cell], "b": [0]})
    return None if found is None else found[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", FAITHFUL)
@EXAMPLES
@given(data=st.data())
def test_a_row_has_the_key_that_it_has_alone(kind, container, data):
    entry, values = KINDS[kind]
    cells = data.draw(st.lists(values, min_size=1, max_size=6))
    schema = Schema({"a": entry, "b": (0, 1)})
    alone = [key_alone(schema, cell) for cell in cells]
    found = keys_of(schema, FAITHFUL[container](cells))
    assert (found is None) == (None in alone)
    if found is not None:
        assert found.dtype == np.float64
        assert found.tolist() == alone
        order = data.draw(st.permutations(range(len(cells))))
        turned = keys_of(schema, FAITHFUL[container]([cells[at] for at in order]))
        assert turned.tolist() == [alone[at] for at in order]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", TYPED)
@EXAMPLES
@given(data=st.data())
def test_one_more_row_is_refused_or_moves_no_other(kind, container, data):
    """A library makes another type of a column for one more row: keys of others stay, or none."""
    entry, values = KINDS[kind]
    cells = data.draw(st.lists(values, min_size=1, max_size=5))
    more = [*cells, data.draw(values)]
    schema = Schema({"a": entry, "b": (0, 1)})
    tables = [made(TYPED[container], each) for each in (cells, more)]
    if any(each is None for each in tables):
        return
    before, after = (keys_of(schema, table) for table in tables)
    if before is not None and after is not None:
        assert after[:-1].tolist() == before.tolist()


def hold_the_same(kind, container, cells):
    schema = Schema({"a": KINDS[kind][0], "b": (0, 1)})
    table = made({**FAITHFUL, **TYPED}[container], cells)
    assert table is not None
    assert keys_of(schema, table).tolist() == [key_alone(schema, cell) for cell in cells]


@pytest.mark.parametrize("container", [*FAITHFUL, *TYPED])
@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("numbers", [1.5, None, -0.1, 2.0**80]),
        ("numbers", [1, 2, 2**53 + 1, None]),
        ("numbers", [True, False]),
        ("private numbers", [0.1, -1e300]),
        ("dates", [datetime.datetime(2020, 1, 1, 2, 3, 4, 5), None]),  # noqa: DTZ001
        ("dates", ["2020-01-01", "2020-01-01T00:00:01+05:00", None]),
        ("dates", [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), None]),
        ("texts", ["a", "b", "nobody", None]),
        ("codes", [0, 1, 2**53 + 1]),
        ("codes", [0.0, 2.5, 7.0, None]),
        ("codes", [True, False]),
        ("private categories", ["a", "b", None]),
        ("private categories", [1, 2, None]),
        ("private categories", [True, False]),
    ],
)
def test_columns_of_one_type_are_taken_in_every_table(container, kind, cells):
    hold_the_same(kind, container, cells)


@EXAMPLES
@given(numbers=st.lists(st.floats(width=32), min_size=1, max_size=6))
def test_single_and_double_precision_have_the_same_keys(numbers):
    schema = Schema({"a": (-1, 1), "b": [0.1, float(np.float32(0.1)), 1, 2]})
    wide = np.column_stack([numbers, numbers]).astype(np.float64)
    wanted = schema.keys(wide)
    for table in (
        wide.astype(np.float32),
        pd.DataFrame(wide.astype(np.float32), columns=["a", "b"]),
        pd.DataFrame(wide, columns=["a", "b"]).astype({"a": "Float32", "b": np.float32}),
        pl.DataFrame(wide.astype(np.float32), schema=["a", "b"]),
        pa.table({name: wide[:, at].astype(np.float32) for at, name in enumerate("ab")}),
    ):
        np.testing.assert_array_equal(schema.keys(table), wanted)


@EXAMPLES
@given(
    whole=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    odd=st.sampled_from([None, 0.5, np.nan, 2**64, -(2**70), True, Decimal("0.5"), Fraction(1, 3)]),
)
def test_whole_numbers_stay_where_they_are_beside_anything(whole, odd):
    schema = Schema({"a": (0, 1)})
    wanted = schema.keys(np.array(whole, dtype=np.int64)[:, None])[:, 0]
    assert wanted.tolist() == [float(each) for each in whole]
    for table in (
        {"a": [*whole, odd]},
        pd.DataFrame({"a": [*whole, odd]}),
        pd.DataFrame({"a": pd.Series([*whole, odd], dtype=object)}),
        np.array([*whole, odd], dtype=object)[:, None],
        np.array([*whole, np.nan if odd is None else float(odd)])[:, None],
    ):
        np.testing.assert_array_equal(schema.keys(table)[:-1, 0], wanted)


@EXAMPLES
@given(rows=st.lists(st.tuples(NUMBERS, TEXTS, DATES), min_size=1, max_size=6), data=st.data())
def test_rows_of_several_columns_are_the_same_alone_and_in_any_order(rows, data):
    schema = Schema({"n": (-1, 1), "c": Private("categories"), "d": RANGE})
    names = schema.names

    def table(some):
        columns = zip(*some, strict=True)
        return dict(zip(names, map(list, columns), strict=True))

    try:
        alone = np.concatenate([schema.keys(table([row])) for row in rows])
    except InvalidInput:
        return
    order = data.draw(st.permutations(range(len(rows))))
    np.testing.assert_array_equal(schema.keys(table([rows[at] for at in order])), alone[order])
    frame = pd.DataFrame(
        {name: pd.Series(each, dtype=object) for name, each in table(rows).items()}
    )
    np.testing.assert_array_equal(schema.keys(frame), alone)
    assert np.all(np.isfinite(alone))
    assert np.abs(alone).max() <= MISSING
