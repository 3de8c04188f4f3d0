"""One odd row changes the type, unit or precision of no other row, at any front door.

The law: whatever stands in a table, either it is refused, or the exact sums are those of a table in
which every number was made a float64 by itself. (Libraries make one type of a whole column: one
date in a finer unit, or one text, would otherwise rescale or round everybody's numbers.)
"""

import datetime
import enum
import warnings
from decimal import Decimal
from fractions import Fraction

import duckdb
import narwhals
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import discreet
from discreet import paper
from discreet.errors import DiscreetError
from discreet.kernels import Taylor
from discreet.readers.softmax.rows import of_one_kind
from discreet.shards import Job
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.tables import Rows
from discreet.testing import Silent

pytestmark = pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")

KERNEL = Taylor(2, degree=1, scale=1.0, key_norm=1.0, query_norm=1.0)
MEMORY = {"epsilon": 1.0, "delta": 1e-6, "kernel": KERNEL, "entropy": Silent()}
FIT = {"epsilon": 1.0, "delta": 1e-6, "rows_hint": 100, "entropy": Silent()}

# What most rows hold, and what one of them may.
USUAL = [
    np.float16(0.1),
    np.float32(0.1),
    0.1,
    1,
    True,
    np.int8(1),
    "0.1",
    np.datetime64("2020-03-01"),
    np.timedelta64(1, "D"),
    pd.Timestamp("2020-03-01"),
]
ODD = [
    *USUAL,
    np.longdouble("0.3"),
    np.float64(0.3),
    np.uint64(2**63),
    2**60 + 1,
    10**400,
    b"0.3",
    np.str_("0.3"),
    None,
    float("nan"),
    float("inf"),
    np.datetime64("2020-03-01T00:00"),
    np.datetime64("NaT"),
    np.timedelta64(1, "s"),
    datetime.date(2020, 3, 1),
    datetime.datetime(2020, 3, 1),  # noqa: DTZ001
    pd.NaT,
    pd.NA,
    Decimal("0.3"),
    Fraction(3, 10),
    0.3 + 0j,
    np.ma.masked,
    [0.3],
    {},
]
CONTAINERS = {
    "lists": lambda cells: [[cell, 0.5] for cell in cells],
    "objects": lambda cells: _objects([[cell, 0.5] for cell in cells]),
    "rows that are arrays": lambda cells: [np.array([cell, 0.5]) for cell in cells],
    "rows with a mask": lambda cells: [np.ma.array([cell, 0.5]) for cell in cells],
    "frame": lambda cells: pd.DataFrame({"a": pd.Series(cells), "b": 0.5}),
    "frame of objects": lambda cells: pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": 0.5}),
}


def _objects(rows):
    table = np.empty((len(rows), 2), dtype=object)
    for place, row in enumerate(rows):
        table[place, 0], table[place, 1] = row
    return table


def alone(cell):
    """What a cell is as a float64 by itself."""
    return float(np.array([cell]).astype(np.float64)[0])


def column(table):
    return table["a"] if isinstance(table, pd.DataFrame) else [row[0] for row in table]


