"""`discreet distances` and `discreet query`: from points in files to sums of distances."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli import app

RUNNER = CliRunner()
SPEND = ["--epsilon", "8", "--delta", "1e-6"]
POINTS = np.random.default_rng(0).random((2_000, 2))
QUERIES = np.random.default_rng(1).random((5, 2))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("points.npy", POINTS)
    np.save("weights.npy", np.full(2_000, 0.5))
    np.save("queries.npy", QUERIES)
    table = {"x": POINTS[:, 0], "y": POINTS[:, 1], "w": np.full(2_000, 0.5)}
    parquet.write_table(pa.table({**table, "person": np.arange(2_000) // 2}), "visits.parquet")
    return tmp_path


def run(*arguments):
    return RUNNER.invoke(app, [str(each) for each in arguments])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def exact(weight):
    return weight * np.abs(QUERIES[:, None] - POINTS[None]).sum(axis=(1, 2))


@pytest.mark.parametrize(
    ("given", "weight"),
    [
        (["points.npy"], 1.0),
        (["points.npy", "weights.npy"], 0.5),
        (["visits.parquet", "--keys", "x,y"], 1.0),
        (["visits.parquet", "--keys", "x,y", "--weights", "w"], 0.5),
    ],
)
def test_points_in_files_and_tables_are_asked(folder, given, weight):
    page = done("distances", *given, "--bounds", "0,1", *SPEND, "-o", "sums.safetensors")
    assert "any one row" in page
    sums = discreet.load("sums.safetensors")
    assert isinstance(sums, discreet.Distances)
    shown = done("query", "sums.safetensors", "queries.npy", "--stderr", "-o", "out.npz")
    assert shown.startswith("out.npz: 5 answers: ")
    with np.load("out.npz") as answers:
        assert np.all(np.abs(answers["out"] - exact(weight)) < 5 * answers["stderr"])
    facts = json.loads(done("query", "sums.safetensors", "queries.npy", "-o", "out.npy", "--json"))
    assert facts["shape"] == [5]
    _, errors = sums.query(QUERIES, stderr=True)
    assert facts["median_stderr"] == pytest.approx(float(np.median(errors)))
    np.testing.assert_array_equal(np.load("out.npy"), sums.query(QUERIES))


def test_columns_have_bounds_of_their_own_and_records_are_capped(folder):
    page = done(
        *("distances", "visits.parquet", "--keys", "x,y", "--groups", "person", "--group-rows", 2),
        *("--bounds", "0,1:-1,2", "--power", 2, *SPEND, "-o", "sums.safetensors"),
    )
    assert "any one record" in page
    kernel = discreet.load("sums.safetensors").released.layout.kernel
    assert (kernel.low, kernel.high, kernel.power) == ((0.0, -1.0), (1.0, 2.0), 2.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["points.npy", "--bounds", "0"], "--bounds '0'"),
        (["points.npy", "--bounds", "0,1,2"], "--bounds"),
        (["points.npy", "--bounds", "1,0"], "bounds"),
        (["points.npy", "--bounds", "0,1", "--power", "0"], "--power"),
        (["points.npy", "--bounds", "0,1", "--weights", "w"], "--keys"),
        (["visits.parquet", "weights.npy", "--keys", "x,y", "--bounds", "0,1"], "not both"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_and_nothing_is_written(folder, arguments, said):
    result = run("distances", *arguments, *SPEND, "-o", "sums.safetensors")
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert said in line
    assert not (folder / "sums.safetensors").exists()
