"""Messages of the command line speak of options."""

from pathlib import Path

import numpy as np
import pytest
import typer
from data import unit_rows
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.shell import Typed, in_options
from discreet.errors import InvalidInput

RUNNER = CliRunner()
SPEND = ["--epsilon", "1", "--delta", "1e-6"]
PLAN = ["plan", "--rows", "100", "--key-dim", "4", "--value-dim", "4", *SPEND]
BUILD = ["build", "keys.npy", "values.npy", "-o", "memory.safetensors", *SPEND]
SCALE = ["--scale", "1"]
FIT = ["fit", "data.npz", "--classes", "0,1", "-o", "model.safetensors", *SPEND]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("keys.npy", unit_rows(40, 5))
    np.save("values.npy", unit_rows(40, 3, seed=1))
    np.savez("data.npz", keys=unit_rows(40, 5), label=np.arange(40) % 2)


def said(*arguments):
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    return line.removeprefix("discreet: ")


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ([*PLAN, "--rows", "0"], "Expected --rows 0 to be a whole"),
        ([*PLAN, "--key-dim", "0"], "Expected --key-dim 0 to be a whole"),
        ([*PLAN, "--heads", "0"], "Expected --heads 0 to be a whole"),
        ([*PLAN, "--kernel", "rbf"], "Expected --kernel 'rbf' to be one of"),
        (
            [*PLAN, "--neighbours", "none"],
            "Expected --neighbours 'none' to be one of ['add_remove', 'replace'].",
        ),
        (
            [*PLAN, "--scale", "1e9"],
            "Expected --scale * --key-norm * --query-norm = 1000000000.0 to be a finite",
        ),
        (
            [*PLAN, "--group-rows", "2"],
            "Expected --group-rows 2.0 to be 1 unless groups are given.",
        ),
        (
            BUILD,
            "Expected --scale, or --rows-hint: a public, rounded number of rows; never a count.",
        ),
        ([*PLAN, "--scale", "nan"], "Expected --scale nan to be a finite number"),
        ([*PLAN, "--kernel", "landmarks"], "Expected --kernel 'landmarks' to come with --public."),
        (
            [*FIT, "--features", "near_landmarks"],
            "Expected --features 'near_landmarks' to come with --public.",
        ),
        ([*BUILD, "--dataset", "x"], "Expected --dataset 'x' to come with --ledger."),
        ([*BUILD, *SCALE, "--ledger", "b.db"], "Expected --dataset, the name that the rows have"),
        (
            [*BUILD, *SCALE, "--public", "values.npy"],
            "Expected --public values.npy, of shape (40, 3), to be as wide as keys are, 5.",
        ),
        ([*BUILD, *SCALE, "--rows-hint", "0"], "Expected --rows-hint 0 to be a whole"),
        ([*BUILD, *SCALE, "--value-norm", "inf"], "Expected --value-norm inf to be a finite"),
        ([*BUILD, *SCALE, "--key-norm", "1e40"], "Expected --key-norm 1e+40 to be a finite"),
        (["paper", "softmax", "--eps-s", "0"], "Expected --eps-s 0.0 to be a finite"),
        (["paper", "softmax", "-c", "0"], "Expected -c 0.0 to be a finite"),
        (["paper", "softmax", "--adaptive", "--p-f", "0"], "Expected --p-f 0.0 to be a finite"),
        (["paper", "attention", "--bound", "0"], "Expected --bound 0.0 to be a finite"),
        (["paper", "distance", "--bound", "0"], "Expected --bound 0.0 to be a finite"),
        (["paper", "distance", "--power", "300"], "Expected --power 300 to be a whole"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_typed(arguments, start):
    assert said(*arguments).startswith(start)


def test_a_warning_is_a_line():
    result = RUNNER.invoke(app, [*BUILD, *SCALE, "--rows-hint", "400", "--delta", "0.004"])
    assert result.exit_code == 0, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("discreet: warning: ")
    assert "0.004 is not below one over the number of rows" in line


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        # Derived from what was given, and not what was given.
        (["paper", "attention", "--rows", "64", "--epsilon", "1e9"], "Expected epsilon=18438."),
        # Arguments that this command has no option for.
        ([*PLAN, "--kernel", "minimax", "--scale", "40"], "Expected eps_s=0.05 to be reachable"),
        (["paper", "softmax", "--upper", "1e99"], "Expected scale * key_norm * query_norm=1"),
        # Files, and names within them.
        (["build", "rows_hint", *BUILD[2:]], "Expected rows_hint to be a file, and"),
        (["build", "epsilon=1.0", *BUILD[2:]], "Expected epsilon=1.0 to be a file, and"),
        ([*BUILD[:4], "key_norm/m", *BUILD[5:]], "Expected key_norm to be a directory"),
        (
            ["build", "x.npz", *BUILD[2:]],
            "Expected x.npz to hold an array 'keys'; it has: key_norm",
        ),
        ([*BUILD, "--kernel", "rows_hint"], "Expected --kernel 'rows_hint' to be one of"),
    ],
)
def test_what_only_looks_like_an_option_is_left_alone(arguments, start):
    np.savez("x.npz", key_norm=np.ones(3), rows_hint=np.ones(3))
    assert said(*arguments, *(SCALE if arguments[0] == "build" else [])).startswith(start)


OPTIONS = {
    "scale": Typed("--scale", 2.0, "How sharp answers are."),
    "rows_hint": Typed("--rows-hint", None),
    "key_norm": Typed("--key-norm", 1.5),
    "public_rows": Typed("--public", Path("rows.npy")),
}


def about(argument, value, *, needs=None):
    return InvalidInput(
        "As the library says it.", argument=argument, value=value, wanted="other", needs=needs
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (about("scale", 2.0), "Expected --scale 2.0 to be other."),
        (about("scale * key_norm", 3.0), "Expected --scale * --key-norm = 3.0 to be other."),
        (about("scale", 2.0, needs="rows_hint"), "Expected --scale 2.0 to come with --rows-hint."),
        (about("scale", 2.0, needs="groups"), "Expected --scale 2.0 to be other."),
        (about("rows_hint", None), "Expected --rows-hint, other."),
        (
            about("rows_hint", None, needs="scale"),
            "Expected --rows-hint, or --scale: how sharp answers are.",
        ),
        (
            about("public_rows", (3, 4)),
            "Expected --public rows.npy, of shape (3, 4), to be other.",
        ),
    ],
)
def test_what_an_error_carries_becomes_a_sentence(error, sentence):
    assert in_options(error, OPTIONS) == sentence


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("As the library says it."),
        about("scale", 3.0),  # worked out from what was typed
        about("scale", "2.0"),
        about("scales", 2.0),
        about("scale * other", 2.0),
        about("kernel.scale", 2.0),
    ],
)
def test_all_else_is_said_as_the_library_says_it(error):
    assert in_options(error, OPTIONS) == "As the library says it."


def commands(group):
    for each in group.commands.values():
        yield from commands(each) if hasattr(each, "commands") else [each]


def test_every_command_speaks_so():
    kinds = {type(each).__name__ for each in commands(typer.main.get_command(app))}
    assert kinds == {"Command"}
