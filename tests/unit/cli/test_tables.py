"""Commands that read directories, patterns and columns of tables."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data import unit_rows
from pyarrow import parquet
from typer.testing import CliRunner
from watching import eventually, has_open, parquet_opens

import discreet
from discreet.cli import app
from discreet.tables import Rows

RUNNER = CliRunner()
SPEND = ["--epsilon", "20", "--delta", "1e-6"]
NAMES = ("--keys", "embedding", "--values", "one,two")
BUILD = ("build", *SPEND, "--scale", "1.5", "-o", "memory.safetensors")
FIT = ("fit", *SPEND, "--features", "linear", "--classes", "cat,dog,bird", "-o", "m.safetensors")
KEYS = unit_rows(300, 5)
VALUES = unit_rows(300, 2, seed=1)
LABELS = np.array(["cat", "dog", "bird"])[np.argmax(KEYS[:, :3], axis=1)]


def table(rows):
    return pa.table(
        {
            "embedding": list(KEYS[rows]),
            "one": VALUES[rows, 0],
            "two": VALUES[rows, 1],
            "label": LABELS[rows],
            "person": [f"person {row % 90}" for row in range(rows.start, rows.stop)],
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("data")
    for part in range(3):
        rows = slice(100 * part, 100 * part + 100)
        parquet.write_table(table(rows), f"data/part-{part}.parquet")
    np.savez("all.npz", embedding=KEYS, one=VALUES[:, 0], two=VALUES[:, 1], person=np.arange(300))
    np.save("keys.npy", KEYS)
    np.save("values.npy", VALUES)
    return tmp_path


def run(*arguments):
    return RUNNER.invoke(app, [str(each) for each in arguments])


def assert_refused(result, before, *said):
    assert result.exit_code == 2, result.output
    assert len(result.output.splitlines()) == 1
    assert "Traceback" not in result.output
    assert everything() == before
    for each in said:
        assert each in result.output


def everything():
    return sorted(str(path) for path in Path().rglob("*"))


@pytest.mark.parametrize(
    "source", ["data", "data/*.parquet", "data/part-1.parquet", "all.npz", "./data/../data/"]
)
@pytest.mark.parametrize("groups", [(), ("--groups", "person")])
def test_build_from_columns_of_a_table(folder, source, groups):
    result = run(*BUILD, source, *NAMES, *groups)
    assert result.exit_code == 0, result.output
    memory = discreet.load("memory.safetensors")
    assert memory.guarantee.unit == ("record" if groups else "row")
    assert memory.kernel.dim == 5


@pytest.mark.parametrize(
    "options", [(), ("--groups", "person"), ("--neighbours", "replace"), ("--workers", "1")]
)
def test_a_build_opens_a_file_to_look_and_to_read(folder, monkeypatch, options):
    opens = parquet_opens(monkeypatch)
    result = run(*BUILD, "data/part-1.parquet", *NAMES, *options)
    assert result.exit_code == 0, result.output
    here = 1 if "--workers" in options else 2  # the rows are read elsewhere
    assert opens == ["data/part-1.parquet"] * here


@pytest.mark.parametrize("source", ["data", "data/**"])
def test_fit_from_columns_of_tables(folder, source):
    result = run(*FIT, source, "--keys", "embedding", "--groups", "person", "--group-rows", "3")
    assert result.exit_code == 0, result.output
    model = discreet.load("m.safetensors")
    assert model.guarantee.unit == "record"
    assert np.mean(model.predict(KEYS) == LABELS) > 0.6


def test_a_known_number_of_rows_is_the_default_where_rows_are_replaced(folder):
    options = (*SPEND, "--neighbours", "replace", "--json", "-o")
    tables = run("build", "data", *NAMES, *options, "a.safetensors")
    arrays = run("build", "keys.npy", "values.npy", *options, "b.safetensors")
    one, two = json.loads(tables.output), json.loads(arrays.output)
    assert one["rows_hint"] == two["rows_hint"] == 300
    groups = run("build", "data", *NAMES, "--groups", "person", *options, "c.safetensors")
    assert groups.exit_code == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("data",), "--keys and --values, the names of columns of data"),
        (("data", "--keys", "embedding"), "both --keys and --values"),
        (("data", "--values", "one"), "both --keys and --values"),
        (("keys.npy", "values.npy", *NAMES), "or values.npy as the file of values"),
        (("keys.npy", *NAMES), "a .npy file holds one array"),
        (("data/part-0.parquet:embedding", *NAMES), "without a name: --keys"),
        (("data", "values.npy"), "it is a directory"),
        (("data", "--keys", "embedding", "--values", "three"), "one column 'three'; it has"),
        (("data", *NAMES, "--groups", "data/part-0.parquet:person"), "one column 'data/part-0"),
        (("data", *NAMES, "-o", "data/out.safetensors"), "not to lie in data"),
        (("data", *NAMES, "-o", "data/part-0.parquet", "--force"), "not to lie in data"),
        (("data/*", *NAMES, "-o", "data/part-0.parquet", "--force"), "one of the files that are"),
        (("data/*.csv", *NAMES), "to match files"),
        (("absent", *NAMES), "none of this name"),
    ],
)
def test_a_mixed_up_build_is_one_helpful_sentence(folder, given, said):
    before = everything()
    assert_refused(run(*BUILD, *given), before, said)


def more(**columns):
    parquet.write_table(pa.table(columns), "data/z.parquet")


GOOD = {"embedding": [[0.5] * 5], "one": [0.25], "two": [0.75], "label": ["cat"], "person": ["xyz"]}
BAD = {
    "corrupt": lambda: Path("data/z.parquet").write_bytes(b"PAR1" + bytes(99) + b"PAR1"),
    "cut short": lambda: Path("data/z.parquet").write_bytes(
        Path("data/part-0.parquet").read_bytes()[:-20]
    ),
    "damaged pages": lambda: Path("data/z.parquet").write_bytes(
        bytes(4000) + Path("data/part-0.parquet").read_bytes()[4000:]
    ),
    "empty file": lambda: Path("data/z.parquet").touch(),
    "another kind": lambda: Path("data/z.csv").write_text("1,2\n"),
    "a column less": lambda: more(embedding=[[0.5] * 5]),
    "lists and numbers": lambda: more(**{**GOOD, "embedding": [0.5]}),
    "other length": lambda: more(**{**GOOD, "embedding": [[0.5] * 4]}),
    "texts": lambda: more(**{**GOOD, "embedding": ["0.5"]}),
    "ids": lambda: more(**{**GOOD, "person": [5]}),
    "nulls": lambda: more(**{**GOOD, "embedding": [[0.5, None, 0.5, 0.5, 0.5]]}),
    "no id": lambda: more(**{**GOOD, "person": pa.array([None], pa.string())}),
    "ragged": lambda: more(**{name: 2 * each for name, each in GOOD.items()} | RAGGED),
}
RAGGED = {"embedding": [[0.5] * 4, [0.5] * 6]}


@pytest.mark.parametrize("command", ["build", "fit"])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_among_good_ones_is_named_and_nothing_written(folder, command, kind):
    BAD[kind]()
    before = everything()
    given = (*BUILD, *NAMES) if command == "build" else (*FIT, "--keys", "embedding")
    result = run(*given, "data", "--groups", "person")
    assert_refused(result, before, "data/z.")
    assert not any(value in result.output for value in ("0.5", "0.25", "xyz"))


def test_a_directory_without_tables_is_refused(folder):
    os.mkdir("none")
    before = everything()
    assert_refused(run(*BUILD, *NAMES, "none"), before, "there is none")
    assert_refused(run(*FIT, "none"), before, "there is none")


def test_ctrl_c_while_rows_are_read_leaves_nothing(folder, monkeypatch):
    before = everything()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Rows, "chunks", interrupted)
    result = run(*BUILD, *NAMES, "data")
    assert result.exit_code == 130
    assert everything() == before


@pytest.mark.slow
def test_a_build_from_many_files_that_gets_a_signal_leaves_nothing(folder):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**22, np.float32)), 16)
    for part in range(20):
        parquet.write_table(pa.table({"k": lists}), f"data/{part}.parquet")
    for part in range(3):
        os.unlink(f"data/part-{part}.parquet")
    before = everything()
    command = [*BUILD, "data", "--keys", "k", "--values", "k", "--kernel", "fourier"]
    process = subprocess.Popen([sys.executable, "-m", "discreet", *command], stderr=subprocess.PIPE)
    assert eventually(lambda: has_open(process.pid, str(folder / "data")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"nothing was written" in errors
    assert everything() == before


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
def test_ctrl_c_ends_workers_too_also_while_they_start(folder, after):
    """It reaches all processes of a terminal; one of them answers, in a sentence."""
    psutil = pytest.importorskip("psutil")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**22, np.float32)), 16)
    for part in range(20):
        parquet.write_table(pa.table({"k": lists}), f"data/{part}.parquet")
    for part in range(3):
        os.unlink(f"data/part-{part}.parquet")
    before = everything()
    command = [*BUILD, "data", "--keys", "k", "--values", "k", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet", *command, "--kernel", "fourier"],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert eventually(lambda: psutil.Process(process.pid).children(recursive=True))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(after)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors.decode().splitlines() == ["discreet: interrupted, nothing was written."]
    _, alive = psutil.wait_procs(workers, timeout=120)
    assert [worker for worker in alive if worker.status() != psutil.STATUS_ZOMBIE] == []
    assert everything() == before
