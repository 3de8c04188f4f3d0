"""What a schema takes and refuses, how it is written down, and what keys it makes of columns."""

import datetime
import enum
import json
import tomllib
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import InvalidInput
from discreet._keys import LARGEST, MISSING, PLACES, place_of
from discreet.tables import Date, Private, Schema, Text, guess
from discreet.tables.schema import Category, Number

UTC = datetime.UTC
EAST = datetime.timezone(datetime.timedelta(hours=2))
SOME = {
    "zeal": (0, 1.5),
    'odd "name"\n\\ é 🙂': ["tab\t", 'quote "', "back\\slash", "é\x7f"],
    "when": Date("2000-01-01", datetime.date(2030, 1, 1)),
    "rooms": [1, 2.5, -3],
    "owner": [True, False],
    "pay": "private",
    "job": "private categories",
    "since": Private("dates"),
    "tiny": (-1e22, 5e-324),
    "apple": (2**60, 2**61),
}


class Odd:
    """Something that is no value, with the same name in every process."""

    def __repr__(self):
        return "Odd()"


def keys(entry, values):
    """The keys of one column, from a dictionary of lists."""
    return Schema({"a": entry}).keys({"a": values})[:, 0].tolist()


def refused(call, match):
    """What the refusal says: one sentence, on one line."""
    with pytest.raises(InvalidInput, match=match) as caught:
        call()
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said
    return said


# What is taken, and what is not.


def test_entries_become_what_they_say():
    made = Schema(SOME).columns
    assert made["zeal"] == Number(0.0, 1.5)
    assert made["zeal"].range == (made["zeal"].low, made["zeal"].high) == (0.0, 1.5)
    assert type(made["apple"].low) is float
    assert made["rooms"] == Category((1, 2.5, -3))
    assert made["when"] == Date("2000-01-01", "2030-01-01")
    assert made["pay"] == Private()
    assert made["job"] == Private("categories")
    assert Schema(SOME).names == list(SOME)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((np.float32(0.5), np.int8(2)), Number(0.5, 2.0)),
        ((Fraction(1, 4), 1), Number(0.25, 1.0)),
        (np.array([3, 1]), Category((3, 1))),
        (np.array(["b", "a"]), Category(("b", "a"))),
        ([np.str_("b"), "a"], Category(("b", "a"))),
        (pd.CategoricalDtype(["b", "a"]), Category(("b", "a"))),
        (pd.Categorical(["b", "a"]), Category(("a", "b"))),
        ([0, 1], Category((0, 1))),
        (Number(0, 1), Number(0.0, 1.0)),
        (Private("numbers"), Private("numbers")),
    ],
)
def test_what_may_be_said_of_a_column(given, wanted):
    assert Schema({"a": given}).columns["a"] == wanted


def test_a_category_of_numpy_is_kept_as_pythons_own():
    listed = [np.int64(3), np.float32(0.5), np.bool_(1)]
    made = Schema({"a": np.array([1, 2]), "b": [np.str_("x")], "c": listed}).columns
    found = [list(map(type, made[name].categories)) for name in "abc"]
    assert found == [[int, int], [str], [int, float, bool]]


@pytest.mark.parametrize(
    "given",
    [
        (1, 0),
        (1, 1),
        (0, np.inf),
        (np.nan, 1),
        (False, True),
        ("1", "2"),
        (0, 1, 2),
        (0, 2.0**127),
        [],
        ["a", 1],
        ["a", None],
        ["a", "a"],
        [1, True],
        [1, 1.0],
        [[1, 2]],
        [b"a"],
        "privat",
        "private texts",
        "private ",
        "",
        None,
        5,
        {"range": (0, 1)},
        Date,
    ],
    ids=repr,
)
def test_what_says_nothing_of_a_column_is_refused_by_its_name(given):
    if given == "private ":
        assert Schema({"salary": given}).columns["salary"] == Private()
        return
    refused(lambda: Schema({"salary": given}), "'salary'")


