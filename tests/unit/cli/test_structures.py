"""`discreet paper`."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.paper.oracle import spread

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return RUNNER.invoke(app, ["paper", *arguments])


def facts(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["attention", "--rows", "256", "--accounting", "tight"], "DPCrossAttention"),
        (["softmax", "--rows", "256"], "DPTreeSoftmax"),
        (["softmax", "--rows", "256", "--adaptive"], "DPTreeSoftmaxAdaptive"),
        (["distance", "--rows", "256", "--power", "2"], "DPTreeHighDim"),
        (["distance", "--rows", "256", "--adaptive"], "DPTreeHighDimAdaptive"),
        (["softmax", "--rows", "256", "--lower", "-1", "-c", "largest"], "DPTreeSoftmax"),
        (["distance", "--rows", "256", "--estimator", "consistent"], "DPTreeHighDim"),
        (["distance", "--rows", "256", "--lower", "-3", "--accounting", "tight"], "DPTreeHighDim"),
    ],
)
def test_every_structure_on_generated_data(arguments, name):
    # The noise is real, so it is small here: at 2,000 one run in twenty was beyond the answers.
    found = facts(*arguments, "--epsilon", "20000", "--delta", "1e-3")
    assert found["structure"] == name
    assert "Replacing any one row by another" in found["guarantee"]
    assert found["error"] < found["error_bound"]
    assert 0 < found["error"] < found["typical"]


@pytest.mark.parametrize("power", [1, 2])
def test_own_points_and_the_written_answers(power):
    points, weights, queries = spread(500, 3), np.ones(500), spread(9, 3)
    np.savez("d.npz", points=points, weights=weights)
    np.save("queries.npy", queries)
    found = facts(
        *("distance", "d.npz", "d.npz", "queries.npy", "--power", str(power), "--epsilon", "5000"),
        *("-c", "2", "-o", "out.npy"),
    )
    exact = (np.abs(queries[:, None] - points) ** power).sum(axis=(1, 2))
    answers = np.load("out.npy")
    assert np.sqrt(np.mean((answers - exact) ** 2)) == pytest.approx(found["error"])
    assert found["error"] < 0.1 * found["typical"]
    assert found["output"] == "out.npy"


def test_attention_over_own_rows():
    np.save("k.npy", 2 * spread(256, 2))
    np.save("v.npy", spread(256, 3))
    np.save("q.npy", spread(5, 2))
    result = run("attention", "k.npy", "v.npy", "q.npy", "--epsilon", "1e4", "--upper", "0.5")
    assert result.exit_code == 0, result.output
    assert "not private" in result.stdout.splitlines()[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["attention", "k.npy"],
        ["attention", "--rows", "0"],
        ["attention", "--accounting", "loose"],
        ["distance", "--power", "2", "--adaptive"],
        ["distance", "--epsilon", "-1"],
        ["softmax", "-c", "1000"],
        ["softmax", "-o", "."],
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(folder, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ["attention", "softmax", "distance"])
@pytest.mark.parametrize(
    "queries",
    [
        np.full((3, 2), np.nan),
        np.zeros((3, 3)),
        np.zeros(()),
        np.zeros((0, 2)),
        np.zeros((1, 1, 2)),
    ],
)
def test_bad_queries_are_refused(folder, command, queries):
    np.save("p.npy", spread(64, 2))
    np.save("w.npy", spread(64, 1)[:, 0])
    np.save("q.npy", queries)
    before = sorted(os.listdir(folder))
    result = run(command, "p.npy", "w.npy", "q.npy", "--epsilon", "1e4", "-o", "out.npy")
    assert result.exit_code == 2, result.output
    assert "a bug" not in result.stderr
    assert sorted(os.listdir(folder)) == before


def test_a_report_does_not_mix_with_other_files(folder):
    (folder / "report").mkdir()
    (folder / "report" / "notes.txt").write_text("mine")
    result = run("report", "--quick", "-o", "report")
    assert result.exit_code == 2
    assert "--force" in result.stderr


def test_points_are_spread_evenly_and_always_the_same():
    points = spread(1000, 3)
    counts, _ = np.histogramdd(points, bins=4, range=[(0, 1)] * 3)
    assert counts.min() >= 8  # 15.6 each on average; random points leave cells of 5 or less
    np.testing.assert_array_equal(points, spread(1000, 3))
