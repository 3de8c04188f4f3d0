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
    """What the demo prints in a poor terminal, and the picture that it draws."""
    picture = tmp_path_factory.mktemp("demo") / "demo.png"
    poor = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "TERM": "dumb", "COLUMNS": "90"}
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "demo", "--splits", "2", "--picture", str(picture)],
        env={**os.environ, **poor},
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout, picture


def test_the_demo_shows_card_accuracy_and_alternatives(shown):
    text, picture = shown
    for part in (
        "protects",
        "guarantee",
        "1,350",
        "exact attention",
        "DP-SGD",
        "bytes of",
        str(picture),
    ):
        assert part in text
    for each in digits.dpsgd_accuracy():
        assert f"{each.mean:.3f}" in text
    assert "NOT PRIVATE" not in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_demo_needs_no_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "discreet.cli.pictures", None)
    result = RUNNER.invoke(app, ["demo", "--splits", "2", "--picture", str(tmp_path / "no.png")])
    assert result.exit_code == 0
    assert "discreet[plots]" in result.output
    assert not (tmp_path / "no.png").exists()


def test_without_the_digits_the_demo_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    result = RUNNER.invoke(app, ["demo"])
    assert result.exit_code == 2
    assert "discreet[sklearn]" in result.output
    assert "Traceback" not in result.output


def test_every_one_hot_value_has_the_public_norm():
    split = digits.splits(1)[0]
    norms = (split.values**2).sum(axis=1)
    assert norms == pytest.approx(digits.VALUE_NORM**2)