@pytest.mark.parametrize(
    "given",
    [(0, 10**400), (-(10**400), 0), (0, np.complex128(1))],
    ids=["huge", "hugely negative", "complex"],
)
def test_ends_that_are_no_float64_are_refused(given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused(lambda: Schema({"salary": given}), "'salary'")


@pytest.mark.parametrize("listed", [[np.nan, 1.0], [1, float("nan")]])
def test_a_list_of_categories_has_no_nan(listed):
    """It equals nothing: what is missing has a place of its own."""
    refused(lambda: Schema({"salary": listed}), "'salary'")


@pytest.mark.parametrize("given", [Text, Text()])
def test_texts_are_refused_with_advice(given):
    said = refused(lambda: Schema({"note": given}), "'note'")
    assert "corpus" in said


@pytest.mark.parametrize("given", [{}, None, [("a", (0, 1))], {1: (0, 1)}, {"": (0, 1)}])
def test_columns_are_named(given):
    refused(lambda: Schema(given), "columns")


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("2020-01-01", "2020-01-01"),
        ("2021-01-01", "2020-01-01"),
        ("soon", "2020-01-01"),
        (2000, 2020),
        (None, "2020-01-01"),
        ("2020-13-01", "2021-01-01"),
        ("2000-01", "2021-01-01"),
    ],
)
def test_dates_that_are_none_are_refused(first, last):
    refused(lambda: Date(first, last), "Date")


@pytest.mark.parametrize("odd", ["NaT", "", pd.NaT])
def test_a_date_that_is_missing_is_no_end_of_a_range(odd):
    refused(lambda: Date(odd, "2020-01-01"), "Date")
    refused(lambda: Date("2020-01-01", odd), "Date")


@pytest.mark.parametrize("odd", ["now", "today"])
def test_a_range_of_dates_does_not_change_with_the_day(odd):
    """Libraries know these words; a file that is read tomorrow must say the same."""
    refused(lambda: Date("2000-01-01", odd), "Date")


@pytest.mark.parametrize(
    "first",
    [
        datetime.datetime(2000, 1, 1, 2, tzinfo=EAST),
        "2000-01-01T02:00:00+02:00",
        "2000-01-01T00:00:00Z",
    ],
)
def test_ends_with_a_time_zone_are_the_seconds_that_they_are(first):
    assert Date(first, "2020-01-01").range[0] == 946_684_800


@pytest.mark.parametrize(
    ("first", "seconds"),
    [
        ("2000-01-01", 946_684_800),
        (datetime.date(2000, 1, 1), 946_684_800),
        (datetime.datetime(2000, 1, 1, 0, 0, 1), 946_684_801),  # noqa: DTZ001
        (pd.Timestamp("2000-01-01"), 946_684_800),
        ("1969-12-31T23:59:59", -1),
    ],
)
def test_ends_of_dates(first, seconds):
    assert Date(first, "2020-01-01").range == (seconds, 1_577_836_800)


def test_schemas_are_equal_if_columns_and_their_order_are():
    turned = dict(reversed(SOME.items()))
    assert Schema(SOME) == Schema(Schema(SOME))
    assert hash(Schema(SOME)) == hash(Schema(dict(SOME)))
    assert Schema(SOME) != Schema(turned)
    assert Schema({"a": (0, 1)}) != Schema({"a": (0, 2)})
    assert Schema({"a": (0, 1)}) != {"a": (0, 1)}


# How it is written down.


def test_json_brings_the_same_schema_back_in_its_order():
    again = Schema.from_json(json.loads(json.dumps(Schema(SOME).to_json())))
    assert again == Schema(SOME)
    assert again.names == list(SOME)


