"""Rows of every kind of source: the same arrays, in chunks, with every record in one of them."""

import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from data import unit_rows
from pyarrow import dataset, parquet
from safetensors.numpy import save_file
from watching import parquet_opens

import discreet
from discreet.errors import InvalidInput
from discreet.tables import Rows
from discreet.tables import rows as reading
from discreet.testing import Silent

KEYS, VALUES = unit_rows(60, 4).astype(np.float32), unit_rows(60, 2, seed=1)
PEOPLE = np.arange(60) * 7 % 11
NAMES = np.array([f"né {each}" for each in PEOPLE])
TABLE = pa.table(
    {
        "keys": list(KEYS),
        "values": list(VALUES),
        "x": VALUES[:, 0],
        "y": VALUES[:, 1],
        "label": NAMES,
        "number": PEOPLE,
    }
)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part in range(3):
        path = Path("data", f"day={part}", f"part-{part}.parquet")
        path.parent.mkdir(parents=True)
        parquet.write_table(TABLE.slice(20 * part, 20), path, row_group_size=7)
    Path("data", "_SUCCESS").touch()
    Path("data", ".hidden").mkdir()
    arrays = {"keys": KEYS, "values": VALUES, "x": VALUES[:, 0].copy(), "y": VALUES[:, 1].copy()}
    np.savez("all.npz", label=NAMES, number=PEOPLE, **arrays)
    save_file({**arrays, "number": PEOPLE, "label": PEOPLE}, "all.safetensors")


def relation():
    return duckdb.from_arrow(TABLE)


FILES = {
    "directory": lambda: "data",
    "pattern": lambda: "data/*/*.parquet",
    "deep pattern": lambda: Path("data/**"),
    "list": lambda: [f"data/day={part}/part-{part}.parquet" for part in range(3)],
    "npz": lambda: "all.npz",
    "safetensors": lambda: "all.safetensors",
}
AGAIN = {
    **FILES,
    "table": lambda: TABLE,
    "batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "tables": lambda: [TABLE.slice(0, 13), TABLE.slice(13, 0), TABLE.slice(13)],
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.from_arrow(TABLE),
    "duckdb": relation,
    "dataset": lambda: dataset.dataset("data"),
    "filtered": lambda: dataset.dataset("data").filter(dataset.field("number") >= 0),
    "in memory": lambda: dataset.dataset(TABLE),
}
ONCE = {
    "reader": lambda: TABLE.to_reader(max_chunksize=9),
    "generator": lambda: (TABLE.slice(start, 9) for start in range(0, 60, 9)),
    "mixed": lambda: iter([TABLE.slice(0, 30).to_batches()[0], TABLE.slice(30).to_pandas()]),
}
SOURCES = {**AGAIN, **ONCE}


def whole(made):
    """Return all chunks as one."""
    return [np.concatenate(each) for each in zip(*made, strict=True)]


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("values", ["values", "x,y", ["x", "y"]])
def test_every_source_gives_the_same_rows(kind, values):
    rows = Rows(SOURCES[kind](), keys="keys", values=values)
    rows.check()
    assert (rows.key_dim, rows.value_dim, rows.by_record) == (4, 2, False)
    assert rows.count in (60, None)
    keys, got = whole(rows)
    np.testing.assert_array_equal(keys, KEYS, strict=True)
    np.testing.assert_array_equal(got, VALUES, strict=True)


@pytest.mark.parametrize("kind", SOURCES)
def test_labels_and_groups_come_with_the_rows(kind):
    texts = kind != "safetensors"
    rows = Rows(SOURCES[kind](), keys="x,y", labels="label", groups="number")
    assert rows.has_texts is texts
    keys, labels, groups = whole(rows)
    np.testing.assert_array_equal(keys, VALUES)
    np.testing.assert_array_equal(labels, NAMES if texts else PEOPLE)
    np.testing.assert_array_equal(groups, PEOPLE)
    assert labels.dtype.kind == ("U" if texts else "i")


