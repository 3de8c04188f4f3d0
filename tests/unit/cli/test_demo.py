"""`discreet demo`."""

import importlib
import json
import os
import subprocess
import sys

import pytest
from markup import Reader
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet_benchmarks.demo import digits, texts

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demo prints in a poor terminal, and the folder that it wrote to."""
    folder = tmp_path_factory.mktemp("demo")
    poor = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "TERM": "dumb", "COLUMNS": "90"}
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "demo", "--splits", "2", "--picture", "demo.png"],
        cwd=folder,
        env={**os.environ, **poor},
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout, folder


@pytest.mark.docs
def test_the_demo_shows_card_accuracy_and_alternatives(shown):
    text, folder = shown
    for part in (
        "protects",
        "guarantee",
        "1,350",
        "exact attention she reads it in 100% of attacks",
        "<- it says",
        "least squares",
        "DP-SGD",
        "Without privacy: ",
        "discreet-demo.html",
        "demo.png",
    ):
        assert part in text
    for each in digits.dpsgd_accuracy():
        assert f"{each.mean:.3f}" in text
    assert "NOT PRIVATE" not in text
    assert sorted(os.listdir(folder)) == ["demo.png", "discreet-demo.html"]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.docs
def test_the_demo_replaces_its_page_only_by_force(shown, monkeypatch):
    _, folder = shown
    monkeypatch.chdir(folder)
    before = (folder / "discreet-demo.html").read_bytes()
    refused = RUNNER.invoke(app, ["demo"])
    assert refused.exit_code == 2
    assert "--force" in refused.output
    assert (folder / "discreet-demo.html").read_bytes() == before


def test_a_picture_of_another_kind_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, ["demo", "--picture", "demo.pdf"])
    assert result.exit_code == 2
    assert ".png or .svg" in result.output
    assert os.listdir(tmp_path) == []


def test_without_matplotlib_a_picture_that_was_asked_for_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "discreet.pictures", None)
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, ["demo", "--picture", "demo.png"])
    assert result.exit_code == 2
    assert "discreet[plots]" in result.output
    assert os.listdir(tmp_path) == []


def test_without_the_digits_the_demo_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, ["demo"])
    assert result.exit_code == 2
    assert "discreet[sklearn]" in result.output
    assert "Traceback" not in result.output


def test_page_and_picture_have_two_names(tmp_path):
    path = str(tmp_path / "both.png")
    result = RUNNER.invoke(app, ["demo", "-o", path, "--picture", path])
    assert result.exit_code == 2
    assert "two names" in result.stderr


@pytest.mark.docs
def test_the_demo_needs_no_matplotlib_and_prints_json(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "discreet.pictures", None)
    # By its name in full: the package also has the command, a function called demo.
    module = importlib.import_module("discreet.cli.demo")
    monkeypatch.setattr(module, "find", lambda splits, advance: found)
    arguments = ["demo", "-o", str(tmp_path / "page.html")]
    plain = RUNNER.invoke(app, arguments)
    assert plain.exit_code == 0, plain.output
    assert "discreet[plots]" in plain.output
    assert Reader((tmp_path / "page.html").read_text(encoding="utf-8")).all("img") == []
    printed = RUNNER.invoke(app, [*arguments, "--json", "--force"])
    facts = json.loads(printed.stdout)
    assert facts["card"] == found.card.to_dict()
    assert facts["accuracies"][1]["scale"] == facts["card"]["scale"]
    assert facts["accuracies"][1]["private"]["mean"] == found.accuracies[1].private.mean


def test_its_releases_are_files_that_answer(tmp_path):
    folder = tmp_path / "files"
    done = RUNNER.invoke(app, ["demo", "--files", str(folder)])
    assert done.exit_code == 0, done.output
    assert "discreet serve" in done.output
    digits_file = folder / "digits.safetensors"
    memory = discreet.load(digits_file)
    assert memory.card.to_dict()["private"]
    assert "number k of the answer" in memory.card.stated["data"]
    [data] = digits.splits(1)
    assert data.accuracy(memory.attend(data.queries)) > 0.7
    if texts.installed():
        corpus = discreet.load(folder / "questions.safetensors")
        assert corpus.ask("I want to hear a joke").topics[0].name == "tell joke"
    before = digits_file.read_bytes()
    refused = RUNNER.invoke(app, ["demo", "--files", str(folder)])
    assert refused.exit_code == 2
    assert "--force" in refused.output
    assert digits_file.read_bytes() == before


@pytest.mark.parametrize("also", [["--json"], ["--picture", "demo.png"]])
def test_its_files_come_without_what_is_measured(tmp_path, monkeypatch, also):
    monkeypatch.chdir(tmp_path)
    refused = RUNNER.invoke(app, ["demo", "--files", "files", *also])
    assert refused.exit_code == 2
    assert "--files without" in refused.output
    assert os.listdir(tmp_path) == []