def test_toml_brings_the_same_schema_back_in_its_order(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(Schema(SOME).to_toml(), encoding="utf-8")
    again = Schema.read(path)
    assert again == Schema(SOME)
    assert again.names == list(SOME)
    for name, entry in again.columns.items():
        if isinstance(entry, Category):  # 1 and True are equal, and not the same in a file
            assert list(map(type, entry.categories)) == list(
                map(type, Schema(SOME).columns[name].categories)
            )


def test_toml_may_be_written_by_hand(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(
        'age = { range = [0, 100] }\njob = ["a", "b"]\npay = "private"\n'
        'born = { first = 1900-01-01, last = "2020-01-01" }\n'
    )
    wanted = {"age": (0, 100), "job": ["a", "b"], "pay": "private"}
    assert Schema.read(path) == Schema({**wanted, "born": Date("1900-01-01", "2020-01-01")})
    path.write_text('[columns]\ncolumns = "private"\n')
    assert Schema.read(path).names == ["columns"]


@pytest.mark.parametrize(
    "text",
    [
        "age = { range = [0] }",
        "age = { range = [0, 1, 2] }",
        "age = { range = 5 }",
        'age = { range = ["a", "b"] }',
        "age = { first = 5, last = 6 }",
        'age = { first = "2000-01-01" }',
        "age = { low = 0, high = 1 }",
        "age = 5",
        "columns = 5",
        "age = {",
        "",
    ],
)
def test_a_file_that_says_nothing_is_refused(tmp_path, text):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="Expected"):
        Schema.read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    refused(lambda: Schema.read(tmp_path / "none.toml"), r"none\.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match=r"bytes\.toml"):
        Schema.read(tmp_path / "bytes.toml")


def test_what_is_written_is_toml_of_its_own():
    text = Schema({"a": ["\x00\x1f\u2028"]}).to_toml()
    assert tomllib.loads(text) == {"columns": {"a": ["\x00\x1f\u2028"]}}


# Private columns hold what the table says.


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ([1, None, 2.5], "numbers"),
        ([Decimal("1.5"), None, 2], "numbers"),
        (np.array([1, 2], dtype=np.int8), "numbers"),
        ([True, None], "categories"),
        (np.array([True, False]), "categories"),
        (["a", None], "categories"),
        (np.array(["a", "b"]), "categories"),
        ([datetime.date(2020, 1, 1), pd.NaT, None], "dates"),
        ([np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01")], "dates"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "dates"),
    ],
)
def test_private_columns_hold_what_their_types_say(values, holds):
    schema = Schema({"b": (0, 1), "a": "private"})
    made = schema.for_table({"a": values})
    assert made.columns["a"] == Private(holds)
    assert made.columns["b"] == Number(0.0, 1.0)
    assert made.names == ["b", "a"]
    assert schema.columns["a"] == Private()


@pytest.mark.parametrize("values", [[1, "a"], [True, 1.5], [datetime.date(2020, 1, 1), 1], [[1]]])
def test_a_private_column_that_mixes_types_is_refused(values):
    refused(lambda: Schema({"a": "private"}).for_table({"a": values}), "'a'.*no mixture")


def test_what_a_private_column_is_said_to_hold_is_not_looked_at():
    made = Schema({"a": "private dates"}).for_table({"a": [1, "x"]})
    assert made.columns["a"] == Private("dates")


@pytest.mark.parametrize("values", [[], [None, None], [np.nan, None]])
def test_a_private_column_without_a_value_does_not_say_what_it_holds(values):
    """One more row would say something else, and the shape of all that is released with it."""
    refused(lambda: Schema({"a": "private"}).for_table({"a": values}), "'a'")


# Numbers.

ODD_NUMBERS = [
    (1, 1.0),
    (True, 1.0),
    (np.bool_(1), 1.0),
    (np.float16(0.1), float(np.float16(0.1))),
    (np.float32(0.1), float(np.float32(0.1))),
    (Decimal("0.1"), 0.1),
    (Fraction(1, 3), 1 / 3),
    (2**53 + 1, 2.0**53),
    (10**400, LARGEST),
    (-(10**400), -LARGEST),
    (np.inf, LARGEST),
    (-np.inf, -LARGEST),
    (1.7e308, LARGEST),
    (None, MISSING),
    (np.nan, MISSING),
    (pd.NA, MISSING),
    (pd.NaT, MISSING),
    (Decimal("NaN"), MISSING),
]


@pytest.mark.parametrize(("value", "key"), ODD_NUMBERS, ids=[repr(each) for each, _ in ODD_NUMBERS])
def test_a_number_is_its_float64(value, key):
    assert keys((0, 1), [value]) == [key]


def test_no_number_is_taken_for_a_missing_one():
    assert keys((0, 1), [MISSING, 2 * MISSING, -MISSING, None]) == [
        LARGEST,
        LARGEST,
        -LARGEST,
        MISSING,
    ]


def test_a_nan_that_signals_is_missing():
    assert keys((0, 1), [Decimal("sNaN")]) == [MISSING]


NO_NUMBERS = [
    ["4711"],
    [1.0, "4711"],
    [b"4711"],
    [1 + 4711j],
    [datetime.date(4711, 1, 1)],
    [np.timedelta64(4711, "s")],
    [np.timedelta64(4711, "ns")],
    [pd.Timedelta(4711)],
    [[4711]],
    [Odd()],
    np.array(["4711"]),
    np.array([b"4711"]),
    np.array([4711j]),
    np.array(["4711-01-01"], dtype="datetime64[s]"),
    np.array([4711], dtype="timedelta64[s]"),
]


@pytest.mark.parametrize("values", NO_NUMBERS, ids=lambda each: repr(each)[:30])
def test_what_is_no_number_is_refused_and_not_quoted(values):
    said = refused(lambda: keys((0, 1), values), "column 'a' to hold numbers")
    assert "4711" not in said


# Dates.

SECONDS = 1_583_064_000  # 2020-03-01 12:00 UTC
INSTANTS = [
    datetime.datetime(2020, 3, 1, 12),  # noqa: DTZ001
    datetime.datetime(2020, 3, 1, 12, 0, 0, 999_999),  # noqa: DTZ001
    datetime.datetime(2020, 3, 1, 12, tzinfo=UTC),
    datetime.datetime(2020, 3, 1, 14, tzinfo=EAST),
    pd.Timestamp("2020-03-01 12:00:00.999999999"),
    pd.Timestamp("2020-03-01 13:00", tz="Europe/Berlin"),
    np.datetime64("2020-03-01T12"),
    np.datetime64("2020-03-01T12:00:00.999999999"),
    "2020-03-01T12:00:00",
    "2020-03-01 12:00",
    "2020-03-01T14:00:00+02:00",
    "2020-03-01T12:00:00Z",
    np.str_("2020-03-01T12:00:00.5"),
]
RANGE = Date("2000-01-01", "2030-01-01")


@pytest.mark.parametrize("value", INSTANTS, ids=repr)
def test_an_instant_is_its_second_however_it_is_written(value):
    assert keys(RANGE, [value]) == [SECONDS]
    assert keys(Private("dates"), [value]) == [SECONDS]
    frame = pd.DataFrame({"a": pd.Series([value], dtype=object)})
    assert Schema({"a": RANGE}).keys(frame)[0, 0] == SECONDS


def test_instants_of_all_kinds_stand_in_one_column():
    mixed = [*INSTANTS, datetime.date(2020, 3, 1), None, pd.NaT, np.datetime64("NaT"), np.nan]
    wanted = [SECONDS] * len(INSTANTS) + [SECONDS - 43_200] + [MISSING] * 4
    assert keys(RANGE, mixed) == wanted


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_dates_of_numpy_are_the_same_in_any_unit(unit):
    days = np.array(["1969-12-31", "2020-03-01", "NaT"], dtype=f"datetime64[{unit}]")
    wanted = [-86_400, SECONDS - 43_200, MISSING]
    assert keys(RANGE, days) == wanted
    assert keys(RANGE, list(days)) == wanted
    if unit in {"s", "ms", "us", "ns"}:
        frame = pd.DataFrame({"a": days})
        assert frame["a"].dtype == days.dtype
        assert Schema({"a": RANGE}).keys(frame)[:, 0].tolist() == wanted


def test_years_and_months_begin_with_their_first_second():
    assert keys(RANGE, np.array(["2020"], dtype="datetime64[Y]")) == [1_577_836_800]
    assert keys(RANGE, np.array(["2020-03"], dtype="datetime64[M]")) == [SECONDS - 43_200]


@pytest.mark.parametrize(
    "before", [np.datetime64(-1, "ns"), pd.Timestamp(-1), pd.Timestamp(-1, tz="UTC")], ids=repr
)
def test_parts_of_a_second_are_cut_towards_the_past(before):
    assert keys(RANGE, [before]) == [-1]
    assert keys(RANGE, pd.Series([before])) == [-1]
    arrow = pa.table({"a": pa.array([-1], pa.timestamp("ns"))})
    polars = pl.DataFrame({"a": pl.Series([-1]).cast(pl.Datetime("ns"))})
    for table in (arrow, polars):
        assert Schema({"a": RANGE}).keys(table)[0, 0] == -1


def frames_of_dates():
    noon = datetime.datetime(2020, 3, 1, 12)  # noqa: DTZ001
    there = datetime.datetime(2020, 3, 1, 14, tzinfo=EAST)
    berlin = pd.Series([pd.Timestamp("2020-03-01 13:00", tz="Europe/Berlin"), pd.NaT])
    return {
        "pandas": pd.DataFrame({"a": [noon, None]}),
        "pandas, a time zone": pd.DataFrame({"a": berlin}),
        "pandas, another unit": pd.DataFrame({"a": berlin.astype("datetime64[s, Asia/Tokyo]")}),
        "pandas, arrow": pd.DataFrame(
            {"a": pd.Series([noon, None], dtype="timestamp[us][pyarrow]")}
        ),
        "pandas, arrow and a time zone": pd.DataFrame(
            {"a": pd.Series([there, None], dtype="timestamp[ns, tz=UTC][pyarrow]")}
        ),
        "polars": pl.DataFrame({"a": [noon, None]}),
        "polars, a time zone": pl.DataFrame(
            {"a": pl.Series([there, None]).cast(pl.Datetime("ms", "Asia/Tokyo"))}
        ),
        "arrow": pa.table({"a": pa.array([noon, None])}),
        "arrow, a time zone": pa.table({"a": pa.array([there, None], pa.timestamp("s", "+02:00"))}),
        "texts": pl.DataFrame({"a": ["2020-03-01T14:00+02:00", None]}),
        "categories of texts": pd.DataFrame({"a": pd.Categorical(["2020-03-01T12:00", None])}),
    }


@pytest.mark.parametrize("name", frames_of_dates())
def test_dates_of_frames_are_the_same_seconds(name):
    table = frames_of_dates()[name]
    assert Schema({"a": RANGE}).keys(table)[:, 0].tolist() == [SECONDS, MISSING]


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"a": [datetime.date(2020, 3, 1), None]}),
        pa.table({"a": [datetime.date(2020, 3, 1), None]}),
        pa.table({"a": pa.array([datetime.date(2020, 3, 1), None], pa.date64())}),
        pd.DataFrame({"a": pd.Series([datetime.date(2020, 3, 1), None], dtype="date32[pyarrow]")}),
    ],
    ids=["polars", "arrow", "arrow, 64 bits", "pandas"],
)
def test_days_of_frames_are_their_first_second(table):
    assert Schema({"a": RANGE}).keys(table)[:, 0].tolist() == [SECONDS - 43_200, MISSING]


