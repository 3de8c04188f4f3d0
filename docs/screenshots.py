"""Pictures of the command line for the documents: commands are really run, in a pseudo-terminal.

Run: python docs/screenshots.py [--out docs/screenshots]

The rows are generated, in a folder that is deleted afterwards; what the commands print is drawn as
SVG that loads no font from elsewhere.
"""

import argparse
import dataclasses
import fcntl
import io
import os
import pathlib
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap

import numpy as np
from rich.console import Console
from rich.text import Text

WIDTH = 100
HERE = pathlib.Path(__file__).parent

SPEND = "--epsilon 1 --delta 1e-6"
COMMANDS = {
    "plan": f"discreet plan --rows 50000 --key-dim 32 --value-dim 4 {SPEND}",
    # Not the scale that plan recommends: at 15.2, compare calls the answers for these rows noise,
    # because they vary in all 32 directions and plan assumes 11. 3.8 is the smallest of its table.
    "build": f"discreet build keys.npy values.npy {SPEND} --scale 3.8 -o memory.safetensors",
    "card": "discreet card memory.safetensors",
    "compare": "discreet compare memory.safetensors keys.npy values.npy queries.npy",
}

# Rich's own template loads a font from a server. Letters are placed one by one, so any will do.
TEMPLATE = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{
  font: {char_height}px/{line_height}px ui-monospace, SFMono-Regular, Menlo, Consolas,
    "DejaVu Sans Mono", monospace;
}}
.{unique_id}-title {{ font: bold 18px system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

# What a terminal does not print: a colour (kept), a movement, a switch, or the end of a line.
CONTROL = re.compile(
    r"(\x1b\[[0-9;]*m)|\x1b\[([0-9]*)A|(\x1b\[[0-9]*K)|\x1b\[[?0-9;]*[a-zA-Z]|(\r?\n)|(\r)"
)


@dataclasses.dataclass
class Screen:
    """As much of a terminal as progress bars need: lines that can be gone back to and rewritten."""

    lines: list[str] = dataclasses.field(default_factory=lambda: [""])
    row: int = 0
    rewrite: bool = False

    def feed(self, text: str) -> None:
        """Print text with its escape sequences."""
        at = 0
        for match in CONTROL.finditer(text):
            self._write(text[at : match.start()])
            at = match.end()
            colour, up, erase, newline, carriage = match.groups()
            if colour:
                self._write(colour)
            elif up is not None:
                self.row = max(self.row - int(up or 1), 0)
            elif erase:
                self.lines[self.row] = ""
            elif newline:
                self.row, self.rewrite = self.row + 1, False
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif carriage:
                self.rewrite = True
        self._write(text[at:])

    def _write(self, text: str) -> None:
        if text:
            self.lines[self.row] = text if self.rewrite else self.lines[self.row] + text
            self.rewrite = False

    def __str__(self) -> str:
        return "\n".join(self.lines).rstrip()


def make_rows(folder: pathlib.Path, rows: int = 50_000) -> None:
    """Write example keys, values and queries: unit vectors around a few directions."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 32))
    kinds = rng.integers(4, size=rows)
    keys = centres[kinds] + rng.normal(size=(rows, 32))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    np.save(folder / "keys.npy", keys)
    np.save(folder / "values.npy", np.eye(4)[kinds])
    np.save(folder / "queries.npy", keys[:200])


def run(command: str, folder: pathlib.Path) -> str:
    """Return what a command prints on a terminal, with its colours; exit if it fails."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    arguments = shlex.split(command)
    assert arguments[0] == "discreet"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        pieces = []
        with open(ours, "rb", buffering=0) as terminal:
            try:
                while piece := terminal.read(4096):
                    pieces.append(piece)
            except OSError:  # Linux ends the reading so, when the other side has closed
                pass
    printed = b"".join(pieces).decode()
    if process.returncode:
        sys.exit(f"{command}: exit code {process.returncode}\n{printed}")
    if str(folder) in printed or str(HERE.parent) in printed:
        sys.exit(f"{command}: names a folder of this machine\n{printed}")
    return printed


def draw(command: str, printed: str) -> str:
    """Return an SVG of a command and what it printed."""
    screen = Screen()
    screen.feed(printed)
    # An option and its value stay on one line.
    joined = re.sub(r" (-\S+) (?!-)", " \\1\N{NO-BREAK SPACE}", command)
    lines = textwrap.wrap(
        joined, WIDTH - 4, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
    )
    shown = " \\\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.assemble(("$ ", "bold green"), (shown, "bold")))
    console.print(Text.from_ansi(str(screen)), end="\n\n")  # room for what hangs below the line
    name = " ".join(command.split()[:2])
    return console.export_svg(title=name, code_format=TEMPLATE, unique_id=name.replace(" ", "-"))


def main() -> None:
    """Run all commands and write their pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "screenshots")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_rows(folder)
        for shot, command in COMMANDS.items():
            (out / f"{shot}.svg").write_text(draw(command, run(command, folder)), encoding="utf-8")
            print(out / f"{shot}.svg")


if __name__ == "__main__":
    main()
