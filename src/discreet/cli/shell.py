"""How the command behaves in a shell: exit codes, one sentence for an error, tracebacks on demand.

Exit codes: 0 done; 1 a bug in discreet; 2 something that was given is wrong (one sentence on
standard error says what); 130 interrupted; 143 terminated. In all but the first nothing was
written, unless that sentence names a file: a release that was paid for is kept.

What the library says of an argument is said of the option that was typed for it: an `InvalidInput`
carries argument, value and what was wanted, and `in_options` makes a sentence of them.
"""

import functools
import importlib
import json
import math
import os
import re
import signal
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from discreet._validate import Note, notes
from discreet.errors import DiscreetError, InvalidInput
from discreet.privacy import titled

Function = TypeVar("Function", bound=Callable[..., Any])

WRONG_INPUT = 2
INTERRUPTED = 130

# Options that are called otherwise where the library takes them.
_OTHER_NAMES = {
    "value_bound": "bound",
    "weight_bound": "bound",
    "p": "power",
    "public_rows": "public",
    "window": "last",
}


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
        with _plain_warnings():
            try:
                return super().invoke(ctx)
            except InvalidInput as error:
                error.args = (in_options(error, _typed(ctx)),)
                raise


class App(typer.Typer):
    """A group of commands, each of them a `Command`."""

    def __init__(self, **named: Any) -> None:  # noqa: ANN401
        super().__init__(**{"cls": Group, **named})

    def command(
        self,
        name: str | None = None,
        *,
        runs: str | None = None,
        **named: Any,  # noqa: ANN401
    ) -> Callable[[Function], Function]:
        """Add one, as in the base class.

        Args:
            name: of the command.
            runs: the function of this package that does it, for instance "memories.show_plan", if
                the one that is decorated only declares arguments: they are passed on by name.
            **named: as in the base class.
        """
        add = super().command(name, **{"cls": Command, **named})
        return add if runs is None else lambda declared: add(_passing_on(runs, declared))


def _passing_on(place: str, declared: Function) -> Function:
    """Return what imports a function when it is called, and not before: help is instant."""
    module, _, name = place.partition(".")

    @functools.wraps(declared)
    def run(**given: Any) -> None:  # noqa: ANN401
        getattr(importlib.import_module(f"discreet.cli.{module}"), name)(**given)

    return run  # type: ignore[return-value]  # it has the signature of what it wraps


@dataclass(frozen=True)
class Typed:
    """An option, as it is typed, the value that it has, and what its help says."""

    option: str
    value: object
    help: str = ""


def _typed(ctx: Any) -> dict[str, Typed]:  # noqa: ANN401
    """Return the options of the command that runs, by the names that the library has for them."""
    options = {
        each.name: Typed(max(each.opts, key=len), ctx.params.get(each.name), each.help or "")
        for each in ctx.command.params
        if each.param_type_name == "option"
    }
    others = {name: options[option] for name, option in _OTHER_NAMES.items() if option in options}
    return options | others


def in_options(error: InvalidInput, options: Mapping[str, Typed]) -> str:
    """Return what is wrong with an option; in the library's words if the error is of no option.

    Args:
        error: of the library.
        options: by the names that the library has for them.
    """
    factors = (error.argument or "").split(" * ")
    if not options.keys() >= set(factors):
        return str(error)
    if len(factors) > 1:
        product = " * ".join(options[name].option for name in factors)
        return f"Expected {product} = {error.value!r} to be {error.wanted}."
    typed, needed = options[factors[0]], options.get(error.needs or "")
    if isinstance(typed.value, Path) and isinstance(error.value, tuple):
        subject = f"{typed.option} {typed.value}, of shape {error.value},"
    elif repr(typed.value) != repr(error.value):  # which the library worked out
        return str(error)
    elif typed.value is None:
        if needed is None:
            return f"Expected {typed.option}, {error.wanted}."
        meaning = needed.help[:1].lower() + needed.help[1:].rstrip(".")
        return f"Expected {typed.option}, or {needed.option}: {meaning}."
    else:
        subject = f"{typed.option} {error.value!r}"
    wanted = f"be {error.wanted}" if needed is None else f"come with {needed.option}"
    return f"Expected {subject} to {wanted}."


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
def _plain_warnings() -> Iterator[None]:
    """Show what the library warns of as one line each."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
        yield


def has_terminal() -> bool:
    """Return whether there is somebody to show progress to."""
    return sys.stderr.isatty()


def print_page(text: str, *, style: str | None = None) -> None:
    """Print lines; on a terminal, what does not fit goes on below where it began.

    Elsewhere a line stays one line, so that programs can look for it.
    """
    console = Page()
    for line in printable(text).splitlines():
        name = re.match(r"\S+( \S+)*\s{2,}", line)
        indent = " " * (len(name[0]) if name else 0)
        shown = (
            textwrap.fill(
                line, max(console.width, 40), subsequent_indent=indent, break_on_hyphens=False
            )
            if console.is_terminal
            else line
        )
        console.print(shown, style=style, markup=False, soft_wrap=True)


def print_lines(lines: Mapping[str, str], *, note: str | None = None) -> None:
    """Print names and what they are, one a line, under a note."""
    if note is not None:
        print_page(note, style="bold")
    print_page(titled(list(lines.items())))


class Described(Protocol):
    """A card or a plan: a page for people, and the same as facts."""

    def to_dict(self) -> Mapping[str, object]:
        """Return the facts, ready for JSON."""


def print_described(made: Described, *, as_json: bool) -> None:
    """Print a card or a plan: as a page, or all its facts."""
    if as_json:
        print_json(made.to_dict())
    else:
        print_page(str(made))


def print_json(facts: object) -> None:
    """Print JSON."""
    text = json.dumps(without_infinities(facts), indent=2, ensure_ascii=False, allow_nan=False)
    print(text)  # noqa: T201 (this is the output)


def without_infinities(value: Any) -> Any:  # noqa: ANN401
    """Return what JSON can hold: null for a number that is none."""
    if isinstance(value, dict):
        return {name: without_infinities(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinities(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def aligned(rows: Sequence[Sequence[str]], *, gap: int, right: bool) -> list[str]:
    """Return a line for each row, with cells in columns: the same in a file and on any terminal.

    Args:
        rows: as many cells each.
        gap: spaces between columns.
        right: whether cells end below each other, as numbers do, or begin there.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    side = ">" if right else "<"
    return [
        (" " * gap)
        .join(f"{cell:{side}{width}}" for cell, width in zip(row, widths, strict=True))
        .rstrip()
        for row in rows
    ]