def test_far_dates_with_a_time_zone_are_those_without_one():
    """Databases write 9999-12-31 for never: nanoseconds do not reach so far."""
    never = pd.Series(["2020-03-01T12:00", "9999-12-31"]).astype("datetime64[s]")
    plain = Schema({"a": RANGE}).keys(pd.DataFrame({"a": never}))
    assert plain[:, 0].tolist() == [SECONDS, 253_402_214_400]
    zoned = pd.DataFrame({"a": never.dt.tz_localize("UTC")})
    np.testing.assert_array_equal(Schema({"a": RANGE}).keys(zoned), plain)
    objects = pd.DataFrame({"a": zoned["a"].astype(object)})
    np.testing.assert_array_equal(Schema({"a": RANGE}).keys(objects), plain)


NO_DATES = [
    ["4711"],
    ["the 3rd of May 4711"],
    [""],
    [4711],
    [47.11],
    [True],
    [datetime.time(0, 47, 11)],
    [datetime.timedelta(4711)],
    [b"4711-01-01"],
    [[4711]],
    [RANGE],
    np.array([4711]),
    np.array([47.11]),
    np.array([b"4711-01-01"]),
    np.array([4711], dtype="timedelta64[s]"),
]


@pytest.mark.parametrize("values", NO_DATES, ids=lambda each: repr(each)[:30])
def test_what_is_no_date_is_refused_and_not_quoted(values):
    said = refused(lambda: keys(RANGE, values), "column 'a' to hold dates")
    assert "4711" not in said


