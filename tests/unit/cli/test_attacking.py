"""`discreet attack`: files are attacked, and what is found stands beside what is promised."""

import json
import sys

import numpy as np
import pytest
from data import unit_rows
from typer.testing import CliRunner

from discreet.cli import app
from discreet.noise import RoundedGaussian
from discreet.sums.settings import Settings

RUNNER = CliRunner()
SPEND = ["--epsilon", "2", "--delta", "1e-6", "--scale", "2"]
FEW = ["--trials", "300", "--questions", "20"]
ROWS = ["attack", "keys.npy", "values.npy", *SPEND, *FEW]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("keys.npy", unit_rows(20, 3))
    np.save("values.npy", np.where(np.arange(20) % 2, 0.9, -0.9)[:, None])


def test_what_is_found_in_own_rows_is_printed_for_their_owner(tmp_path):
    result = RUNNER.invoke(app, [*ROWS, "--picture", "roc.svg"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("NOT PRIVATE")
    assert "no attack surely found more than noise like this allows" in result.stdout
    assert "300 with the row and 300 without" in result.stdout
    assert "From exact attention: 100%" in result.stdout
    assert "proves" in lines[-2]
    assert result.stderr == "discreet: picture: roc.svg\n"
    assert (tmp_path / "roc.svg").stat().st_size > 1000


def test_a_table_fits_a_narrow_terminal():
    result = RUNNER.invoke(app, ROWS)
    tables = [line for line in result.stdout.splitlines() if line.startswith(" ") or "95%" in line]
    assert len(tables) >= 8
    assert max(map(len, tables)) <= 64


def test_json_has_every_figure():
    result = RUNNER.invoke(app, [*ROWS, "--neighbours", "replace", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["claimed"]["neighbours"] == "replace"
    assert found["private"] is False
    assert [each["questions"] for each in found["questions"]] == [10, 20]
    assert {"accused", "found", "interval", "at_best"} <= found["membership"]["levels"][0].keys()


def test_a_broken_promise_is_an_exit_code(monkeypatch):
    def weaker(self, layout):
        return (RoundedGaussian(sigma=0.2 * self.sigma(layout)),)

    monkeypatch.setattr(Settings, "laws", weaker)
    result = RUNNER.invoke(app, ROWS)
    assert result.exit_code == 1
    assert "THE PROMISE IS BROKEN" in result.stdout


def test_without_rows_the_memory_of_the_demo_is_attacked():
    result = RUNNER.invoke(app, ["attack", "--trials", "100", "--questions", "10", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["attribute"]["candidates"] == 10
    assert found["claimed"]["epsilon"] == 1
    for each in (*found["membership"]["levels"], found["attribute"], found["secret"]):
        assert each["exact_attention"] == each["exact_retrieval"] == 1
    assert found["questions"][0]["exact_attention"] == 1


def test_without_scikit_learn_the_demo_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    result = RUNNER.invoke(app, ["attack"])
    assert result.exit_code == 2
    assert "pip install 'discreet[sklearn]'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["attack", "keys.npy"], "Expected VALUES beside KEYS: arrays"),
        (["attack", "--scale", "2"], "Expected --scale with KEYS and VALUES"),
        (["attack", "--key-norm", "2"], "Expected --key-norm with KEYS and VALUES"),
        ([*ROWS, "--trials", "5"], "Expected --trials 5 to be a whole number"),
        ([*ROWS, "--questions", "5"], "Expected --questions 5 to be a whole number"),
        ([*ROWS, "--picture", "keys.npy"], "keys.npy"),
        (["attack", "keys.npy", "values.npy"], "Expected --scale, or --rows-hint: a public"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(arguments, sentence):
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert sentence in line
