"""`--stated` where files are built, and `card` with a ledger beside it."""

import json
from pathlib import Path

import numpy as np
import pytest
from data import unit_rows
from typer.testing import CliRunner

import discreet
from discreet.cli import app, releases
from discreet.ledger import Ledger

SPEND = ("--epsilon", "1", "--delta", "1e-6")
STATED = ("--stated", "stated.toml", "--stated", "date=2026-03-01", "--stated", "purpose = x = y")
SAID = {"data": "visits", "builder": "Ann", "purpose": "x = y", "date": "2026-03-01"}
BUILD = ("build", "keys.npy", "values.npy", "--scale", "1", "--kernel", "minimax", *SPEND)
COMMANDS = {
    "build": BUILD,
    "fit": ("fit", "data.npz", "--classes", "0,1", "--features", "linear", *SPEND),
    "regress": ("regress", "keys.npy", "values.npy", "--features", "linear", *SPEND),
    "distances": ("distances", "keys.npy", "--bounds=-1,1", *SPEND),
    "corpus": (
        *("corpus", "build", "texts.txt", "--encoder", "static", "--topics", "topics.txt"),
        *("--epsilon", "1"),
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = unit_rows(200, 3)
    np.save("keys.npy", keys)
    np.save("values.npy", unit_rows(200, 2, seed=1))
    np.savez("data.npz", keys=keys, label=(keys[:, 0] > 0).astype(int))
    Path("texts.txt").write_text("my card has not arrived\n" * 50, encoding="utf-8")
    Path("topics.txt").write_text("card arrival\nweather\n", encoding="utf-8")
    said = 'data = "visits"\nbuilder = "Ann"\ndate = 2020-01-01\n'
    Path("stated.toml").write_text(said, encoding="utf-8")
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(each) for each in words])


def done(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.filterwarnings("ignore::discreet.MostlyNoiseWarning")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_typed_is_in_the_file(command):
    """A file of the fixed part, and the rest beside it, which stands in its place."""
    done(*COMMANDS[command], *STATED, "-o", "a.safetensors")
    assert discreet.load("a.safetensors").card.stated == SAID
    shown = done("card", "a.safetensors")
    assert "stated: data" in shown
    assert "not stated: contact" in shown
    assert json.loads(done("card", "a.safetensors", "--json"))["stated"] == SAID


def test_of_a_model_of_a_table():
    pytest.importorskip("sklearn", reason="needs the extra `sklearn`")
    Path("people.csv").write_text("age,ill\n" + "30,yes\n50,no\n" * 50, encoding="utf-8")
    Path("schema.toml").write_text("age = [0, 100]\n", encoding="utf-8")
    names = ("--schema", "schema.toml", "--label", "ill", "--classes", "yes,no")
    done("fit", "people.csv", *names, "--rows-hint", 100, *SPEND, *STATED, "-o", "a.safetensors")
    assert discreet.load("a.safetensors").card_.stated == SAID


def test_of_a_stream_and_of_what_is_exported():
    shape = ("--key-dim", 3, "--value-dim", 2, "--scale", 1, "--kernel", "minimax")
    common = ("tickets", "--key-file", "key")
    done("stream", "create", *common, "--steps", 4, *shape, "--epsilon", 9, *SPEND[2:], *STATED)
    done("stream", "append", *common, "keys.npy", "values.npy", "--step", "day 1")
    done("stream", "export", "tickets", "-o", "a.safetensors")
    assert discreet.load("a.safetensors").card.stated == SAID
    assert "stated: builder" in done("stream", "show", "tickets")
    assert json.loads(done("stream", "show", "tickets", "--json"))["stated"] == SAID


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("author=Ann",), "a name out of data, builder, purpose, contact, date"),
        (("visits",), "to be NAME=TEXT"),
        (("data=",), "stated['data']='' to be one line"),
        (("data=a", "data=b"), "--stated data once"),
        (("nothing.toml",), "nothing.toml to be a TOML file"),
        (("date=tomorrow",), "a date such as"),
    ],
)
def test_what_cannot_be_stated_is_said_before_anything_is_spent(typed, said, folder):
    options = [word for each in typed for word in ("--stated", each)]
    result = run(*BUILD, *options, "-o", "a.safetensors")
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (folder / "a.safetensors").exists()


def test_a_card_says_what_a_ledger_knows(folder, monkeypatch):
    monkeypatch.setattr(releases, "_can_draw", lambda: False)  # which takes seconds
    done("ledger", "create", "budget.db", "clinic", "--epsilon", 4, "--delta", 1e-5)
    for name in ("first", "second"):
        counted = ("--ledger", "budget.db", "--dataset", "clinic", "-o", f"{name}.safetensors")
        done(*BUILD, *counted)
    shown = done("card", "second.safetensors", "--ledger", "budget.db")
    assert str(Ledger("budget.db").statement("clinic")) in shown
    assert "released to first.safetensors" in shown
    told = json.loads(done("card", "second.safetensors", "--ledger", "budget.db", "--json"))
    assert len(told["ledger"]["statement"]["spends"]) == 2
    done("card", "--html", "second.safetensors", "--ledger", "budget.db")
    page = (folder / "second.html").read_text("utf-8")
    assert "released to first.safetensors" in page
    assert "Made from the file and a ledger" in page
    done(*BUILD, "-o", "third.safetensors")
    assert "does not know this release" in done(
        "card", "third.safetensors", "--ledger", "budget.db"
    )
    alone = done("card", "third.safetensors")
    assert "nobody here can say which there are" in alone
    assert "ledger" not in json.loads(done("card", "third.safetensors", "--json"))


def test_a_page_does_not_replace_the_ledger_that_it_is_made_from(folder):
    done("ledger", "create", "budget.db", "clinic", "--epsilon", 4, "--delta", 1e-5)
    done(*BUILD, "-o", "a.safetensors")
    before = (folder / "budget.db").read_bytes()
    page = ("card", "--html", "a.safetensors", "--ledger", "budget.db", "-o", "budget.db")
    assert run(*page, "--force").exit_code == 2
    assert (folder / "budget.db").read_bytes() == before
