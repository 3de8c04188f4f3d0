"""The `discreet` command. Thin: it parses, calls the library and prints.

Commands import what they need when they run, so that `discreet --help` is instant.
"""

import io
import sys
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
def demo() -> None:
    """Show the noise against its theory, and what composition costs."""
    from discreet.cli.demo import show

    show()


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters still works
    app()
