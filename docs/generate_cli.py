"""Write docs/cli.md from the command line itself.

`python docs/generate_cli.py` prints the page, `--write` writes it. A test compares both, so a
command, an option or a default that is not on the page fails the tests.
"""

import argparse
import inspect
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import typer

from discreet import cli
from discreet.cli import shell

PAGE = pathlib.Path(__file__).with_name("cli.md")

HEAD = """\
# The command line

This page is made by `python docs/generate_cli.py --write`; a test checks that it is up to date.
The same text is in `discreet --help` and `discreet COMMAND --help`.
"""


def page() -> str:
    """Return the whole page: the command itself, then every command and subcommand of it."""
    return "\n".join([HEAD, *_command("discreet", typer.main.get_command(cli.app)), *_exit_codes()])


def _command(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401 (typer keeps click's types to itself)
    shown = [parameter for parameter in command.params if not parameter.hidden]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    children = {each: child for each, child in _children(command) if not child.hidden}
    if not command.help:
        sys.exit(f"{name} has no help text: every command needs one.")
    yield f"## {name}\n"
    usage = [name, *map(_placeholder, arguments), *(["[OPTIONS]"] if options else [])]
    yield f"```text\n{' '.join([*usage, *(['COMMAND'] if children else [])])}\n```\n"
    yield from _help(command.help)
    if children:
        rows = ([f"`{each}`", _line(child.help)] for each, child in children.items())
        yield from _table(["command", "what it does"], rows)
    if arguments:
        rows = ([f"`{each.name.upper()}`", _needed(each), each.help] for each in arguments)
        yield from _table(["argument", "", "meaning"], rows)
    if options:
        rows = ([_names(each), _needed(each), each.help] for each in options)
        yield from _table(["option", "default", "meaning"], rows)
    for each, child in children.items():
        yield from _command(f"{name} {each}", child)


def _children(command: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    return list(getattr(command, "commands", {}).items())


def _help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; the example that ends one becomes a block of code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        before, _, example = paragraph.partition("Example: ")
        if before:
            yield f"{_escaped(before.strip())}\n"
        if example:
            yield f"Example:\n\n```text\n{_line(example)}\n```\n"


def _line(text: str | None) -> str:
    """Return the first sentence or paragraph of a help text, on one line."""
    return " ".join((text or "").split("\n\n")[0].split())


def _placeholder(argument: Any) -> str:  # noqa: ANN401
    return argument.name.upper() if argument.required else f"[{argument.name.upper()}]"


def _names(option: Any) -> str:  # noqa: ANN401
    return ", ".join(f"`{each}`" for each in [*option.opts, *option.secondary_opts])


def _needed(parameter: Any) -> str:  # noqa: ANN401
    """Return whether a parameter must be given, or what it is otherwise."""
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.default is False:
        return ""
    return f"`{parameter.default}`"


def _table(titles: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(_cell(each) for each in row) + " |"
    yield ""


def _cell(text: str | None) -> str:
    """Return a text as a table can hold it."""
    return _escaped(_line(text)).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Return a text whose stars are stars: (*heads, n, d). Code needs no escape."""
    return text if text.startswith("`") else text.replace("*", "\\*")


def _exit_codes() -> Iterator[str]:
    """Yield the exit codes, from the docstring of the module that makes them."""
    found = re.search(r"Exit codes: (.*?)(?:\n\n|\Z)", inspect.getdoc(shell) or "", re.DOTALL)
    if not found:
        sys.exit('Expected discreet.cli.shell to say "Exit codes: ..." in its docstring.')
    codes, _, rest = _line(found[1]).partition(". ")
    yield "## Exit codes\n"
    for code in codes.rstrip(".").split("; "):
        number, _, meaning = code.partition(" ")
        yield f"- `{number}`: {meaning}"
    yield f"\n{rest}\n" if rest else ""


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description="Make docs/cli.md.")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())


if __name__ == "__main__":
    main()
