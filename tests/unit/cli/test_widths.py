"""What commands print fits on a narrow terminal: nothing is cut, no table is folded."""

import fcntl
import functools
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest
from data import unit_rows
from typer.testing import CliRunner

from discreet.cli import app
from discreet.sklearn import PrivateClassifier
from discreet.tables import Schema

RUNNER = CliRunner()
SPEND = "--epsilon 1 --delta 1e-6"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

COMMANDS = {
    "plan": f"plan --rows 20000 --key-dim 8 --value-dim 3 {SPEND} --scale 2",
    "a plan of large numbers": f"plan --rows 1000000000 --key-dim 64 --value-dim 64 {SPEND} "
    "--scale 0.1234567 --kernel taylor",
    "a plan of too few rows": f"plan --rows 10 --key-dim 384 --value-dim 64 {SPEND} --scale 9",
    "plan-regress": f"plan-regress --rows 2000 --key-dim 3 {SPEND}",
    "plan-fit": f"plan-fit --rows 20000 --key-dim 64 --classes 10 {SPEND}",
    "card": "card memory.safetensors",
    "compare": "compare memory.safetensors keys.npy values.npy keys.npy",
    "ledger show": "ledger show budget.db",
    "stream show": "stream show tickets",
    "paper distance": "paper distance --rows 200",
    "schema show": "schema show schema.toml",
    "shapes": "shapes people.safetensors",
    "corpus ask": "corpus ask tickets.safetensors cards",
    "corpus map": "corpus map tickets.safetensors",
    "corpus card": "corpus card tickets.safetensors",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    np.save(path / "keys.npy", unit_rows(60, 5))
    np.save(path / "values.npy", unit_rows(60, 3))
    table = {"age": np.arange(90.0), "job": ["a nurse who works at night", "clerk", "other"] * 30}
    columns = Schema({"age": (0, 90), "job": table["job"][:3]})
    (path / "schema.toml").write_text(columns.to_toml(), encoding="utf-8")
    model = PrivateClassifier(1.0, 1e-6, classes=["a", "b", "c"], columns=columns)
    model.fit(table, ["a", "b", "c"] * 30).save(path / "people.safetensors")
    (path / "tickets.csv").write_text("text\n" + "my card has not arrived\n" * 300, "utf-8")
    (path / "topics.txt").write_text("card arrival\nexchange rates and their fees\n", "utf-8")
    before = os.getcwd()
    os.chdir(path)
    build = f"build keys.npy values.npy {SPEND} --scale 2 --rows-hint 60 -o"
    stream = f"stream create tickets --key-file key --steps 2000000 --rows-hint 90000 {SPEND}"
    stream += " --key-dim 5 --value-dim 3"
    count = "--ledger budget.db --dataset clinic --analyst eve"
    corpus = "corpus build tickets.csv --topics topics.txt --words"
    for line in (
        "ledger create budget.db clinic --epsilon 2.3456 --delta 1e-5",
        "ledger limit budget.db clinic eve --epsilon 1.2345 --delta 2e-6",
        f"{build} memory.safetensors {count}",
        f"{stream} --by-record --participations 30 --separation 7 --window 1234567",
        "stream append tickets --no-rows --key-file key --step 2026-03-01",
        f"{corpus} --encoder static --epsilon 1 -o tickets.safetensors",
    ):
        assert RUNNER.invoke(app, line.split()).exit_code == 0
    yield path
    os.chdir(before)


@functools.cache
def printed(name, **environment):
    """What a command prints; the same for the same environment, so it is run once in each."""
    result = RUNNER.invoke(app, COMMANDS[name].split(), env=environment)
    assert result.exit_code == 0, result.output
    return COLOUR.sub("", result.stdout)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_cut_or_too_wide(folder, name, width):
    narrow = printed(name, COLUMNS=str(width), FORCE_COLOR="1")
    assert max(map(len, narrow.splitlines())) <= width
    assert "…" not in narrow
    if not name.startswith("paper"):  # whose noise is new each time
        assert narrow.split() == printed(name).split()


@pytest.mark.parametrize("name", ["plan", "card", "ledger show", "plan-fit", "plan-regress"])
def test_a_file_holds_the_same_whatever_the_terminal(folder, name):
    assert printed(name, COLUMNS="60") == printed(name, COLUMNS="200") == printed(name)


def on_a_terminal(command, *, width, folder):
    """Return what a command prints where there is a terminal, and not only said to be one."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: each for name, each in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-m", "discreet", *command.split()],
        cwd=folder,
        env={**environment, "TERM": "xterm"},
        stdout=theirs,
    ) as process:
        os.close(theirs)
        pieces = []
        with open(ours, "rb", buffering=0) as terminal:
            try:
                while piece := terminal.read(4096):
                    pieces.append(piece)
            except OSError:  # Linux ends the reading so, when the other side has closed
                pass
    assert process.returncode == 0
    return COLOUR.sub("", b"".join(pieces).decode()).replace("\r\n", "\n")


def test_a_plan_on_a_narrow_terminal(folder):
    shown = on_a_terminal(COMMANDS["plan"], width=60, folder=folder)
    assert max(map(len, shown.splitlines())) <= 60
    headings = ["ε", "scale", "s/e", "±", "noise", "kernel", "features"]
    assert headings in [line.split() for line in shown.splitlines()]
    [chosen] = [line for line in shown.splitlines() if re.match(r"> {2,}[\d.]+ ", line)]
    assert chosen.split()[1:3] == ["1", "2"]
    [best] = [line for line in shown.splitlines() if re.match(r" \* +[\d.]+ ", line)]
    assert f"(recommended: {best.split()[2]}," in shown
    legend = shown.rpartition("\n\n")[2]
    for heading in headings[2:]:  # ε and scale are said above
        assert re.search(rf"^{heading} ", legend, re.MULTILINE)
