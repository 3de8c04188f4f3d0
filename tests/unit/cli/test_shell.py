"""Exit codes, sentences and tracebacks."""

import os
import subprocess
import sys

import numpy as np
import pytest
from data import unit_rows
from typer.testing import CliRunner

import discreet
from discreet._validate import Note
from discreet.cli import app, releases
from discreet.testing import Seeded

RUNNER = CliRunner()


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = discreet.build(
        unit_rows(20, 2), unit_rows(20, 2), epsilon=1, delta=1e-6, scale=1, entropy=Seeded(1)
    )
    made.save("memory.safetensors")


def raising(error):
    def load(path):
        raise error

    return load


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (discreet.InvalidInput("Expected this\nand that."), 2, "Expected this and that."),
        (PermissionError(13, "Permission denied", "memory.safetensors"), 2, "Permission denied"),
        (OSError("odd"), 2, "odd"),
        (MemoryError(), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("row 17 is secret"), 1, "a bug, sorry (ZeroDivisionError)"),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(memory, monkeypatch, error, code, said):
    monkeypatch.setattr(releases, "open_release", raising(error))
    result = RUNNER.invoke(app, ["card", "memory.safetensors"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "secret" not in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (discreet.InvalidInput("Expected this."), 2, "Expected this."),
        (MemoryError(), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted, nothing was written."),
        (SystemExit(143), 143, "terminated, nothing was written."),
        (ZeroDivisionError("row 17 is secret"), 1, "a bug, sorry (ZeroDivisionError)"),
    ],
)
def test_notes_of_the_library_follow_and_those_of_others_stay_unseen(
    memory, monkeypatch, error, code, said
):
    error.add_note("row 17 is secret")
    error.add_note(Note("Count it\nas spent."))
    monkeypatch.setattr(releases, "open_release", raising(error))
    result = RUNNER.invoke(app, ["card", "memory.safetensors"])
    assert result.exit_code == code
    [line] = result.stderr.splitlines()
    assert said in line
    assert line.endswith(" Count it as spent.")
    assert "secret" not in line


@pytest.mark.parametrize("error", [discreet.InvalidInput("wrong"), ZeroDivisionError("bug")])
def test_debug_lets_the_exception_through(memory, monkeypatch, error):
    monkeypatch.setattr(releases, "open_release", raising(error))
    result = RUNNER.invoke(app, ["--debug", "card", "memory.safetensors"])
    assert result.exception is error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["biuld"], "Did you mean 'build'?"),
        (["card"], "Missing argument 'MEMORY' (see discreet card --help)."),
        (["card", "a", "b"], "unexpected extra argument"),
        (["plan", "--rows", "many"], "--rows"),
        (["paper", "frobnicate"], "(see discreet paper --help)."),
        (["--frobnicate"], "No such option: --frobnicate"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_with_a_hint(arguments, said):
    result = RUNNER.invoke(app, arguments, prog_name="discreet")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr


def test_no_command_is_a_request_for_help():
    result = RUNNER.invoke(app, [])
    assert "Usage" in result.output
    assert "discreet:" not in result.output


def test_warnings_are_lines_on_standard_error(memory):
    result = RUNNER.invoke(app, ["card", "memory.safetensors", "--json"])
    assert result.exit_code == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("discreet: warning: memory.safetensors is NOT PRIVATE")
    assert result.stdout.startswith("{")


def test_results_go_to_standard_output_and_nothing_else_does(memory):
    np.save("queries.npy", unit_rows(3, 2))
    result = RUNNER.invoke(
        app, ["attend", "memory.safetensors", "queries.npy", "-o", "o.npy", "--json"]
    )
    assert result.stdout.startswith("{")
    assert "NOT PRIVATE" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_had(shell, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = RUNNER.invoke(app, ["--show-completion", shell], prog_name="discreet")
    assert result.exit_code == 0
    assert "_DISCREET_COMPLETE" in result.output


PLAN = "plan --rows 5000 --key-dim 16 --value-dim 8 --epsilon 1 --delta 1e-6"


# Where the output is written does not depend on the command: each with one way of buffering.
@pytest.mark.parametrize(
    ("line", "unbuffered"),
    [
        (PLAN, ""),
        (PLAN, "1"),
        (f"{PLAN} --json", "1"),
        ("card memory.safetensors", ""),
        ("--help", ""),
        ("--help", "1"),
        ("plan --help", "1"),
        ("paper", ""),
        ("--version", "1"),
        ("--show-completion bash", ""),
    ],
)
def test_a_reader_that_has_seen_enough_is_no_error(memory, line, unbuffered, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # whoever runs this
    reading, writing = os.pipe()
    os.close(reading)  # as head does, only sooner
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *line.split()],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    said = [each for each in done.stderr.splitlines() if "warning: memory.safetensors" not in each]
    assert (done.returncode, said) == (0, [])