@pytest.mark.parametrize("kind", AGAIN)
def test_what_is_there_can_be_read_again(kind):
    rows = Rows(AGAIN[kind](), keys="keys", values="values", groups="number")
    first, second = whole(rows), whole(rows)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", ONCE)
@pytest.mark.parametrize("groups", [None, "number"])
def test_a_stream_is_read_once(kind, groups):
    rows = Rows(ONCE[kind](), keys="keys", values="values", groups=groups)
    list(rows)
    for again in (rows, rows.chunks()):
        with pytest.raises(InvalidInput, match="read once"):
            list(again)


def test_chunks_are_cut_and_joined_to_one_size(monkeypatch):
    monkeypatch.setattr(reading, "_NUMBERS", 6 * 25)
    for given in (TABLE, [TABLE.slice(start, 2) for start in range(0, 60, 2)], "data"):
        sizes = [len(keys) for keys, _ in Rows(given, keys="keys", values="values")]
        assert max(sizes) <= 25
        assert len(sizes) <= 5
    monkeypatch.setattr(reading, "_NUMBERS", 1)
    assert {len(keys) for keys, _ in Rows("data", keys="keys", values="values")} == {1}


@pytest.mark.parametrize("groups", ["number", "label"])
def test_every_record_lies_in_one_chunk(monkeypatch, groups):
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 60 * 48 // 4)
    monkeypatch.setattr(reading, "_NUMBERS", 50)
    made = list(Rows("data", keys="keys", values="values", groups=groups))
    assert len(made) > 1
    met = [set(each.tolist()) for _, _, each in made]
    assert all(one.isdisjoint(two) for one, two in itertools.combinations(met, 2))
    keys, values, _ = whole(made)
    assert sorted(map(tuple, keys)) == sorted(map(tuple, KEYS))
    assert sorted(map(tuple, values)) == sorted(map(tuple, VALUES))


def test_a_stream_with_groups_that_is_too_long_says_what_to_do(monkeypatch):
    monkeypatch.setattr(reading, "_BYTES_HELD", 500)
    with pytest.raises(InvalidInput, match="Parquet files first"):
        list(Rows(TABLE.to_reader(), keys="keys", values="values", groups="number"))


def test_rows_that_change_between_passes_are_refused(monkeypatch):
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 60 * 48 // 4)
    tables = [TABLE]
    made = iter(Rows(tables, keys="keys", values="values", groups="number"))
    next(made)
    tables.append(TABLE)
    with pytest.raises(InvalidInput, match="they have changed"):
        list(made)


def test_ids_with_and_without_a_sign_are_the_same_ids(monkeypatch):
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 100)
    ids = pa.array(PEOPLE.astype(np.uint64))
    unsigned = TABLE.set_column(TABLE.schema.get_field_index("number"), "number", ids)
    tables = [TABLE, unsigned.slice(0, 30), TABLE.slice(30)]
    made = list(Rows(tables, keys="keys", values="values", groups="number"))
    assert len(made) > 3
    for _, _, of_row in made:
        for each in set(of_row.tolist()):
            assert of_row.tolist().count(each) == 2 * np.sum(each == PEOPLE)
    with_sign = reading._mixed(np.array([5, -7]))
    np.testing.assert_array_equal(reading._mixed(np.array([5], np.uint16)), with_sign[:1])
    np.testing.assert_array_equal(reading._mixed(np.array([5, -7], object)), with_sign)


def test_parts_are_files_that_can_be_sent(monkeypatch):
    rows = Rows("data", keys="keys", values="values")
    parts = pickle.loads(pickle.dumps(rows.parts()))
    assert [each.name for each in parts] == [f"day={part}/part-{part}.parquet" for part in range(3)]
    assert [each.count for each in parts] == [20, 20, 20]
    assert parts[0].parts() == [parts[0]]
    np.testing.assert_array_equal(whole(parts[2])[0], KEYS[40:])
    fragments = Rows(dataset.dataset("data"), keys="keys", values="values").parts()
    assert [each.name for each in fragments] == [each.name for each in parts]
    for given in (TABLE, TABLE.to_reader(), [TABLE]):
        alone = Rows(given, keys="keys", values="values")
        assert alone.parts() == [alone]
        with pytest.raises(TypeError, match="private"):
            pickle.dumps(alone)


