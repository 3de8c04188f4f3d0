"""Every example in a help text runs as it is printed."""

import ast
import dataclasses
import pathlib
import shlex

import numpy as np
import pyarrow as pa
import pytest
import typer
from data import unit_rows
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.features import registry
from discreet.features.columns import TableColumns
from discreet.readers.least_squares.mechanism import LeastSquaresOptions
from discreet.readers.softmax.mechanism import SoftmaxOptions
from discreet.sklearn import PrivateClassifier

RUNNER = CliRunner()
PAGE = pathlib.Path(__file__).parents[3] / "docs" / "cli.md"


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def example(command):
    return " ".join(command.help.partition("Example: ")[2].split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_help_for_every_option(name):
    assert example(COMMANDS[name]).startswith(f"discreet {name}")
    for option in COMMANDS[name].params:
        assert option.name == "help" or option.help, option.name


@pytest.mark.parametrize("name", ["", "paper", "ledger", "stream", "schema", "corpus", *COMMANDS])
def test_a_flag_takes_no_value_and_help_shows_none(name):
    for width in ("60", "80"):
        shown = RUNNER.invoke(app, [*name.split(), "--help"], env={"COLUMNS": width})
        assert shown.exit_code == 0
        assert "bool" not in shown.output.lower()
        assert "…" not in shown.output
        assert all(len(line) <= int(width) for line in shown.output.splitlines())
    assert "bool" not in PAGE.read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("name", ["plan", "build"])
def test_kernels_are_offered_by_all_names_that_the_library_takes(name):
    [kernel] = [each for each in COMMANDS[name].params if each.name == "kernel"]
    assert kernel.help == "auto, or a kernel by name (minimax, fourier, ...)."
    offered = [each.value for each in kernel.shell_complete(typer.Context(COMMANDS[name]), "")]
    with pytest.raises(discreet.InvalidInput) as refused:
        discreet.plan(rows=9, key_dim=2, value_dim=2, epsilon=1, delta=1e-6, kernel="none")
    _, _, names = str(refused.value).partition("one of ")
    assert sorted(offered) == sorted(ast.literal_eval(names.removesuffix(".")))


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("plan-fit", SoftmaxOptions),
        ("fit", SoftmaxOptions),
        ("plan-regress", LeastSquaresOptions),
        ("regress", LeastSquaresOptions),
    ],
)
def test_options_of_models_are_the_library_s_own(name, library):
    """Names of features, all of them, and defaults, which the command line writes out again."""
    options = {each.name: each for each in COMMANDS[name].params}
    context = typer.Context(COMMANDS[name])
    offered = [each.value for each in options["features"].shell_complete(context, "")]
    # Features of a table with a schema are made of the schema, and have no name to ask for.
    kinds = [kind for kind in registry.FEATURES.kinds if kind is not TableColumns]
    names = ([*kind.aliases, kind.kind][0] for kind in kinds)
    assert offered == [registry.AUTO, *names]
    assert all(kind in options["features"].help for kind in offered)
    for field in dataclasses.fields(library):
        if field.default is not dataclasses.MISSING and field.name in options:
            assert options[field.name].default == field.default, field.name


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("keys.npy", unit_rows(400, 5))
    np.save("values.npy", unit_rows(400, 3, seed=1))
    np.save("queries.npy", unit_rows(7, 5, seed=2))
    np.save("points.npy", unit_rows(400, 5, seed=3))
    labels = np.array(["cat", "dog", "bird"])[np.arange(400) % 3]
    columns = {"keys": list(unit_rows(400, 5)), "label": labels}
    parquet.write_table(pa.table(columns), "data.parquet")
    pathlib.Path("public.csv").write_text("age,job\n30,nurse\n40,clerk\n", encoding="utf-8")
    pathlib.Path("topics.txt").write_text("card arrival\nexchange rate\n", encoding="utf-8")
    tickets = "text,team\n" + "my card has not arrived,card\nwrong exchange rate,money\n" * 200
    pathlib.Path("tickets.csv").write_text(tickets, encoding="utf-8")
    people = {"age": np.arange(400) % 70, "job": labels}
    model = PrivateClassifier(1.0, 1e-6, classes=[0, 1], columns={"age": (0, 70), "job": "private"})
    model.fit(people, np.arange(400) % 2).save("people.safetensors")


# What needs more than a few seconds to run has tests of its own.
LONG = ("demo", "paper report")


# An id that is made up; tests/unit/cli/test_ledger.py has a real one.
UNREAL = ("ledger void",)

# What does not end by itself; tests/unit/serve/test_running.py runs it.
ENDLESS = ("serve",)


@pytest.mark.docs
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in LONG + UNREAL + ENDLESS])
def test_examples_run_as_printed(prepared, name):
    before = [{"predict": "fit", "query": "distances"}.get(name, "build")]
    before += ["schema guess"] if name.startswith("schema ") else []
    before += ["ledger create"] if name.startswith("ledger ") else []
    before += ["stream create", "stream append"] if name.startswith("stream ") else []
    before += ["corpus build"] if name.startswith("corpus ") else []
    for line in dict.fromkeys(example(COMMANDS[each]) for each in [*before, name]):
        program, *arguments = shlex.split(line)
        assert program == "discreet"
        result = RUNNER.invoke(app, arguments)
        assert result.exit_code == 0, f"{line}: {result.output}"


@pytest.mark.docs
@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_long_examples_run_as_printed(prepared, name):
    _, *arguments = shlex.split(example(COMMANDS[name]))
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