# Categories.


def test_categories_are_known_by_their_place_on_the_list():
    assert keys(["b", "a"], ["a", "b", "c", None, "a"]) == [1, 0, -1, MISSING, 1]
    assert keys([3, 1, 2.5], [1, 2.5, 7, np.nan, 3]) == [1, 2, -1, MISSING, 0]


@pytest.mark.parametrize("one", [1, 1.0, True, np.int8(1), np.float32(1), np.bool_(1)], ids=repr)
def test_one_is_one_whatever_its_type(one):
    for listed in ([0, 1], [0.0, 1.0], [False, True]):
        assert keys(listed, [one, one]) == [1, 1]
        assert keys(listed, np.array([one, 0])) == [1, 0]
    assert keys(Private("categories"), [one]) == [place_of("number 1")]


def test_texts_are_compared_as_they_are():
    listed = ["a", "A", " a", "1", "nan", "None"]
    assert keys(listed, listed) == [0, 1, 2, 3, 4, 5]
    assert keys(listed, ["a ", "NaN", "1.0"]) == [-1, -1, -1]
    assert keys(["e\u0301"], ["\u00e9"]) == [-1]


class Word(str, enum.Enum):  # noqa: UP042 (whose members are written by their names)
    """Texts that are members of an enum."""

    SHORT = "a"
    LONG = "abc"


