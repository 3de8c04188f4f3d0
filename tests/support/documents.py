"""Documents as programs: run their blocks in order, and compare what they print with the page.

A `python` block runs in the document's one namespace. Each line of an `sh` block is a `discreet`
command, run by the one that is installed. A `text` block that follows a block with nothing but
blank lines between shows what it printed; `...` stands for any lines, or any part of a line.
"""

import contextlib
import io
import pathlib
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

COMMAND = pathlib.Path(sys.executable).with_name("discreet")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block that runs: its language, text and line, and what it is said to print."""

    language: str
    text: str
    line: int
    shown: str | None


def blocks(page):
    """Return the blocks of a page that run, in order."""
    found = list(_BLOCK.finditer(page))
    made = []
    for block, after in zip(found, [*found[1:], None], strict=False):
        if block[1] in ("python", "sh"):
            touches = after and after[1] == "text" and not page[block.end() : after.start()].strip()
            line = page.count("\n", 0, block.start()) + 1
            made.append(Block(block[1], block[2], line, after[2] if touches else None))
    return made


def run(path, folder):
    """Run a document's blocks, which write into `folder`, the current directory."""
    names = {}
    for block in blocks(path.read_text(encoding="utf-8")):
        where = f"{path.name}:{block.line}"
        if block.language == "python":
            printed = _python(block.text, names, where)
        else:
            printed = "".join(_command(line, folder, where) for line in block.text.splitlines())
        if block.shown is not None and not matches(block.shown, printed):
            raise AssertionError(f"{where} shows\n{block.shown}\nbut prints\n{printed}")
    return names


def matches(shown, printed):
    """Return whether a page shows what was printed; `...` is any lines, or any part of a line."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n"
        for line in _lines(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed))) is not None


def _lines(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def _python(code, names, where):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, where, "exec"), names)
    return printed.getvalue()


def _command(line, folder, where):
    name, *arguments = shlex.split(line)
    assert name == "discreet", f"{where}: {line}"
    done = subprocess.run(
        [COMMAND, *arguments], check=False, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{where}: {line}\n{done.stderr}"
    return done.stdout
