"""The `discreet` command. Thin: it parses, calls the library and prints.

Commands import what they need when they run, so that `discreet --help` is instant.
"""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet._version import __version__

app = typer.Typer(
    help="Differentially private attention over private keys and values.",
    no_args_is_help=True,
    add_completion=True,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 (typer calls it with the flag)
    if asked:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options of the command as a whole."""


@app.command()
def demo(
    picture: Annotated[
        Path, typer.Option(help="Where to draw accuracy against ε (needs matplotlib).")
    ] = Path("discreet-demo.png"),
    splits: Annotated[
        int, typer.Option(min=2, help="Random splits of the data to average over.")
    ] = 8,
) -> None:
    """Build private memories of handwritten digits, and show card, accuracy and alternatives."""
    from discreet.cli.demo import show
    from discreet.errors import DiscreetError

    try:
        show(picture, splits=splits)
    except DiscreetError as error:
        typer.echo(f"discreet: {error}", err=True)
        raise typer.Exit(2) from None


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters still works
    app()