def test_members_of_an_enum_are_the_texts_that_they_are():
    assert keys(["abc", "a"], [Word.SHORT, "a", Word.LONG]) == [1, 1, 0]
    assert keys(list(Word), ["abc", Word.SHORT]) == [1, 0]
    assert keys(Private("categories"), [Word.SHORT]) == keys(Private("categories"), ["a"])
    assert Schema.from_json(Schema({"a": list(Word)}).to_json()) == Schema({"a": ["a", "abc"]})


@pytest.mark.parametrize("values", [[1], [True], [0.5], ["a", 1], np.array([1]), np.array([True])])
def test_numbers_in_the_place_of_texts_are_refused(values):
    refused(lambda: keys(["a", "b"], values), "column 'a' to hold texts, as its list does")


@pytest.mark.parametrize("values", [["1"], [1, "4711"], np.array(["4711"])])
def test_texts_in_the_place_of_numbers_are_refused_and_not_quoted(values):
    said = refused(lambda: keys([0, 1], values), "column 'a' to hold numbers, as its list does")
    assert "4711" not in said


NO_CATEGORIES = [
    [b"4711"],
    [(4711,)],
    [[4711]],
    [{4711}],
    [4711j],
    [Decimal(4711)],
    [Fraction(4711, 2)],
    [datetime.date(4711, 1, 1)],
    np.array([b"4711"]),
    np.array([4711j]),
    np.array(["4711-01-01"], dtype="datetime64[D]"),
    np.array([4711], dtype="timedelta64[s]"),
]


@pytest.mark.parametrize("entry", [["a", "b"], [0, 1], Private("categories")], ids=repr)
@pytest.mark.parametrize("values", NO_CATEGORIES, ids=lambda each: repr(each)[:30])
def test_what_is_no_category_is_refused_and_not_quoted(entry, values):
    said = refused(lambda: keys(entry, values), "column 'a' to hold categories")
    assert "4711" not in said


@pytest.mark.parametrize("odd", [Decimal(1), Fraction(1), 1 + 0j], ids=repr)
def test_what_equals_a_category_and_is_none_is_refused_wherever_it_stands(odd):
    for values in ([odd], [odd, 1], [1, odd]):
        for entry in ([0, 1], Private("categories")):
            refused(lambda entry=entry, values=values: keys(entry, values), "categories")


def test_numbers_of_categories_are_the_same_in_a_column_of_floats():
    """One row without a value makes floats of whole numbers, in pandas."""
    listed = [2**53, 2**60 + 1, 7]
    alone = Schema({"a": listed}).keys(pd.DataFrame({"a": [2**60 + 1, 7]}))
    beside = pd.DataFrame({"a": [2**60 + 1, 7, None]})
    assert beside["a"].dtype == np.float64
    assert Schema({"a": listed}).keys(beside)[:2].tolist() == alone.tolist()


def test_places_of_categories_that_nobody_listed_are_the_same_for_ever():
    """In files: never to be changed. The first bytes of SHA-256 of the name."""
    wanted = {
        "text a": 135,
        "text ": 305,
        "text é": 186,
        "text 🙂": 494,
        "number 1": 327,
        "number 0": 26,
        "number -3": 8,
        "number 2.5": 2,
        "number inf": 260,
    }
    assert {name: place_of(name) for name in wanted} == wanted
    assert PLACES == 512
    values = ["a", "", "é", "🙂", 1, False, -3.0, np.float32(2.5), np.inf]
    assert keys(Private("categories"), values) == list(wanted.values())


def test_a_text_that_is_no_unicode_has_a_place():
    assert 0 <= keys(Private("categories"), ["\ud800"])[0] < PLACES


def test_a_huge_number_among_private_categories_has_a_place_or_is_refused():
    try:
        [place] = keys(Private("categories"), [10**400])
    except InvalidInput:
        return
    assert 0 <= place < PLACES


# Tables.

TABLE = {"n": [1.5, None, 3.0], "c": ["x", None, "y"], "d": ["2020-03-01", None, "2020-03-02"]}
SCHEMA = Schema({"d": RANGE, "c": ["y", "x"], "n": (0, 1)})
KEYS = [
    [SECONDS - 43_200, 1, 1.5],
    [MISSING, MISSING, MISSING],
    [SECONDS + 43_200, 0, 3.0],
]


