import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app

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


@pytest.mark.parametrize("width", ["60", "100"])
def test_a_poor_terminal_is_enough(width):
    poor = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "TERM": "dumb", "COLUMNS": width}
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "demo"],
        env={**os.environ, **poor},
        capture_output=True,
        check=True,
        text=True,
    )
    bars = [line for line in done.stdout.splitlines() if " / " in line]
    assert len(bars) > 30
    assert max(len(line) for line in bars) <= int(width)


def test_demo_shows_noise_and_accounts():
    result = RUNNER.invoke(app, ["demo"])
    assert result.exit_code == 0
    for part in (
        "Rounded Gaussian",
        "Discrete Laplace",
        "Truncated Laplace",
        "1.4145",
        "1.8035",
        "4.2247",
    ):
        assert part in result.output
