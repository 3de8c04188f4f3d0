"""How the command behaves in a shell: exit codes, one sentence for an error, tracebacks on demand.

Exit codes: 0 done; 1 a bug in discreet; 2 something that was given is wrong (one sentence on
standard error says what); 130 interrupted; 143 terminated. In all but the first nothing was
written, unless that sentence names a file: a release that was paid for is kept.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from discreet._warn import Note, notes
from discreet.cli.wording import OTHER_NAMES, Typed, in_flags, in_options
from discreet.errors import DiscreetError, InvalidInput, MostlyNoiseWarning

Function = TypeVar("Function", bound=Callable[..., Any])

WRONG_INPUT = 2
INTERRUPTED = 130


class Kept(Note):
    """A note that says which file was written, although the command was stopped."""

    __slots__ = ()


class _PlainFlags:
    """What the help of commands and of groups of them has in common: a flag takes no value.

    Typer would print `<bool>` beside it, also beside its own `--help`.
    """

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (as in the base class)
        """Return arguments and options, flags without a type."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of what it is mixed into
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""


class Commands(Group):
    """The commands, with errors as sentences. `--debug` before a command shows tracebacks."""

    def main(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 (as in the base class)
        """Parse and run, and leave with an exit code."""
        try:
            code = super().main(*given, **{**named, "standalone_mode": False})
            sys.stdout.flush()
        except typer.Abort:
            code = INTERRUPTED
        except typer.TyperException as error:
            code = _refuse_usage(error)
        except OSError as error:  # of printing: all else has become a code
            code = _stop_printing(error)
        except SystemExit as stop:
            # rich and typer print helps and versions, and leave with 1 when a pipe breaks.
            if stop.code != 1 or not isinstance(stop.__context__, BrokenPipeError):
                raise
            code = _stop_printing(stop.__context__)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run one command."""
        with _sentences(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


class Command(_PlainFlags, TyperCommand):
    """One command. What the library says of its arguments is said of the command's options."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run it."""
        options = _typed(ctx)
        with _plain_warnings(options):
            try:
                return super().invoke(ctx)
            except InvalidInput as error:
                if not _speaks_of_files(error):
                    error.args = (in_options(str(error), options),)
                raise


class App(typer.Typer):
    """A group of commands, each of them a `Command`."""

    def __init__(self, **named: Any) -> None:  # noqa: ANN401
        super().__init__(**{"cls": Group, **named})

    def command(self, name: str | None = None, **named: Any) -> Callable[[Function], Function]:  # noqa: ANN401
        """Add one, as in the base class."""
        return super().command(name, **{"cls": Command, **named})


class Page(Console):
    """Standard output, in plain colours, and a pipe that breaks is for `Commands` to handle."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> None:
        """Raise what rich would turn into exit code 1."""
        raise BrokenPipeError


def clean_up_when_terminated() -> None:
    """Let SIGTERM and SIGHUP unwind the program, so that nothing half-written is left."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))


def listen_to_all() -> None:
    """Let a stream that the shell has closed swallow what is printed."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def say(text: str) -> None:
    """Print a line on standard error, where it does not get in the way of results."""
    with suppress(OSError):  # nobody listens
        typer.echo(f"discreet: {' '.join(printable(text).split())}", err=True)


def printable(text: str) -> str:
    """Return a text whose lines do nothing to a terminal but fill it."""
    return "".join(
        each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text
    )


@contextmanager
def already_written(path: Path) -> Iterator[None]:
    """Print about a file that is there; that printing fails does not change that."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        _stop_printing(error)
        say(f"{path} was written, but standard output is closed or full.")


def _stop_printing(error: OSError) -> int:
    """Print no more, and return an exit code: a reader that has seen enough is no error."""
    sys.stdout = _nowhere()
    if isinstance(error, BrokenPipeError):
        return 0
    say(_sentence(error))
    return WRONG_INPUT


def _refuse_usage(error: Any) -> int:  # noqa: ANN401 (typer's class for it is not public)
    """Print what is wrong with the command line, and where to read about it."""
    message = " ".join(error.format_message().split()).rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", "discreet")
    if message:  # without a command, the help has been printed
        say(f"{message} (see {path} --help).")
    return WRONG_INPUT


@contextmanager
def _sentences(*, debug: bool) -> Iterator[None]:
    """Turn exceptions into one sentence and an exit code, unless all is to be seen.

    What the library noted on them follows: a stop in the middle may have cost something.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        say(_stopped("interrupted", error))
        raise typer.Exit(INTERRUPTED) from None
    except SystemExit as error:  # terminated
        if notes(error):
            say(_stopped("terminated", error))
        raise
    except (typer.Exit, typer.Abort, typer.TyperException):
        raise
    except BrokenPipeError as error:
        raise typer.Exit(_stop_printing(error)) from None
    except Exception as error:
        if debug:
            raise
        say(_noted(_sentence(error), error))
        expected = isinstance(error, DiscreetError | OSError | MemoryError)
        raise typer.Exit(WRONG_INPUT if expected else 1) from None


def _noted(sentence: str, error: BaseException) -> str:
    return " ".join([sentence, *notes(error)])


def _stopped(how: str, error: BaseException) -> str:
    kept = any(isinstance(each, Kept) for each in notes(error))
    return _noted(f"{how}." if kept else f"{how}, nothing was written.", error)


def _sentence(error: Exception) -> str:
    if isinstance(error, DiscreetError):
        return str(error)
    if isinstance(error, OSError):
        about = "" if error.filename is None else f"{error.filename}: "
        return f"{about}{error.strerror or error}."
    if isinstance(error, MemoryError):
        return "there is not enough memory; .npy files are mapped and need the least."
    # Not the message: it may quote a private value.
    return (
        f"a bug, sorry ({type(error).__name__}); discreet --debug shows where, for your eyes only, "
        "since a traceback may quote private values."
    )


@contextmanager
def _plain_warnings(options: dict[str, Typed]) -> Iterator[None]:
    """Show what the library warns of as one line each."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, category, *_, **__: say(
            "warning: "
            + (
                in_flags(str(message))  # advises what to type
                if category is MostlyNoiseWarning
                else in_options(str(message), options)
            )
        )
        yield


def _typed(ctx: Any) -> dict[str, Typed]:  # noqa: ANN401
    """Return the options of the command that runs, by the names that the library has for them."""
    options = {
        each.name: Typed(max(each.opts, key=len), ctx.params.get(each.name))
        for each in ctx.command.params
        if each.param_type_name == "option"
    }
    others = {name: options[option] for name, option in OTHER_NAMES.items() if option in options}
    return options | others


def _speaks_of_files(error: Exception) -> bool:
    """Return whether it was raised where people's files are read, or by the command line itself.

    Those name files and what is in them, which may be called like an option.
    """
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    room = str(frame.f_globals.get("__name__"))
    return room.startswith(("discreet.tables", "discreet.cli"))