def tables():
    frame = pd.DataFrame(TABLE)
    structured = np.array(
        list(zip(*TABLE.values(), strict=True)), dtype=[(name, object) for name in TABLE]
    )
    dates = np.array(["2020-03-01", "NaT", "2020-03-02"], dtype="datetime64[D]")
    return {
        "dictionary": TABLE,
        "dictionary of arrays": {"n": np.array([1.5, np.nan, 3]), "c": TABLE["c"], "d": dates},
        "dictionary of series": {name: frame[name] for name in TABLE},
        "pandas": frame,
        "pandas, nullable": frame.convert_dtypes(),
        "pandas, arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas, categories": frame.astype({"c": "category", "d": "category"}),
        "pandas, objects": frame.astype(object),
        "pandas, sparse": frame.astype({"n": pd.SparseDtype(float)}),
        "pandas, rows by other names": frame.set_index(pd.Index([7, 7, 0])),
        "polars": pl.DataFrame(TABLE),
        "polars, categories": pl.DataFrame(TABLE).with_columns(pl.col("c").cast(pl.Categorical)),
        "arrow": pa.table(TABLE),
        "arrow, chunks": pa.concat_tables([pa.table(TABLE)[:1], pa.table(TABLE)[1:]]),
        "arrow, a batch": pa.RecordBatch.from_pydict(TABLE),
        "arrow, a dictionary": pa.table({**TABLE, "c": pa.array(TABLE["c"]).dictionary_encode()}),
        "structured": structured,
        "rows in order": frame[["d", "c", "n"]].to_numpy(),
        "masked": {**TABLE, "n": np.ma.array([1.5, 9, 3], mask=[0, 1, 0])},
        "masked objects": {
            "n": TABLE["n"],
            "c": np.ma.array(["x", "x", "y"], mask=[0, 1, 0]),
            "d": np.ma.array(TABLE["d"], mask=[0, 1, 0]),
        },
    }


@pytest.mark.parametrize("name", tables())
def test_every_table_has_the_same_keys(name):
    np.testing.assert_array_equal(SCHEMA.keys(tables()[name]), KEYS)


@pytest.mark.parametrize("kind", ["numpy", "nullable", "arrow", "polars", "table", "2-d"])
@pytest.mark.parametrize("width", [np.float32, np.float64, np.int8, np.int64, np.uint16, bool])
def test_numbers_of_any_width_are_the_same(kind, width):
    numbers = np.array([0, 1, 1], dtype=width) if width is bool else np.array([0, 1, 100], width)
    if width in {np.float32, np.float64}:
        numbers[0] = np.float32(0.1)
    frame = pd.DataFrame({"a": numbers})
    kinds = {bool: "bool", np.float32: "float32", np.float64: "float64", np.int8: "int8"}
    name = {**kinds, np.int64: "int64", np.uint16: "uint16"}[width]
    nullable = {"bool": "boolean", "uint16": "UInt16"}.get(name, name.capitalize())
    arrow = name.replace("float64", "double").replace("float32", "float")
    table = {
        "numpy": frame,
        "nullable": frame.astype(nullable),
        "arrow": frame.astype(f"{arrow}[pyarrow]"),
        "polars": pl.DataFrame({"a": numbers}),
        "table": pa.table({"a": numbers}),
        "2-d": numbers[:, None],
    }[kind]
    wanted = [float(each) for each in numbers]
    assert Schema({"a": (0, 1)}).keys(table)[:, 0].tolist() == wanted
    listed = Schema({"a": sorted(set(wanted))}).keys(table)[:, 0]
    assert [sorted(set(wanted))[int(each)] for each in listed] == wanted


def test_columns_that_are_not_named_are_not_read():
    table = {**TABLE, "note": [object()] * 7, "n2": None}
    np.testing.assert_array_equal(SCHEMA.keys(table), KEYS)


def test_a_column_that_is_not_there_is_told_by_its_name():
    frame = pd.DataFrame({"age": [4711.0], "salary": [4711.0]})
    for table in (frame, pl.from_pandas(frame), pa.table({"age": [4711], "salary": [4711]})):
        said = refused(lambda table=table: Schema({"Age": (0, 1)}).keys(table), "column 'Age'")
        assert "age, salary" in said
        assert "4711" not in said
    structured = np.zeros(2, dtype=[("age", float)])
    refused(lambda: Schema({"Age": (0, 1)}).keys(structured), "column 'Age'")