@pytest.mark.parametrize("groups", [None, "number", "label"])
@pytest.mark.parametrize("kind", ["directory", "duckdb", "reader", "npz"])
def test_a_build_from_rows_is_the_build_from_arrays_to_the_bit(monkeypatch, groups, kind):
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 60 * 48 // 3)
    monkeypatch.setattr(reading, "_NUMBERS", 100)
    of_row = None if groups is None else (PEOPLE if groups == "number" else NAMES)
    for front_door, options in (
        (discreet.build, OPTIONS),
        (discreet.least_squares, {"epsilon": 1.0, "delta": 1e-6, "features": "linear"}),
    ):
        rows = Rows(SOURCES[kind](), keys="keys", values="values", groups=groups)
        plain = front_door(KEYS, VALUES, groups=of_row, entropy=Silent(), **options)
        made = front_door(rows, entropy=Silent(), **options)
        assert made.guarantee == plain.guarantee
        np.testing.assert_array_equal(made.released.state, plain.released.state)
        for one, two in zip(plain.released.others, made.released.others, strict=True):
            np.testing.assert_array_equal(one, two)


def test_rounds_read_rows_again_and_again():
    rows = Rows("data", keys="keys", labels="label", groups="number")
    fit = {"epsilon": 9.0, "delta": 1e-6, "classes": sorted(set(NAMES)), "features": "linear"}
    made = discreet.softmax_regression(rows, entropy=Silent(), **fit)
    plain = discreet.softmax_regression(KEYS, NAMES, groups=PEOPLE, entropy=Silent(), **fit)
    np.testing.assert_array_equal(made.logits(KEYS), plain.logits(KEYS))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((KEYS,), "Expected values"),
        ((7,), "Expected values"),
        (([(KEYS, VALUES)], None, PEOPLE), "groups to come with the chunks"),
        (([KEYS],), r"chunks to be \(keys, values\)"),
        (([(KEYS, VALUES), (KEYS, VALUES, PEOPLE)],), "with every chunk, or with none"),
        (([(KEYS, VALUES), (KEYS[:, :2], VALUES)],), "as in the first chunk"),
        ((iter([]),), "at least one chunk"),
    ],
)
def test_what_are_no_chunks_is_refused(given, said):
    keys, values, groups = (*given, None, None)[:3]
    with pytest.raises(InvalidInput, match=said):
        discreet.build(keys, values, groups=groups, **OPTIONS)


def test_progress_counts_what_the_rows_count(capsys):
    discreet.build(Rows("data", keys="keys", values="values"), progress=True, **OPTIONS)
    assert "100%" in capsys.readouterr().err


def column(kind, values):
    return pa.table({"keys": pa.array(values, kind), "values": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.float32()), [[1, 2], [3, 4]]),
        (pa.large_list(pa.float64()), [[1, 2], [3, 4]]),
        (
            pa.list_(pa.float16(), 2),
            [[np.float16(1), np.float16(2)], [np.float16(3), np.float16(4)]],
        ),
        (pa.list_view(pa.int8()), [[1, 2], [3, 4]]),
        (pa.large_list_view(pa.uint64()), [[1, 2], [3, 4]]),
    ],
)
def test_lists_of_every_kind(kind, values):
    made = whole(Rows(column(kind, values), keys="keys", values="values"))[0]
    np.testing.assert_array_equal(made, [[1, 2], [3, 4]])
    assert made.dtype == kind.value_type.to_pandas_dtype()
    part = whole(Rows(column(kind, values).slice(1), keys="keys", values="values"))[0]
    np.testing.assert_array_equal(part, [[3, 4]])


