"""Messages of the command line speak of options."""

import numpy as np
import pytest
import typer
from data import unit_rows
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.wording import Typed, in_flags, in_options

RUNNER = CliRunner()
SPEND = ["--epsilon", "1", "--delta", "1e-6"]
PLAN = ["plan", "--rows", "100", "--key-dim", "4", "--value-dim", "4", *SPEND]
BUILD = ["build", "keys.npy", "values.npy", "-o", "memory.safetensors", *SPEND]
SCALE = ["--scale", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("keys.npy", unit_rows(40, 5))
    np.save("values.npy", unit_rows(40, 3, seed=1))


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
        (BUILD, "Expected a missing --scale to come with --rows-hint, a public (rounded) number"),
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


def test_a_warning_names_options_too():
    result = RUNNER.invoke(app, [*BUILD, *SCALE, "--rows-hint", "400", "--delta", "0.004"])
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("discreet: warning: --delta 0.004 is not below one over")


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
    "rows": Typed("--rows", 5),
    "scale": Typed("--scale", 2.0),
    "rows_hint": Typed("--rows-hint", None),
    "key_norm": Typed("--key-norm", 1.5),
}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("raise rows_hint.", "raise --rows-hint."),
        ("raise rows_hint", "raise --rows-hint"),
        ("one of (rows_hint, scale)", "one of (--rows-hint, scale)"),
        ("give `scale` or `rows_hint`", "give `--scale` or `--rows-hint`"),
        ("too many: rows=5.", "too many: --rows 5."),
        ("(rows=5, key_norm=1.5)", "(--rows 5, --key-norm 1.5)"),
        ("scale * key_norm=3.0", "--scale * --key-norm = 3.0"),
    ],
)
def test_names_of_options_become_options(message, expected):
    assert in_options(message, OPTIONS) == expected


@pytest.mark.parametrize(
    "message",
    [
        "5 rows, at a scale of 2.0",
        "rows = 5",
        "rows=50",
        "rows=5e3",
        "first_rows=5",
        "privacy.rows=5",
        "queries.rows",
        "data/rows=5",
        "rows_hint.npy",
        "rows_hint:name",
        "data/rows_hint",
        "my-rows_hint",
        "rows_hints",
        "the kernel's 'rows_hint' and \"rows_hint\"",
        "scale * other=3.0",
        "group_rows=5",
    ],
)
def test_all_else_stays(message):
    assert in_options(message, OPTIONS) == message


def commands(group):
    for each in group.commands.values():
        yield from commands(each) if hasattr(each, "commands") else [each]


def test_every_command_speaks_so():
    kinds = {type(each).__name__ for each in commands(typer.main.get_command(app))}
    assert kinds == {"Command"}


def test_advice_of_a_plan_names_flags():
    said = (
        "allow more features (features=4096), or give public_rows; scale=2.5 would do; goal='rank'"
    )
    wanted = (
        "allow more features (--features 4096), or give --public; --scale 2.5 would do; --goal rank"
    )
    assert in_flags(said) == wanted
    assert in_flags("exp(scale*key_norm) at eps_s = 0.05") == "exp(scale*key_norm) at eps_s = 0.05"