def test_a_column_that_is_there_twice_is_refused():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    refused(lambda: Schema({"a": (0, 1)}).keys(frame), "one column 'a'")


def test_columns_of_different_lengths_are_refused():
    schema = Schema({"a": (0, 1), "b": (0, 1)})
    refused(lambda: schema.keys({"a": [1], "b": [1, 2]}), "one value for each row")


@pytest.mark.parametrize(
    "values",
    [np.zeros((3, 2)), np.zeros((3, 1)), np.array(1.0), np.zeros((2, 2), dtype="datetime64[s]")],
    ids=["wide", "one wide", "a number", "dates"],
)
def test_a_column_has_one_value_for_each_row(values):
    entry = RANGE if values.dtype.kind == "M" else (0, 1)
    refused(lambda: Schema({"a": entry}).keys({"a": values}), "'a'")
    refused(lambda: Schema({"a": [0, 1]}).keys({"a": values}), "'a'")


@pytest.mark.parametrize("values", [5, None, "xyx", b"xyx"])
def test_one_value_is_no_column(values):
    refused(lambda: Schema({"a": ["x", "y"]}).keys({"a": values}), "'a'")


@pytest.mark.parametrize(
    "table",
    [None, 5, [{"a": 1}], pd.Series([1.0], name="a"), pd.DataFrame([[1.0]])],
    ids=["none", "number", "rows", "series", "no names"],
)
def test_what_is_no_table_with_names_is_refused(table):
    refused(lambda: Schema({"a": (0, 1)}).keys(table), "names")


@pytest.mark.parametrize("table", [np.zeros(3), np.zeros((3, 1)), np.zeros((3, 2, 2))])
def test_an_array_has_the_columns_of_the_schema(table):
    refused(lambda: Schema({"a": (0, 1), "b": (0, 1)}).keys(table), "2 columns")


def test_a_column_may_have_any_name():
    for name in ("column_names", "columns", "index", "T"):
        frame = pd.DataFrame({name: [0.5]})
        assert Schema({name: (0, 1)}).keys(frame).tolist() == [[0.5]]


def test_a_table_without_rows_has_no_keys():
    for table in ({"d": [], "c": [], "n": []}, pd.DataFrame(TABLE)[:0], pa.table(TABLE)[:0]):
        assert SCHEMA.keys(table).shape == (0, 3)


# What public rows say.


def test_a_guess_rounds_outwards():
    table = {
        "age": [18, 71, None],
        "change": [-3.2, 17.0, 0.0],
        "job": ["b", None, "a"],
        "owner": [True, False, None],
        "born": [datetime.date(1990, 5, 1), None, datetime.date(2001, 2, 3)],
        "rate": [0.012, 0.0345, 0.02],
        "same": [0.0, 0.0, 0.0],
        "none": [None, None, None],
    }
    wanted = {
        "age": (0, 80),
        "change": (-4, 20),
        "job": ["a", "b"],
        "owner": [False, True],
        "born": Date("1990-05-01", "2001-02-04"),
        "rate": (0, 0.04),
        "same": (0, 1),
        "none": "private",
    }
    assert guess(table) == Schema(wanted)
    for other in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        assert guess(other).names == list(table)


@pytest.mark.parametrize("low", [-1234.5, 0.0, 0.07, 3.0])
@pytest.mark.parametrize("width", [1e-3, 1.0, 77.7, 1e9])
def test_a_guess_holds_all_that_it_was_made_of(low, width):
    numbers = np.linspace(low, low + width, 7)
    entry = guess({"a": numbers}).columns["a"]
    assert entry.low <= numbers.min()
    assert entry.high >= numbers.max()
    assert keys(entry, numbers) == numbers.tolist()


def test_a_guess_is_a_schema_for_the_same_table():
    frame = pd.DataFrame(TABLE).assign(d=pd.to_datetime(TABLE["d"]))
    made = guess(frame)
    found = made.keys(frame)
    assert not np.any(found == -1)
    assert Schema.from_json(made.to_json()) == made
    low, high = made.columns["d"].range
    there = found[found[:, 2] != MISSING, 2]
    assert np.all((low <= there) & (there <= high))


@pytest.mark.parametrize(
    "table", [np.zeros((2, 2)), 5, {"a": [1, "x"]}, {"a": [True, "x"]}, {"a": [Odd()]}], ids=repr
)
def test_a_guess_of_what_has_no_type_is_refused(table):
    refused(lambda: guess(table), "Expected")