def test_categories_booleans_and_plain_numbers():
    table = pa.table(
        {
            "bool": [True, False],
            "category": pa.array([7, 9]).dictionary_encode(),
            "half": np.array([1, 2], np.float16),
            "who": pa.array(["b", "a"]).dictionary_encode(),
        }
    )
    rows = Rows(table, keys="bool,category,half", labels="who", groups="who")
    keys, labels, groups = whole(rows)
    np.testing.assert_array_equal(keys, [[1, 7, 1], [0, 9, 2]])
    assert labels.tolist() == groups.tolist() == ["b", "a"]


def test_no_rows_are_one_chunk_if_the_width_is_known():
    empty = TABLE.slice(0, 0)
    [(keys, labels, groups)] = Rows(empty, keys="x,y", labels="label", groups="number")
    assert (keys.shape, labels.shape, groups.shape) == ((0, 2), (0,), (0,))
    [(keys, values)] = Rows(empty, keys="x,y", values="x")
    assert values.shape == (0, 1)
    parquet.write_table(empty, "empty.parquet")
    for given in (empty, "empty.parquet"):
        with pytest.raises(InvalidInput, match="to have rows"):
            list(Rows(given, keys="keys", values="values"))
    keys, _ = whole(Rows([empty, TABLE], keys="keys", values="values"))
    np.testing.assert_array_equal(keys, KEYS)
    keys, _ = whole(Rows(["empty.parquet", "data"], keys="keys", values="values"))
    np.testing.assert_array_equal(keys, KEYS)


def write(name, **columns):
    parquet.write_table(pa.table(columns), f"data/{name}.parquet")


