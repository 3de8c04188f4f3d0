import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app, digits

RUNNER = CliRunner()


def test_version():
    result = RUNNER.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"discreet {discreet.__version__}\n"


def test_help_lists_the_commands():
    result = RUNNER.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_no_command_shows_the_help_and_an_unknown_one_is_an_error():
    assert "Usage" in RUNNER.invoke(app, []).output
    assert RUNNER.invoke(app, ["frobnicate"]).exit_code == 2


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


def test_the_demo_shows_card_accuracy_and_alternatives(shown):
    text, folder = shown
    for part in (
        "protects",
        "guarantee",
        "1,350",
        "exact attention",
        "DP-SGD",
        "bytes of",
        "discreet-demo.html",
        "demo.png",
    ):
        assert part in text
    for each in digits.dpsgd_accuracy():
        assert f"{each.mean:.3f}" in text
    assert "NOT PRIVATE" not in text
    assert sorted(os.listdir(folder)) == ["demo.png", "discreet-demo.html"]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


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


def test_every_one_hot_value_has_the_public_norm():
    split = digits.splits(1)[0]
    norms = (split.values**2).sum(axis=1)
    assert norms == pytest.approx(digits.VALUE_NORM**2)