def labels(rows):
    return [0, 1] * (len(rows) // 2) + [0] * (len(rows) % 2)


def arrays(rows):
    """Rows that a door takes which wants arrays: frames go through `Rows`."""
    return rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows


def in_a_table(rows):
    cells = (
        column(rows) if isinstance(rows, pd.DataFrame) else pd.Series(column(rows), dtype=object)
    )
    frame = pd.DataFrame({"a": cells, "b": 0.5})
    return discreet.build(Rows(frame, keys="a,b", values="b"), **MEMORY)


def classifier(rows):
    estimator = PrivateClassifier(
        1.0, 1e-6, bounds=(0, 1), classes=[0, 1], rows_hint=100, entropy=Silent()
    )
    return estimator.fit(rows, labels(rows)).release_


def regressor(reader):
    def fit(rows):
        estimator = PrivateRegressor(
            1.0,
            1e-6,
            bounds=(0, 1),
            target_bounds=(0, 1),
            rows_hint=100,
            reader=reader,
            entropy=Silent(),
        )
        return estimator.fit(np.full((len(rows), 1), 0.5), column(rows)).release_

    return fit


def added(rows):
    builder = discreet.Builder(**{k: v for k, v in MEMORY.items() if k != "entropy"})
    builder.add(arrays(rows), np.ones((len(rows), 1)))
    [memory] = builder.release(entropy=Silent())
    return memory


def in_shards(rows):
    options = {k: v for k, v in MEMORY.items() if k != "entropy"}
    job = Job(key_dim=2, value_dim=1, **options)
    part = job.partial((arrays(rows), np.ones((len(rows), 1))), shard="one")
    return job.release([part], expected=["one"], entropy=Silent())


class Tree:
    """A structure of the paper, with the bits that it has released."""

    def __init__(self, rows):
        tree = paper.DPTreeDistance(
            column(rows) if isinstance(rows, pd.DataFrame) else [each[0] for each in rows],
            np.ones(len(rows)),
            p=1,
            upper=1.0,
            weight_bound=1.0,
            epsilon=1.0,
            delta=1e-5,
            entropy=Silent(),
        )
        self.answers = tree.query(np.linspace(0, 1, 9))


DOORS = {
    "keys of build": lambda rows: discreet.build(arrays(rows), np.ones((len(rows), 1)), **MEMORY),
    "values of build": lambda rows: discreet.build(np.ones((len(rows), 2)), rows, **MEMORY),
    "chunks": lambda rows: discreet.build([(arrays(rows), np.ones((len(rows), 1)))], **MEMORY),
    "Builder": added,
    "Job": in_shards,
    "Rows": in_a_table,
    "keys of least squares": lambda rows: discreet.least_squares(
        arrays(rows), np.ones((len(rows), 1)), **FIT
    ),
    "keys of softmax regression": lambda rows: discreet.softmax_regression(
        arrays(rows), labels(rows), classes=[0, 1], **FIT
    ),
    "X of a classifier": classifier,
    "y of a regressor, averages": regressor("average"),
    "y of a regressor, least squares": regressor("least_squares"),
    "a tree of the paper": Tree,
}


def bits(made):
    """The exact sums that were released without noise."""
    if isinstance(made, Tree):
        return [made.answers]
    return [made.released.state, *made.released.others]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@settings(max_examples=30, deadline=None)
@given(
    usual=st.sampled_from(USUAL),
    odd=st.sampled_from(ODD),
    container=st.sampled_from(list(CONTAINERS)),
    first=st.booleans(),
)
def test_an_odd_row_is_refused_or_moves_nobody_else(door, usual, odd, container, first):
    cells = [odd, *[usual] * 4] if first else [*[usual] * 4, odd]
    if door is in_a_table and "frame" not in container:
        container = "frame of objects"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, while the table is made
            table = CONTAINERS[container](cells)
    except Exception:  # noqa: BLE001 (there is no such table)
        return
    try:
        made = door(table)
    except DiscreetError as error:
        said = str(error)
    else:
        said = ""
        plain = np.array([[alone(cell), 0.5] for cell in cells])
        for one, other in zip(bits(made), bits(door(plain)), strict=True):
            np.testing.assert_array_equal(one, other)
    assert "0.3" not in said
    assert "2020" not in said


PLAIN = [cell for cell in USUAL if isinstance(cell, bool | int | float | np.number)][:6]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("odd", PLAIN, ids=[type(cell).__name__ for cell in PLAIN])
def test_plain_numbers_of_any_width_are_taken_together(door, odd):
    if door is in_a_table:
        pytest.skip("a column has a type there")
    table = [[np.float16(0.1), 0.5]] * 4 + [[odd, 0.5]]
    plain = np.array([[alone(row[0]), 0.5] for row in table])
    for one, other in zip(bits(door(table)), bits(door(plain)), strict=True):
        np.testing.assert_array_equal(one, other)


KINDS_OF_LABELS = [
    0,
    1.0,
    True,
    np.int8(1),
    "1",
    np.str_("0"),
    b"1",
    None,
    np.datetime64("2020-01"),
]


def softmax(given, classes):
    keys = np.linspace(0, 1, 2 * len(given)).reshape(-1, 2)
    return discreet.softmax_regression(keys, given, classes=classes, **FIT)


def fitted(given, classes):
    keys = np.linspace(0, 1, 2 * len(given)).reshape(-1, 2)
    estimator = PrivateClassifier(
        1.0, 1e-6, bounds=(0, 1), classes=classes, rows_hint=100, entropy=Silent()
    )
    return estimator.fit(keys, given).release_


@pytest.mark.parametrize("door", [softmax, fitted])
@settings(max_examples=30, deadline=None)
@given(
    usual=st.sampled_from(KINDS_OF_LABELS),
    odd=st.sampled_from(KINDS_OF_LABELS),
    classes=st.sampled_from([[0, 1], ["0", "1"], [0.0, 1.0], [False, True]]),
    as_objects=st.booleans(),
)
def test_an_odd_label_is_refused_or_changes_no_other(door, usual, odd, classes, as_objects):
    given = [usual] * 5 + [odd]
    try:
        made = door(np.array(given, dtype=object) if as_objects else given, classes)
    except DiscreetError:
        return
    places = np.array([classes.index(label) for label in given])
    np.testing.assert_array_equal(bits(made)[0], bits(door(np.array(classes)[places], classes))[0])


def test_labels_of_one_row_that_are_texts_do_not_make_texts_of_the_others():
    for door in (softmax, fitted):
        with pytest.raises(DiscreetError, match="one kind"):
            door([0, 1, 0, 1, "1"], ["0", "1"])
        with pytest.raises(DiscreetError, match="one kind"):
            door([b"0", b"1", "1"], ["0", "1"])


def test_masks_are_refused_wherever_they_hide():
    masked = np.ma.array(np.full((4, 2), 0.5), mask=np.eye(4, 2))
    for name in DOORS.keys() - {"Rows"}:  # pandas makes numbers of masks before we see them
        for table in (masked, list(masked)):
            with pytest.raises(DiscreetError):
                DOORS[name](table)


def sums(rows):
    return discreet.build(rows, **MEMORY).released.state


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        (np.float16(0.1), 1),
        ([np.float16(0.1)], [1]),
        (np.array([0.1], np.float16), [1]),
        (np.array([0.1], np.float32), np.array([0.1])),
        ("0.1", 0.1),
        (0.1, None),
    ],
)
def test_a_column_of_objects_has_one_type_or_is_refused(usual, odd):
    """Arrow makes whole numbers of float16 if there is one whole number among them: 0.1 is 0."""
    for cells in ([usual] * 4 + [odd], [odd] + [usual] * 4):
        frame = pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": 0.5, "note": "x"})
        for source in (frame, [frame], iter([frame])):
            with pytest.raises(DiscreetError, match="one type"):
                list(Rows(source, keys="a", values="b"))