GOOD = {"keys": [[1.0, 2.0, 3.0, 4.0]], "values": [[1.0, 2.0]], "x": [1.0], "number": [5]}
BAD = {
    "a column less": ({"values": [[1.0, 2.0]]}, "one column 'keys'; it has: values"),
    "numbers for lists": ({**GOOD, "keys": [1.0]}, "everywhere: lists of 4 numbers in data/day=0"),
    "texts for numbers": ({**GOOD, "x": ["one"]}, "x in data/z.parquet to be numbers"),
    "texts for ids": ({**GOOD, "number": ["a"]}, "numbers in data/day=0/part-0.parquet, texts in"),
    "longer lists": ({**GOOD, "keys": [[1.0] * 5]}, "lists of 5 numbers in data/z.parquet"),
    "decimals": ({**GOOD, "x": pa.array([1], pa.decimal128(9))}, "it is decimal128"),
    "times": ({**GOOD, "number": pa.array([1], pa.timestamp("s"))}, "it is timestamp"),
    "ids with fractions": ({**GOOD, "number": [1.5]}, "whole number or text"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_unlike_the_others_is_named_before_rows_are_read(kind):
    columns, said = BAD[kind]
    write("z", **columns)
    rows = Rows("data", keys="keys", values="x", groups="number")
    for read in (rows.check, lambda: list(rows), lambda: list(rows.chunks())):
        with pytest.raises(InvalidInput) as refused:
            read()
        assert said in str(refused.value)
        assert "z.parquet" in str(refused.value)


@pytest.mark.parametrize(
    "columns",
    [
        {**GOOD, "keys": [None]},
        {**GOOD, "keys": [[1.0, 2.0, None, 4.0]]},
        {"keys": [[1.0] * 5, [1.0] * 3], "values": [[1.0, 2.0]] * 2},
        {**GOOD, "values": pa.array([None], pa.list_(pa.float64(), 2))},
    ],
)
def test_missing_and_ragged_numbers_are_refused_unseen(columns):
    write("z", **columns)
    with pytest.raises(InvalidInput, match=r"z\.parquet") as refused:
        list(Rows("data", keys="keys", values="values"))
    assert not any(figure in str(refused.value) for figure in ("1.0", "2.0", "4.0"))


def test_lists_that_differ_from_batch_to_batch_are_refused():
    short, long = (pa.table({"keys": [[1.0] * width] * 9}) for width in (2, 3))
    with parquet.ParquetWriter("x.parquet", short.schema) as file:
        file.write_table(short)
        file.write_table(long)
    for given in ([short, long], iter([short, long]), "x.parquet"):
        with pytest.raises(InvalidInput, match="lists of one length"):
            list(Rows(given, keys="keys", values="keys"))


def test_float32_here_and_float64_there_is_fine():
    write("z", **GOOD)
    keys, _ = whole(Rows("data", keys="keys", values="values"))
    assert keys.dtype == np.float64
    assert len(keys) == 61


@pytest.mark.parametrize(
    ("make", "given", "said"),
    [
        (lambda: Path("data/a.csv").touch(), "data", "data/a.csv to end in .parquet"),
        (lambda: Path("none/_x").mkdir(parents=True), "none", "there is none"),
        (lambda: None, "data/*.orc", "to match files, and there is none"),
        (lambda: None, "absent", "none of this name"),
        (lambda: None, [], "at least one table"),
        (lambda: None, ["data", TABLE], "no mixture"),
        (lambda: np.save("a.npy", KEYS), "a.npy", "holds one array"),
        (lambda: Path("a.csv").touch(), "a.csv", "to end in one of"),
        (
            lambda: Path("data/a.parquet").write_text("PAR1 PAR1"),
            "data",
            "data/a.parquet to be a w",
        ),
        (lambda: Path("data/a.parquet").touch(), "data", "data/a.parquet to be a whole"),
        (lambda: os.link("data/day=0/part-0.parquet", "data/a.parquet"), "data", "count twice"),
        (lambda: os.symlink(".", "data/again"), "data", "to be in data once"),
        (lambda: os.mkfifo("data/a.parquet"), "data", "something else"),
        (lambda: None, ["data", "data/day=0"], "every file once"),
        (lambda: None, pl.from_arrow(TABLE).lazy(), "LazyFrame; .collect()"),
        (lambda: None, KEYS, "a ndarray"),
        (lambda: None, {"keys": KEYS}, "a dict"),
        (lambda: None, [[1]], "a list"),
        (lambda: None, TABLE["keys"], "the table to be readable"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(make, given, said):
    make()
    with pytest.raises(InvalidInput) as refused:
        Rows(given, keys="keys", values="values").check()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"keys": "keys"}, "one of the two"),
        ({"keys": "keys", "values": "x", "labels": "label"}, "one of the two"),
        ({"keys": "", "values": "x"}, "names of columns.* it is ''"),
        ({"keys": "x,x", "values": "x"}, "each column once"),
        ({"keys": "keys", "labels": ["label"]}, "the name of one column, and it is a list"),
        ({"keys": 7, "values": "x"}, "keys to be names of columns.* it is a int"),
        ({"keys": "x", "values": VALUES}, "values to be names of columns.* it is a ndarray"),
        ({"keys": "keys,x", "values": "x"}, "one column of lists"),
        ({"keys": "absent", "values": "x"}, "one column 'absent'; it has: keys, label"),
        ({"keys": "keys", "labels": "values"}, "a number or text"),
    ],
)
@pytest.mark.parametrize("kind", ["directory", "table", "dataset", "reader"])
def test_names_that_make_no_sense_are_refused(names, said, kind):
    with pytest.raises(InvalidInput, match=said):
        Rows(SOURCES[kind](), **names).check()


def test_a_generator_that_fails_quotes_nothing():
    def failing():
        yield TABLE
        raise ValueError("the secret 42")

    with pytest.raises(InvalidInput, match="a ValueError") as refused:
        list(Rows(failing(), keys="keys", values="values"))
    assert "42" not in str(refused.value)


def test_without_pyarrow_it_says_what_to_install(monkeypatch):
    for module in ("arrow", "streams"):
        monkeypatch.setitem(sys.modules, f"discreet.tables.{module}", None)
    for given in ("data", TABLE):
        with pytest.raises(InvalidInput, match=r"discreet\[parquet\]"):
            Rows(given, keys="keys", values="values")


MEMORY = """
import resource, sys
from discreet.tables import Rows
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in Rows("wide", keys="keys", values="keys"):
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_memory_does_not_grow_with_the_rows():
    os.mkdir("wide")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**22, np.float32)), 64)
    for part in range(12):  # 200 MB in all
        parquet.write_table(pa.table({"keys": lists}), f"wide/{part}.parquet")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, check=True, text=True
    )
    assert int(done.stdout) < 150 * 2**20


def test_no_file_is_left_open():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        next(iter(Rows("data", keys="keys", values="values")))
        list(Rows("data", keys="keys", values="values"))
    assert len(os.listdir("/proc/self/fd")) <= before + 3


@pytest.mark.parametrize("groups", [None, "number"])
def test_a_file_is_opened_once_to_look_and_once_for_each_pass(monkeypatch, groups):
    opens = parquet_opens(monkeypatch)
    file = "data/day=1/part-1.parquet"
    rows = Rows(file, keys="keys", values="values", groups=groups)
    rows.check()
    assert (rows.key_dim, rows.value_dim, rows.count, rows.has_texts) == (4, 2, 20, False)
    assert opens == [file]
    discreet.build(rows, progress=True, entropy=Silent(), **OPTIONS)
    assert opens == [file] * 2
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 20 * 48 // 2)
    passes = len(list(rows))
    assert passes == (2 if groups else 1)
    assert opens == [file] * (2 + passes)


def test_a_pass_over_rows_alone_needs_no_look(monkeypatch):
    opens = parquet_opens(monkeypatch)
    discreet.build(Rows("data", keys="keys", values="values"), entropy=Silent(), **OPTIONS)
    assert len(opens) == 3


def test_a_table_is_asked_once_for_each_pass():
    class Asked:
        times = 0

        def __arrow_c_stream__(self, schema=None):
            self.times += 1
            return TABLE.__arrow_c_stream__(schema)

    table = Asked()
    rows = Rows(table, keys="keys", values="values")
    assert table.times == 0
    for passes in (1, 2):
        np.testing.assert_array_equal(whole(rows)[0], KEYS)
        assert table.times == passes


def test_batches_without_rows_come_first():
    empty, other = TABLE.slice(0, 0), pa.table({"other": pa.array([], pa.null())})
    for given in ([empty, TABLE], iter([empty, TABLE]), iter([other, empty, TABLE])):
        np.testing.assert_array_equal(whole(Rows(given, keys="keys", values="values"))[0], KEYS)
    with pytest.raises(InvalidInput, match="one column 'keys'"):
        list(Rows([other, TABLE], keys="keys", values="values"))


def test_a_file_that_was_written_anew_is_looked_at_anew():
    parquet.write_table(TABLE.slice(0, 20), "x.parquet")
    rows = Rows("x.parquet", keys="keys", values="values", groups="number")
    assert (rows.count, len(whole(rows)[0])) == (20, 20)
    parquet.write_table(TABLE, "x.parquet")
    assert (rows.count, len(whole(rows)[0])) == (60, 60)
    parquet.write_table(TABLE.rename_columns([*TABLE.column_names[:-1], "other"]), "x.parquet")
    with pytest.raises(InvalidInput, match="one column 'number'"):
        rows.check()


def test_a_file_that_changes_between_passes_is_noticed(monkeypatch):
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 60 * 48 // 4)
    parquet.write_table(TABLE, "x.parquet")
    made = iter(Rows("x.parquet", keys="keys", values="values", groups="number"))
    next(made)
    others = pa.array(np.roll(PEOPLE, 1))  # the same ids, at other rows
    changed = TABLE.set_column(TABLE.schema.get_field_index("number"), "number", others)
    parquet.write_table(changed, "x.parquet")
    with pytest.raises(InvalidInput, match="they have changed"):
        list(made)


def test_a_part_that_is_sent_holds_nothing_that_was_read():
    rows = Rows("data/day=0", keys="keys", values="values")
    before = pickle.dumps(rows)
    rows.check()
    assert rows.count == 20
    assert pickle.dumps(rows) == before


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["unused", *sorted(set(NAMES))])])
def test_categories_of_polars_are_texts(kind):
    frame = pl.from_arrow(TABLE).with_columns(pl.col("label").cast(kind))
    for given in (frame, [frame.slice(0, 13), frame.slice(13)], frame.slice(0, 60)):
        rows = Rows(given, keys="keys", labels="label", groups="label")
        assert rows.has_texts
        _, labels, groups = whole(rows)
        assert labels.tolist() == groups.tolist() == NAMES.tolist()
    _, labels = whole(Rows(frame.slice(7, 5), keys="keys", labels="label"))
    assert labels.tolist() == NAMES[7:12].tolist()
    missing = frame.with_columns(pl.lit(None, kind).alias("label"))
    with pytest.raises(InvalidInput, match="no missing value in label"):
        list(Rows(missing, keys="keys", labels="label"))
    with pytest.raises(InvalidInput, match="label in the table to be numbers"):
        list(Rows(frame, keys="label", values="x"))


def test_a_file_that_a_dataset_has_twice_is_refused(tmp_path):
    from pyarrow import dataset

    parquet.write_table(pa.table({"key": [[1.0]], "value": [1.0]}), tmp_path / "a.parquet")
    for other in (tmp_path / "a.parquet", tmp_path / ".." / tmp_path.name / "a.parquet"):
        twice = dataset.dataset([str(tmp_path / "a.parquet"), str(other)])
        with pytest.raises(InvalidInput, match="count twice"):
            Rows(twice, keys="key", values="value")


def test_an_iterable_that_goes_on_where_it_stopped_is_read_once():
    class Shared:
        def __init__(self):
            tables = [pa.table({"key": [[float(i)]], "value": [1.0]}) for i in range(4)]
            self.rest = iter(tables)

        def __iter__(self):
            return self.rest

    rows = Rows(Shared(), keys="key", values="value")
    assert rows.key_dim == 1
    assert [float(each) for keys, _ in rows for each in keys[:, 0]] == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(InvalidInput, match="read once"):
        list(rows)


def test_ids_that_change_between_passes_are_noticed(monkeypatch):
    monkeypatch.setattr("discreet.tables.rows._BYTES_AT_ONCE", 64)

    class Changing:
        passes = 0

        def __iter__(self):
            self.passes += 1
            ids = self.ids(self.passes)
            keys = [[float(i)] for i in range(20)]
            yield pa.table({"key": keys, "value": [1.0] * 20, "who": ids})

    for ids in (
        lambda run: [run * 100 + i for i in range(20)],
        lambda run: list(np.roll(np.arange(20), run)),  # the same ids, at other rows
        lambda run: [f"p{(i + run) % 20}" for i in range(20)],
    ):
        Changing.ids, Changing.passes = staticmethod(ids), 0
        with pytest.raises(InvalidInput, match="have changed"):
            list(Rows(Changing(), keys="key", values="value", groups="who"))
    Changing.ids = staticmethod(lambda _: list(range(20)))
    assert (
        sum(len(keys) for keys, _, _ in Rows(Changing(), keys="key", values="value", groups="who"))
        == 20
    )


def test_widths_that_are_known_need_no_rows():
    rows = Rows([], keys="key", values="value", groups="who", widths=(3, 2))
    [(keys, values, groups)] = list(rows)
    assert (keys.shape, values.shape, groups.shape) == ((0, 3), (0, 2), (0,))
    assert (rows.key_dim, rows.value_dim) == (3, 2)
    with pytest.raises(InvalidInput, match="at least one table"):
        list(Rows([], keys="key", values="value"))


def test_ids_in_bytes_and_in_texts_do_not_mix(tmp_path):
    for name, ids in (("a", np.array(["x", "y"])), ("b", np.array([b"x", b"z"]))):
        np.savez(tmp_path / f"{name}.npz", key=np.ones((2, 3)), value=np.ones((2, 1)), who=ids)
    rows = Rows([tmp_path / "a.npz", tmp_path / "b.npz"], keys="key", values="value", groups="who")
    with pytest.raises(InvalidInput):
        rows.check()
