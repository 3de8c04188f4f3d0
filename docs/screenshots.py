"""Pictures of the command line for the documents: commands are really run, in a pseudo-terminal.

Run: python docs/screenshots.py [--out docs/screenshots]

Rows and commands are the tutorial's. What the commands print is drawn as SVG that loads no font
from elsewhere.
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

from rich.console import Console
from rich.text import Text

WIDTH = 100
HERE = pathlib.Path(__file__).parent

SHOWN = ("plan", "build", "card", "compare")

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


def tutorial() -> tuple[str, dict[str, str]]:
    """Return the tutorial's code that writes the rows, and its first use of each command shown."""
    page = (HERE / "tutorial.md").read_text(encoding="utf-8")
    rows = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    lines = re.findall(r"^discreet .*$", page, re.MULTILINE)
    return rows, {name: next(line for line in lines if line.split()[1] == name) for name in SHOWN}


def make_rows(folder: pathlib.Path) -> None:
    """Write the tutorial's keys, values and queries."""
    subprocess.run([sys.executable, "-c", tutorial()[0]], cwd=folder, check=True)


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
        for shot, command in tutorial()[1].items():
            (out / f"{shot}.svg").write_text(draw(command, run(command, folder)), encoding="utf-8")
            print(out / f"{shot}.svg")


if __name__ == "__main__":
    main()