class Subclass(pd.DataFrame):
    """As geopandas has one."""


class Wrapped:
    """Something around a frame."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, schema=None):
        return self.frame.__arrow_c_stream__(schema)


@pytest.mark.parametrize("wrap", [narwhals.from_native, Subclass, Wrapped])
def test_columns_of_objects_are_found_in_whatever_holds_a_frame(wrap):
    cells = pd.Series([np.float16(0.1)] * 4 + [1], dtype=object)
    frame = pd.DataFrame({"a": cells, "b": 0.5})
    with pytest.raises(DiscreetError):
        list(Rows(wrap(frame), keys="a", values="b"))


def test_the_index_of_a_frame_is_a_column_like_others():
    def read(index):
        return Rows(pd.DataFrame({"b": [0.5] * 5}, index=index), keys="a", values="b")

    mixed, alike = (
        pd.Index([np.float16(0.5)] * 4 + [last], dtype=object, name="a")
        for last in (1, np.float16(1))
    )
    # pandas makes float64 of both, without loss; Arrow would have cut off the fractions.
    levels = pd.MultiIndex.from_arrays([mixed, range(5)], names=["a", "n"])
    for index in (alike, mixed, levels):
        [(keys, _)] = read(index)
        assert keys[:, 0].tolist() == [0.5] * 4 + [1]
    with pytest.raises(DiscreetError, match="one type"):
        list(read(pd.Index([0.5] * 4 + ["0.5"], dtype=object, name="a")))


def test_one_column_of_pandas_is_no_table():
    series = pd.Series([{"a": np.float16(0.5), "b": 1.0}] * 4 + [{"a": 1, "b": 1.0}])
    for source in (series, [series], narwhals.from_native(series, series_only=True)):
        with pytest.raises(DiscreetError):
            list(Rows(source, keys="a", values="b"))


class Word(str, enum.Enum):  # noqa: UP042 (numpy writes its members' names)
    """Texts that numpy would write as "Word.A", and cut off."""

    SHORT = "a"
    LONG = "abc"
    LONGER = "abcde"


@pytest.mark.parametrize("last", [Word.LONG, Word.LONGER])
def test_members_of_an_enum_are_the_texts_that_they_are(last):
    assert of_one_kind([Word.LONG] * 3 + [last]).tolist() == ["abc"] * 3 + [last.value]
    given = [Word.LONG, Word.SHORT] * 3 + [last]
    for door in (softmax, fitted):
        made = door(given, list(Word))
        plain = door([each.value for each in given], ["a", "abc", "abcde"])
        np.testing.assert_array_equal(bits(made)[0], bits(plain)[0])


@pytest.mark.parametrize(
    "cells",
    [
        pd.Categorical.from_codes([0] * 4 + [1], pd.Index([np.float16(0.1), 1], dtype=object)),
        [np.array([np.float16(0.1)], dtype=object)] * 4 + [np.array([1], dtype=object)],
        [{np.float16(0.1)}] * 4 + [{1}],
        [{1: np.float16(0.1)}.values()] * 4 + [{1: 1}.values()],
    ],
    ids=["categories", "arrays of objects", "sets", "views"],
)
def test_types_are_found_in_whatever_a_cell_is(cells):
    column = cells if isinstance(cells, pd.Categorical) else pd.Series(cells, dtype=object)
    with pytest.raises(DiscreetError):
        list(Rows(pd.DataFrame({"a": column, "b": 0.5}), keys="a", values="b"))


def test_categories_of_one_type_are_taken():
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, 1]), "b": 0.5})
    [(keys, _)] = Rows(frame, keys="a", values="b")
    assert keys[:, 0].tolist() == [1, 2, 1]


def test_types_that_are_guessed_from_rows_are_refused(tmp_path):
    """One id that is no number makes texts of all, and 1 and 01 are two records then."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b,g\n1,1,7\n1,1,07\n")
    guessed = ds.dataset(path, format="csv")
    for source in (
        guessed,
        guessed.filter(ds.field("b") > 0),
        ds.UnionDataset(guessed.schema, [guessed]),
    ):
        with pytest.raises(DiscreetError, match="guessed from the rows"):
            Rows(source, keys="a", values="b", groups="g")
    said = csv.open_csv(path, convert_options=csv.ConvertOptions(column_types={"g": pa.string()}))
    [(_, _, groups)] = Rows(said, keys="a", values="b", groups="g")
    assert sorted(groups) == ["07", "7"]


