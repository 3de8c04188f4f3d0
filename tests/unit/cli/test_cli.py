"""The command as a whole."""

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
