"""Where `discreet build` builds: in several processes, or on a cluster."""

import numpy as np
import pytest
from data import unit_rows
from typer.testing import CliRunner

pa = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
pytest.importorskip("distributed", reason="needs the extra `dask`")

from pyarrow import parquet

from discreet.cli import app

BUILD = ["--keys", "key", "--values", "value", "--epsilon", "1", "--delta", "1e-6", "--scale", "1"]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(2):
        table = pa.table({"key": list(unit_rows(50, 3, seed=number)), "value": np.ones(50)})
        parquet.write_table(table, folder / f"{number}.parquet")
    np.save(tmp_path / "keys.npy", unit_rows(50, 3))
    np.save(tmp_path / "values.npy", unit_rows(50, 3))
    return folder


def run(folder, *arguments):
    output = folder.parent / "memory.safetensors"
    done = CliRunner().invoke(app, ["build", *map(str, arguments), "-o", str(output)])
    assert not output.exists()
    assert done.exit_code == 2
    [line] = done.stderr.splitlines()
    return line


def test_what_a_worker_finds_is_one_sentence(data):
    bad = pa.table({"key": list(np.full((5, 3), np.nan)), "value": np.ones(5)})
    parquet.write_table(bad, data / "2.parquet")
    assert run(data, data, *BUILD, "--workers", 1) == (
        "discreet: Expected keys to have no NaN and no infinity."
    )


def test_usage(data):
    both = run(data, data, *BUILD, "--workers", 1, "--scheduler", "tcp://127.0.0.1:9")
    assert "--workers or --scheduler" in both
    assert "whole number >= 1" in run(data, data, *BUILD, "--workers", 0)
    arrays = [data.parent / "keys.npy", data.parent / "values.npy", *BUILD[4:]]
    assert "--keys and --values" in run(data, *arrays, "--workers", 1)
    nowhere = run(data, data, *BUILD, "--scheduler", "nothing at all")
    assert "Expected a scheduler of Dask at nothing at all" in nowhere