def test_ids_that_are_read_off_folders_are_texts(tmp_path):
    for name in ("g=1", "g=01"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"a": [0.1], "b": [0.5]}), tmp_path / name / "rows.parquet")
    numbers = ds.dataset(tmp_path, partitioning="hive")
    for source in (numbers, numbers.filter(ds.field("b") > 0)):
        with pytest.raises(DiscreetError, match="names of folders"):
            list(Rows(source, keys="a", values="b", groups="g"))
        with pytest.raises(DiscreetError, match="names of folders"):
            list(Rows(source, keys="a", labels="g"))
        assert len(list(Rows(source, keys="a,g", values="b"))) == 1
    texts = ds.partitioning(pa.schema([("g", pa.string())]), flavor="hive")
    [(_, _, groups)] = Rows(
        ds.dataset(tmp_path, partitioning=texts), keys="a", values="b", groups="g"
    )
    assert sorted(groups) == ["01", "1"]


def test_databases_quote_no_row():
    frame = pd.DataFrame({"a": ["0.5"] * 5 + ["HIV positive"], "b": 0.5})
    relation = duckdb.sql("select cast(a as double) a, b from frame")
    with pytest.raises(DiscreetError) as caught:
        list(Rows(relation, keys="a", values="b"))
    assert "HIV" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert len(frame) == 6


def test_columns_that_are_not_asked_for_may_hold_anything():
    notes = pd.Series(["x", None, 3, 0.5], dtype=object)
    frame = pd.DataFrame({"a": 0.1, "b": 0.5, "note": notes})
    for source in (frame, [frame], iter([frame])):
        [(keys, _)] = Rows(source, keys="a,b", values="b")
        assert keys.shape == (4, 2)


@pytest.mark.parametrize("narrow", [pa.float16(), pa.float32(), pa.int64()])
def test_the_first_file_of_a_dataset_rounds_no_other(tmp_path, narrow):
    one = np.ones(1).astype(narrow.to_pandas_dtype())
    first = pa.table({"a": pa.array(one, narrow), "b": [0.5]})
    others = pa.table({"a": [0.1] * 4, "b": [0.5] * 4})
    for name, table in (("1.parquet", first), ("2.parquet", others)):
        pq.write_table(table, tmp_path / name)
    whole = ds.dataset(tmp_path)
    alone_ = sums(Rows(others, keys="a,b", values="b"))
    one_ = sums(Rows(first, keys="a,b", values="b"))
    np.testing.assert_array_equal(sums(Rows(whole, keys="a,b", values="b")), alone_ + one_)
    above = ds.field("b") > 0
    both = ds.UnionDataset(whole.schema, [whole])
    beside = ds.dataset([ds.dataset(first), whole])  # one of them in memory: no files by themselves
    for read_at_once in (whole.filter(above), both.filter(above), beside):
        with pytest.raises(DiscreetError, match="one type in all files"):
            list(Rows(read_at_once, keys="a,b", values="b"))
