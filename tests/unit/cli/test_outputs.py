"""Rows that commands write, read back by the programs that they are for."""

import io
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import typer
from data import unit_rows
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.cli.outputs import STANDARD_OUTPUT, Output, places
from discreet.errors import InvalidInput
from discreet.testing import Seeded

RUNNER = CliRunner()
SPEND = {"epsilon": 20.0, "delta": 1e-6}
KEYS, VALUES = unit_rows(400, 5), unit_rows(400, 3, seed=1)
QUERIES = unit_rows(7, 5, seed=2)
USERS = [f"user {place}" for place in range(7)]
LABELS = np.array(["cat", "dog", "bird"])[np.argmax(KEYS[:, :3], axis=1)]
FORMATS = ["csv", "parquet", "jsonl", "ndjson"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What is asked: a memory (not private), one of heads, distances, two models; and queries."""
    folder = tmp_path_factory.mktemp("files")
    built = {**SPEND, "scale": 1.0, "rows_hint": 400}
    discreet.build(KEYS, VALUES, **built, entropy=Seeded(1)).save(folder / "memory.safetensors")
    heads = discreet.build(unit_rows(2, 90, 5), unit_rows(2, 90, 3), **built)
    heads.save(folder / "heads.safetensors")
    sums = discreet.distances(KEYS[:, :2], p=1, bounds=(-1, 1), **SPEND)
    sums.save(folder / "sums.safetensors")
    model = discreet.softmax_regression(
        KEYS, LABELS, classes=["cat", "dog", "bird"], rows_hint=400, features="linear", **SPEND
    )
    model.save(folder / "model.safetensors")
    fit = discreet.least_squares(KEYS, VALUES, features="linear", rows_hint=400, **SPEND)
    fit.save(folder / "fit.safetensors")
    np.save(folder / "queries.npy", QUERIES)
    np.save(folder / "points.npy", QUERIES[:, :2])
    table = {"who": USERS, "number": np.arange(7) * 3, "answer": USERS, "q": list(QUERIES)}
    parquet.write_table(pa.table(table), folder / "asked.parquet")
    return folder


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, files):
    monkeypatch.chdir(tmp_path)
    for each in files.iterdir():
        os.link(each, each.name)
    return tmp_path


def run(*arguments):
    return RUNNER.invoke(app, [str(each) for each in arguments])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def assert_refused(result, *said):
    before = {"memory", "heads", "sums", "model", "fit", "queries", "points", "asked"}
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if "warning: " not in line]
    assert len(lines) == 1
    assert {Path(each).stem for each in os.listdir()} == before
    for each in said:
        assert each in lines[0]


def attended(*more, memory="memory", queries="queries.npy"):
    return done("attend", f"{memory}.safetensors", queries, *more)


def vectors(table, name):
    """The numbers of a column of lists, or of the columns of their numbers."""
    if name in table:
        return np.stack(table[name].to_list())
    return np.stack([table[f"{name}_{place}"].to_list() for place in range(3)], axis=1)


READERS = {
    "pandas": {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.read_json(path, lines=True, precise_float=True),
    },
    "polars": {"csv": pl.read_csv, "parquet": pl.read_parquet, "jsonl": pl.read_ndjson},
    "duckdb": dict.fromkeys(
        ["csv", "parquet", "jsonl"], lambda path: duckdb.sql(f"from '{path}'").df()
    ),
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("reader", READERS)
def test_others_read_all_that_is_known_of_answers_as_it_is(reader, kind):
    attended("--stderr", "-o", f"out.{kind}")
    table = READERS[reader][kind](f"out.{kind}")
    memory = opened("memory")
    out, stderr = memory.attend(QUERIES, stderr=True)
    apart, apart_stderr = memory.differences(QUERIES)
    assert list(table["query"]) == list(range(7))
    # pandas alone reads decimal numbers to the last bit but one.
    exact = {"rtol": 1e-15 if (reader, kind) == ("pandas", "jsonl") else 0}
    for name, wanted in [
        ("answer", out),
        ("stderr", stderr),
        ("base_rate", out - apart),
        ("difference", apart),
        ("difference_stderr", apart_stderr),
    ]:
        np.testing.assert_allclose(vectors(table, name), wanted, **exact)
    facts = json.loads(attended("-o", "out.npy", "--json").stdout)
    assert [bool(each) for each in table["clear"]] == [each["clear"] for each in facts["answers"]]


def opened(name):
    with pytest.warns(discreet.NotPrivateWarning):
        return discreet.load(f"{name}.safetensors")


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "npy", "npz"])
def test_standard_output_has_what_a_file_has_and_nothing_else(kind):
    more = ("--stderr",) if kind == "npz" else ()
    attended(*more, "-o", f"out.{kind}")
    printed = attended(*more, "-o", "-", "--format", kind)
    assert printed.stdout_bytes == Path(f"out.{kind}").read_bytes()
    warning, clear = printed.stderr.splitlines()
    assert "NOT PRIVATE" in warning
    assert "answers are clear of the noise" in clear


def test_standard_output_is_a_csv_table_unless_something_else_is_asked_for():
    attended("-o", "out.csv")
    assert attended("-o", "-").stdout == Path("out.csv").read_text(encoding="utf-8")
    attended("-o", "out.txt", "--format", "CSV")
    assert Path("out.txt").read_bytes() == Path("out.csv").read_bytes()


def test_numbers_keep_their_type_and_lines_their_order():
    np.save("short.npy", QUERIES.astype(np.float32))
    attended("-o", "out.parquet", queries="short.npy")
    found = parquet.read_table("out.parquet").schema.field("answer").type
    assert found.value_type == pa.float32()
    np.save("many.npy", unit_rows(9_000, 5))
    printed = attended("-o", "-", "--format", "jsonl", queries="many.npy").stdout
    assert [json.loads(line)["query"] for line in printed.splitlines()] == list(range(9_000))


def test_no_queries_have_no_answers_but_columns():
    np.save("none.npy", np.zeros((0, 5)))
    names = ["query", "answer_0", "answer_1", "answer_2"]
    assert attended("-o", "-", queries="none.npy").stdout.split() == [",".join(names)]
    assert attended("-o", "-", "--format", "jsonl", queries="none.npy").stdout == ""
    attended("-o", "none.parquet", queries="none.npy")
    assert parquet.read_table("none.parquet").to_pydict() == {"query": [], "answer": []}


def test_answers_of_heads_and_batches_say_whose_they_are():
    asked = unit_rows(4, 2, 3, 5)
    np.save("queries4.npy", asked)
    done("attend", "heads.safetensors", "queries4.npy", "-o", "out.parquet")
    out = discreet.load("heads.safetensors").attend(asked)
    table = parquet.read_table("out.parquet").to_pylist()
    assert len(table) == 24
    for row in table:
        np.testing.assert_array_equal(row["answer"], out[row["batch"], row["head"], row["query"]])
    one = places((7,))
    assert list(one) == ["query"]
    assert places((), heads=0)["query"].tolist() == [0]
    two = places((2, 2, 3), heads=2)
    assert two["head"].tolist() == np.repeat(np.arange(4), 3).tolist()


@pytest.mark.parametrize(("name", "ids"), [("who", USERS), ("number", list(range(0, 21, 3)))])
def test_a_column_of_the_queries_goes_with_the_answers(name, ids):
    attended("--id", name, "-o", "out.jsonl", queries="asked.parquet:q")
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [list(row) for row in rows] == [[name, "answer"]] * 7
    assert [row[name] for row in rows] == ids
    attended("--id", name, "-o", "out.parquet", queries="asked.parquet:q")
    assert parquet.read_table("out.parquet")[name].to_pylist() == ids


def test_ids_come_of_arrays_too_and_are_those_of_queries_in_every_head():
    np.savez("asked.npz", queries=unit_rows(2, 3, 5), who=np.array([7, 8, 9]), few=np.arange(2))
    done("attend", "heads.safetensors", "asked.npz", "--id", "who", "-o", "out.csv")
    rows = pl.read_csv("out.csv").select("head", "who").rows()
    assert rows == [(head, who) for head in range(2) for who in (7, 8, 9)]
    result = run("attend", "heads.safetensors", "asked.npz", "--id", "few", "-o", "few.csv")
    assert result.exit_code == 2
    assert "Expected --id 'few' to have a row for each query." in result.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("queries.npy", "-o", "out.txt"), "to end in .csv, .parquet, .jsonl, .npy or .npz; or"),
        (("queries.npy", "-o", "out"), "--format, which says it for any ending"),
        (("queries.npy", "-o", "-", "--format", "xml"), "'xml' to be csv, parquet, jsonl, npy or"),
        (("queries.npy", "-o", "out.npz"), "to end in .npy: what is written is one array"),
        (("queries.npy", "-o", "o.npy", "--stderr"), "to end in .npz: what is written are several"),
        (("queries.npy", "-o", "-", "--json"), "Expected --json with a file"),
        (("queries.npy", "-o", "queries.npy", "--force"), "not to be one of the files"),
        (("queries.npy", "-o", "asked.parquet"), "--force replaces it"),
        (("asked.parquet:q", "--id", "who", "-o", "out.npy"), "--id with rows: csv, parquet or"),
        (("asked.parquet:q", "--id", "none", "-o", "out.csv"), "one column 'none'"),
        (("asked.parquet:q", "--id", "answer", "-o", "out.csv"), "not to be the name of a column"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_sentence(given, said):
    assert_refused(run("attend", "memory.safetensors", *given), said)


def test_parquet_needs_pyarrow_and_says_so_first(monkeypatch):
    monkeypatch.setitem(sys.modules, "discreet.tables.arrow", None)
    result = run("attend", "memory.safetensors", "queries.npy", "-o", "out.parquet")
    assert_refused(result, "pyarrow to write out.parquet: pip install 'discreet[parquet]'")
    attended("-o", "out.csv")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_is_written_whole_or_not_at_all(folder, kind):
    before = sorted(os.listdir())

    def batches():
        yield {"a": [1], "b": [2]}
        raise KeyboardInterrupt

    out = Output.checked(Path(f"out.{kind}"), None, force=False, as_json=False)
    with pytest.raises(KeyboardInterrupt):
        out.write(batches())
    assert sorted(os.listdir()) == before


def test_a_number_that_is_none_is_null_and_a_date_is_a_text():
    cells = {"a": np.array([1.5, np.nan]), "b": [date(2026, 1, 2), None], "c": [[np.inf], []]}
    Output.checked(Path("out.jsonl"), None, force=False, as_json=False).write([cells])
    assert [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()] == [
        {"a": 1.5, "b": "2026-01-02", "c": [None]},
        {"a": None, "b": None, "c": []},
    ]


class Terminal(io.TextIOWrapper):
    """A terminal, as far as it says."""

    def isatty(self):
        return True


def test_a_terminal_gets_text_that_does_nothing_to_it(monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(shown, encoding="utf-8"))
    given = {"force": False, "as_json": False, "arrays": "npy"}
    for name in ("parquet", "npy"):
        with pytest.raises(InvalidInput, match="a terminal shows text"):
            Output.checked(STANDARD_OUTPUT, name, **given)
    Output.checked(STANDARD_OUTPUT, "csv", **given).write([{"a": ["\x1b[2J wiped"]}])
    assert shown.getvalue().decode() == "a\n\N{REPLACEMENT CHARACTER}[2J wiped\n"


class Narrow(io.RawIOBase):
    """What takes a few bytes at a time, as a pipe may where nothing is buffered."""

    def __init__(self):
        self.taken = b""

    def writable(self):
        return True

    def write(self, data):
        self.taken += bytes(data[:3])
        return min(len(data), 3)


def test_all_is_printed_where_one_write_takes_a_part(monkeypatch):
    narrow = Narrow()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(narrow, write_through=True))
    out = Output.checked(STANDARD_OUTPUT, "csv", force=False, as_json=False)
    out.write([{"name": ["one", "another"]}])
    assert narrow.taken == b"name\none\nanother\n"


@pytest.mark.parametrize(
    ("kind", "unbuffered"), [("jsonl", ""), pytest.param("parquet", "1", marks=pytest.mark.slow)]
)
def test_a_reader_that_has_seen_enough_is_no_error(kind, unbuffered):
    np.save("many.npy", unit_rows(20_000, 5))
    reading, writing = os.pipe()
    line = f"attend memory.safetensors many.npy -o - --format {kind}"
    with subprocess.Popen(
        [sys.executable, "-m", "discreet", *line.split()],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(writing)
        assert os.read(reading, 4)  # as head does
        os.close(reading)
        said = process.stderr.read().splitlines()
    assert process.returncode == 0
    assert [each for each in said if "NOT PRIVATE" not in each] == []


# Other commands.


def test_distances_are_rows():
    done("query", "sums.safetensors", "points.npy", "--stderr", "-o", "out.jsonl")
    answers, errors = discreet.load("sums.safetensors").query(QUERIES[:, :2], stderr=True)
    table = pl.read_ndjson("out.jsonl")
    assert table.columns == ["query", "answer", "stderr"]
    np.testing.assert_array_equal(table["answer"], answers)
    np.testing.assert_array_equal(table["stderr"], errors)
    result = done("query", "sums.safetensors", "points.npy", "-o", "-")
    assert result.stdout.splitlines()[0] == "query,answer"
    assert result.stderr == ""


def test_labels_and_predictions_are_rows():
    asked = ("asked.parquet:q", "--id", "who")
    done("predict", "model.safetensors", *asked, "--probabilities", "-o", "out.parquet")
    table = pl.read_parquet("out.parquet")
    model = discreet.load("model.safetensors")
    assert table.columns == ["who", "label", *(f"p_{each}" for each in model.classes)]
    assert table["who"].to_list() == USERS
    assert table["label"].to_list() == model.predict(QUERIES).tolist()
    np.testing.assert_array_equal(
        table.select(f"p_{each}" for each in model.classes).to_numpy(),
        model.probabilities(QUERIES),
    )
    done("predict", "fit.safetensors", "queries.npy", "--stderr", "-o", "out.jsonl")
    numbers, errors = discreet.load("fit.safetensors").predict(QUERIES, stderr=True)
    table = pl.read_ndjson("out.jsonl")
    assert table.columns == ["prediction", "stderr"]
    np.testing.assert_array_equal(vectors(table, "prediction"), numbers)
    np.testing.assert_array_equal(vectors(table, "stderr"), errors)
    printed = done("predict", "fit.safetensors", "queries.npy", "-o", "-")
    assert printed.stdout.splitlines()[0] == "prediction_0,prediction_1,prediction_2"
    assert printed.stderr == ""
    np.save("batches.npy", np.stack([QUERIES, QUERIES]))
    done("predict", "model.safetensors", "batches.npy", "-o", "out.csv")
    assert pl.read_csv("out.csv")["label"].to_list() == model.predict(QUERIES).tolist() * 2


def options_of(name):
    command = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    return {each.name: each for each in command.params}


@pytest.mark.parametrize("names", [("attend", "predict", "query"), ("corpus ask", "corpus map")])
def test_commands_that_write_rows_say_it_alike(names):
    alike = [
        [
            (each.opts, each.help, each.metavar)
            for each in options_of(name).values()
            if each.name in ("output", "file_format", "row_id", "force")
        ]
        for name in names
    ]
    assert len(alike[0]) == (4 if "attend" in names else 3)
    assert all(each == alike[0] for each in alike)
    shapes, ask = options_of("shapes")["file_format"], options_of("corpus ask")["file_format"]
    assert (shapes.opts, shapes.help) == (ask.opts, ask.help)
