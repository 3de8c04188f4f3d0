"""Documents as programs: run their blocks in order, and compare what they print with the page.

A `python` block runs in the document's one namespace. Each line of an `sh` block is a `discreet`
command; it runs in this process, but for builds on several workers. Each line of a `bash` block is
a pipeline; without its programs it is passed over. A `text` block that follows a block with nothing
but blank lines between shows what it printed; `...` stands for any lines, or any part of a line.

Noise is drawn anew each time. A block that shows some is fenced as `text noisy`: `a ± b` agrees
with numbers within 3·b of a (`a% ± b%` is rounded, so one unit more), any other number with a
decimal point with those that are at most 1.9 times as large or as small, or one unit of its last
digit away. All else is exact. So show a figure whose noise averages out, from a run near the
median: half or twice as much fails, chance does not.
"""

import contextlib
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

from typer.testing import CliRunner

from discreet.cli import app

COMMAND = pathlib.Path(sys.executable).with_name("discreet")
_BLOCK = re.compile(r"^```(\w+)( noisy)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")

# How many times its ± a figure may be off, and how many times as large or small any other may be.
MOST_MARGINS = 3
LARGEST_RATIO = 1.9


@dataclass(frozen=True)
class Block:
    """A fenced block that runs: its language, text and line, and what it is said to print."""

    language: str
    text: str
    line: int
    shown: str | None
    noisy: bool


def blocks(page):
    """Return the blocks of a page that run, in order."""
    found = list(_BLOCK.finditer(page))
    made = []
    for block, after in zip(found, [*found[1:], None], strict=False):
        if block[1] in ("python", "sh", "bash"):
            touches = after and after[1] == "text" and not page[block.end() : after.start()].strip()
            line = page.count("\n", 0, block.start()) + 1
            shown, noisy = (after[3], bool(after[2])) if touches else (None, False)
            made.append(Block(block[1], block[3], line, shown, noisy))
    return made


def run(path, folder):
    """Run a document's blocks, which write into `folder`, the current directory."""
    names = {}
    for block in blocks(path.read_text(encoding="utf-8")):
        where = f"{path.name}:{block.line}"
        if block.language == "python":
            printed = _python(block.text, names, where)
        elif block.language == "bash":
            text = block.text.replace("\\\n", "")
            if not _has_programs(text):
                continue
            printed = "".join(_pipeline(line, folder, where) for line in text.splitlines())
        else:
            printed = "".join(_command(line, folder, where) for line in block.text.splitlines())
        if block.shown is not None and not matches(block.shown, printed, noisy=block.noisy):
            raise AssertionError(f"{where} shows\n{block.shown}\nbut prints\n{printed}")
    return names


def matches(shown, printed, *, noisy=False):
    """Return whether a page shows what was printed; `...` is any lines, or any part of a line."""
    pattern, numbers = "", []
    for line in _lines(shown):
        if line == "...":
            pattern += r"(?:.*\n)*?"
            continue
        at = 0
        for number in _NUMBER.finditer(line) if noisy else ():
            pattern += _text(line[at : number.start()]) + f"({_NUMBER.pattern})"
            margin = re.match(rf"(%?) ± ({_NUMBER.pattern})", line[number.end() :])
            numbers.append((number[0], margin and margin[2], bool(margin and margin[1])))
            at = number.end()
        pattern += _text(line[at:]) + r"\n"
    found = re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed)))
    return found is not None and all(
        _agree(figure, other, margin, percent=percent)
        for (figure, margin, percent), other in zip(numbers, found.groups(), strict=True)
    )


def _text(shown):
    return ".*?".join(map(re.escape, shown.split("...")))


def _agree(shown, printed, margin, *, percent):
    """Return whether two numbers, as they are written, are the same but for noise."""
    if shown == printed:
        return True
    one, other = (float(number.replace(",", "")) for number in (shown, printed))
    decimals = len(shown.partition(".")[2].partition("e")[0])
    if margin:
        rounded = 1.01 * 10.0**-decimals if percent else 0.0
        return abs(one - other) <= MOST_MARGINS * float(margin.replace(",", "")) + rounded
    if "." not in shown:
        return False
    near = "e" not in shown and abs(one - other) <= 1.01 * 10.0**-decimals
    low, high = sorted((abs(one), abs(other)))
    return near or (one * other > 0 and high <= LARGEST_RATIO * low)


def _lines(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def _python(code, names, where):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, where, "exec"), names)
    return printed.getvalue()


def _has_programs(text):
    parts = [
        part.split() for line in text.splitlines() for part in re.split(r" \| (?=[a-z])", line)
    ]
    return all(shutil.which(words[0], path=_path()) for words in parts)


def _path():
    return os.pathsep.join([str(COMMAND.parent), os.environ["PATH"]])


def _pipeline(line, folder, where):
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        check=False,
        cwd=folder,
        env={**os.environ, "PATH": _path()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{where}: {line}\n{done.stderr}"
    return done.stdout


def _command(line, folder, where):
    name, *arguments = shlex.split(line)
    assert name == "discreet", f"{where}: {line}"
    if "--workers" in arguments:  # they start from a program of their own
        done = subprocess.run(
            [COMMAND, *arguments], check=False, cwd=folder, capture_output=True, text=True
        )
        code, printed, said = done.returncode, done.stdout, done.stderr
    else:  # here, where everything is loaded already
        with contextlib.chdir(folder):
            result = CliRunner().invoke(app, arguments)
        code, printed, said = result.exit_code, result.stdout, result.stderr
    assert code == 0, f"{where}: {line}\n{said}"
    return printed
