"""`discreet ledger`, and builds that are counted."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.files import note_release
from discreet.ledger import Ledger, State
from discreet.readers.registry import load

WANTED = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return what runs a command in a folder with rows and a ledger for them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    np.save("keys.npy", keys)
    np.save("values.npy", values)
    np.savez("data.npz", keys=keys, label=rng.integers(0, 2, 60))

    def command(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    made = command("ledger", "create", "budget.db", "clinic", "--epsilon", 1.2, "--delta", 1e-5)
    assert made.exit_code == 0, made.output
    assert "ε = 1.2 is left" in made.output
    return command


def build(run, output, *more):
    rows = ["keys.npy", "values.npy", "--scale", "1", "--kernel", "minimax"]
    return run("build", *rows, *WANTED, "-o", output, *more)


COUNTED = ("--ledger", "budget.db", "--dataset", "clinic")


def test_builds_and_fits_are_counted_and_noted(run):
    done = build(run, "memory.safetensors", *COUNTED, "--analyst", "eve")
    assert done.exit_code == 0, done.output
    [spend] = Ledger("budget.db").statement("clinic").spends
    assert spend.receipt == load("memory.safetensors").receipt
    assert (spend.state, spend.analyst) == (State.RELEASED, "eve")
    assert spend.places == ("memory.safetensors",)
    fit = ("fit", "data.npz", "--classes", "0,1", "--features", "linear", "-o", "fit.safetensors")
    refused = run(*fit, *WANTED, *COUNTED)
    assert refused.exit_code == 2
    assert "data set 'clinic' has the budget for" in refused.stderr
    done = run(*fit, "--epsilon", "0.5", "--delta", "1e-6", *COUNTED)
    assert done.exit_code == 0, done.output
    assert Ledger("budget.db").statement("clinic").spends[1].places == ("fit.safetensors",)


def test_what_does_not_fit_writes_nothing(run, tmp_path):
    assert build(run, "one.safetensors", *COUNTED).exit_code == 0
    refused = build(run, "two.safetensors", *COUNTED)
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert "still fits" in refused.stderr
    assert not (tmp_path / "two.safetensors").exists()


def test_a_ledger_that_is_missing_writes_nothing(run, tmp_path):
    refused = build(run, "one.safetensors", "--ledger", "other.db", "--dataset", "clinic")
    assert refused.exit_code == 2
    assert "other.db to be a ledger" in refused.stderr
    refused = build(run, "one.safetensors", "--dataset", "clinic")
    assert refused.exit_code == 2
    assert "--dataset 'clinic' to come with --ledger" in refused.stderr
    assert not (tmp_path / "one.safetensors").exists()


def test_a_release_for_others_than_the_data_set_counts_is_told_what_to_do(run, tmp_path):
    np.save("ids.npy", np.arange(60) // 2)
    refused = build(run, "one.safetensors", *COUNTED, "--groups", "ids.npy")
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert "Leave `groups` out, or count it in another data set" in refused.stderr
    assert "discreet ledger create --unit record --neighbours add_remove" in refused.stderr
    refused = build(run, "one.safetensors", *COUNTED, "--neighbours", "replace")
    assert "Ask for `neighbours` 'add_remove' where it can be chosen, or count" in refused.stderr
    command = ["--epsilon", 2, "--delta", 1e-5, "--neighbours", "add_remove", "--unit", "record"]
    assert run("ledger", "create", "budget.db", "people", *command).exit_code == 0
    refused = build(run, "one.safetensors", "--ledger", "budget.db", "--dataset", "people")
    assert "Give `groups` where it takes them, or count it in" in refused.stderr
    assert not (tmp_path / "one.safetensors").exists()
    counted = ("--ledger", "budget.db", "--dataset", "people")
    done = build(run, "one.safetensors", *counted, "--groups", "ids.npy")
    assert done.exit_code == 0, done.output
    refused = run("ledger", "spend", "budget.db", "clinic", "one.safetensors")
    assert "Count it in another data set" in refused.stderr
    assert "groups" not in refused.stderr


def test_show(run, tmp_path):
    run("ledger", "limit", "budget.db", "clinic", "eve", "--epsilon", "1", "--delta", "1e-6")
    build(run, "memory.safetensors", *COUNTED, "--analyst", "eve")
    shown = run("ledger", "show", "budget.db")
    assert shown.exit_code == 0, shown.output
    [spend] = Ledger("budget.db").statement("clinic").spends
    for wanted in (spend.id, "memory.safetensors", "released", "eve", "[####", "nothing left"):
        assert wanted in shown.stdout
    [facts] = json.loads(run("ledger", "show", "budget.db", "clinic", "--json").stdout)
    assert facts["spends"][0]["id"] == spend.id
    assert facts["analysts"]["eve"] == {"epsilon": 1.0, "delta": 1e-6}
    assert 0 < facts["spent"] < 1
    assert run("ledger", "show", "budget.db", "other").exit_code == 2


def test_a_picture(run, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    build(run, "memory.safetensors", *COUNTED)
    drawn = run("ledger", "show", "budget.db", "--picture", "it.png")
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert run("ledger", "show", "budget.db", "--picture", "it.png").exit_code == 2
    assert run("ledger", "show", "budget.db", "--picture", "it.doc").exit_code == 2


def test_files_that_were_made_without_it_are_counted(run):
    assert build(run, "memory.safetensors").exit_code == 0
    done = run("ledger", "spend", "budget.db", "clinic", "memory.safetensors", "--analyst", "eve")
    assert done.exit_code == 0, done.output
    [spend] = Ledger("budget.db").statement("clinic").spends
    assert (spend.analyst, spend.places) == ("eve", ("memory.safetensors",))
    again = run("ledger", "spend", "budget.db", "clinic", "memory.safetensors")
    assert again.exit_code == 2
    assert "in it already" in again.stderr
    build(run, "other.safetensors")
    beyond = run("ledger", "spend", "budget.db", "clinic", "other.safetensors")
    assert beyond.exit_code == 2
    assert "counted all the same" in beyond.stderr
    assert len(Ledger("budget.db").statement("clinic").spends) == 2
    assert run("ledger", "spend", "budget.db", "clinic", "nothing").exit_code == 2


def test_void(run):
    build(run, "memory.safetensors", *COUNTED)
    [spend] = Ledger("budget.db").statement("clinic").spends
    refused = run("ledger", "void", "budget.db", spend.id)
    assert refused.exit_code == 2
    assert "it is released" in refused.stderr
    from ledgers import receipt

    held = receipt(0.1)
    Ledger("budget.db").account("clinic").reserve(held, delta=1e-6)
    assert run("ledger", "void", "budget.db", held.id).exit_code == 0
    assert Ledger("budget.db").statement("clinic").spends[1].state is State.VOIDED


def test_a_void_that_came_too_late_says_that_it_keeps_counting_and_why(run):
    from ledgers import receipt

    early, late = receipt(0.1), receipt(0.1)
    for held in (early, late):
        Ledger("budget.db").account("clinic").reserve(held, delta=1e-6)
    voided = run("ledger", "void", "budget.db", early.id)
    assert "is voided, and counts no more" in voided.stdout
    assert voided.stderr == ""
    build(run, "memory.safetensors", *COUNTED, "--epsilon", "0.5")
    voided = run("ledger", "void", "budget.db", late.id)
    assert voided.exit_code == 0
    assert "is voided, and keeps counting" in voided.stdout
    assert "another release of data set 'clinic' was drawn" in voided.stderr
    shown = run("ledger", "show", "budget.db").stdout
    assert "voided  " in shown
    assert "voided, still counts  " in shown
    [facts] = json.loads(run("ledger", "show", "budget.db", "--json").stdout)
    assert [each["counts"] for each in facts["spends"]] == [False, True, True]


def test_a_note_that_fails_is_only_a_warning(run, tmp_path):
    build(run, "memory.safetensors")
    made = load("memory.safetensors")
    with pytest.warns(UserWarning, match="not noted as released"):
        note_release(Ledger("budget.db"), made, tmp_path / "memory.safetensors")
