"""What the commands do: call the library, print, write. Parsing is in the package itself."""

import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypeVar

import numpy as np

from discreet._card import titled
from discreet._files import whole_file
from discreet.cli.delivery import Delivery
from discreet.cli.inputs import to_build
from discreet.cli.places import released
from discreet.cli.shell import Page, already_written, printable
from discreet.errors import DiscreetError, InvalidInput
from discreet.features.public_rows import PublicRows
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.comparison import compare
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.registry import AnyFile as ReleasedFile
from discreet.readers.registry import load as open_release
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.sums.container import to_bytes
from discreet.tables import read_array, split

Release = TypeVar("Release", Memory, SoftmaxRegression)

# What files hold, and what answers from each.
_RELEASES: dict[type, tuple[str, str]] = {
    Memory: ("a memory", ": discreet attend answers from it"),
    Memories: ("the context of a model", ": discreet.integrations puts it on one"),
    LeastSquares: ("a regression", ": discreet.load opens it, in Python"),
    SoftmaxRegression: ("a classifier", ": discreet predict answers from it"),
}

_STRUCTURE = ("one of the paper's structures", ": discreet.load opens it, in Python")

_OWNER = "For the owner of the rows only: what follows was computed from them without noise."


def show_card(path: Path, *, as_json: bool) -> None:
    """Print the card of whatever is in a file."""
    card = opened_release(path).card
    if as_json:
        print_json(card.to_dict())
    else:
        print_page(str(card))


def build_file(
    source: Path,
    values_file: Path | None,
    output: Path,
    *,
    keys: str | None,
    values: str | None,
    groups: str | None,
    public: Path | None,
    workers: int | None,
    scheduler: str | None,
    force: bool,
    as_json: bool,
    **options: object,
) -> None:
    """Build a memory from files and write it: whole, or not at all."""
    given = to_build(source, values_file, keys=keys, values=values, groups=groups)
    check_output(output, force=force, inputs=(*given.files, public))
    with Delivery(output, force=force) as delivery:
        memory = released(
            ATTENTION,
            given,
            workers=workers,
            scheduler=scheduler,
            public_rows=public_rows(public),
            progress=has_terminal(),
            on_resolved=delivery.claim_release,
            **options,
        )
        delivery.write_release(memory, lambda: to_bytes(memory), options)
    with already_written(output):
        if as_json:
            print_json({"output": str(output), **memory.card.to_dict()})
        else:
            print_page(f"{output}: {memory.guarantee}")


def public_rows(path: Path | None) -> PublicRows | None:
    """Return the public rows in a file, if there is one: read once, however often they are used."""
    return None if path is None else PublicRows(np.asarray(read_array(path, "public")))


def compare_files(
    memory: Path,
    keys: Path,
    values: Path,
    queries: Path,
    *,
    picture: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print, and draw, exact attention against a memory's answers. NOT PRIVATE."""
    if picture is not None:
        check_output(picture, force=force, inputs=(memory, keys, values, queries))
        pictures().check_suffix(picture)
    made = compare(
        opened(memory, Memory),
        read_array(keys, "keys"),
        read_array(values, "values"),
        np.asarray(read_array(queries, "queries")),
        progress=has_terminal(),
    )
    facts = {
        "private": False,
        "queries": int(np.prod(made.exact.shape[:-1])),
        "error": made.error,
        "predicted": made.predicted,
        "within": made.within,
        "spread": made.spread,
        "verdict": made.verdict,
    }
    if picture is not None:
        draw = pictures()
        draw.save(draw.exact_against_private(made.exact, made.private, made.stderr), picture)
        facts["picture"] = str(picture)
    if as_json:
        print_json(facts)
        return
    lines = {
        "queries": f"{facts['queries']:,}",
        "error": f"{made.error:.3g}: private less exact, root mean square over all numbers",
        "standard error": (
            f"{made.predicted:.3g}: what the memory says of its error, noise and kernel, likewise"
        ),
        "within": f"{made.within:.1%} of numbers within 1.96 standard errors; 95% or more wanted",
        "spread": f"{made.spread:.3g}: how much exact answers differ from query to query, likewise",
        "verdict": made.verdict,
    }
    if picture is not None:
        lines["picture"] = str(picture)
    print_lines(lines, note=_OWNER)


def print_lines(lines: dict[str, str], *, note: str | None = None) -> None:
    """Print names and what they are, one a line, under a note."""
    if note is not None:
        print_page(note, style="bold")
    print_page(titled(list(lines.items())))


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


def print_json(facts: object) -> None:
    """Print JSON."""
    text = json.dumps(_without_infinities(facts), indent=2, ensure_ascii=False, allow_nan=False)
    print(text)  # noqa: T201 (this is the output)


def _without_infinities(value: Any) -> Any:  # noqa: ANN401
    """Return what JSON can hold: null for a number that is none."""
    if isinstance(value, dict):
        return {name: _without_infinities(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_output(path: Path, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Raise `InvalidInput` unless a file can be written there, before any work is done.

    Args:
        path: where to write.
        force: whether a file that is there may be replaced.
        inputs: files that may not, even so, and directories that nothing is written into.
    """
    if path.is_dir():
        raise InvalidInput(f"Expected {path} to be a file name, and it is a directory.")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"Expected {path} to be a file, and it is something else.")
    for each in inputs:
        read = None if each is None else split(each)[0]
        if read is not None and read.exists() and path.exists() and path.samefile(read):
            raise InvalidInput(f"Expected {path} not to be one of the files that are read.")
        if read is not None and read.is_dir() and path.resolve().is_relative_to(read.resolve()):
            raise InvalidInput(f"Expected {path} not to lie in {read}, which is read.")
    if os.path.lexists(path) and not force:
        raise InvalidInput(f"Expected {path} not to exist yet; --force replaces it.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"Expected {path.parent} to be a directory that can be written to.")


def pictures() -> ModuleType:
    """Return what draws, if matplotlib is there."""
    try:
        from discreet import pictures as drawing
    except ImportError:
        raise InvalidInput("Expected matplotlib: pip install 'discreet[plots]'.") from None
    return drawing


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a full disk, and the like, into a sentence that names the file."""
    try:
        yield
    except FileExistsError:
        raise InvalidInput(f"Expected {path} not to exist yet; --force replaces it.") from None
    except OSError as error:
        reason = error.strerror or "the disk is full"
        raise DiscreetError(
            f"{path} could not be written ({reason}), so nothing was; is there room for it?"
        ) from None


@contextmanager
def output_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Yield a file that takes its name when it is complete; else nothing is left of it."""
    with writing(path), whole_file(path, replace=force) as file:
        yield file


def has_terminal() -> bool:
    """Return whether there is somebody to show progress to."""
    return sys.stderr.isatty()


def opened_release(path: Path) -> ReleasedFile:
    """Return what is in a file, whatever it is, with all that it says of itself."""
    found: ReleasedFile = open_release(_existing(path))
    return found


def opened(path: Path, kind: type[Release]) -> Release:
    """Return what is in a file, if it is of this kind."""
    found = open_release(_existing(path))
    if isinstance(found, kind):
        return found
    wanted, _ = _RELEASES[kind]
    name, hint = _RELEASES.get(type(found), _STRUCTURE)
    raise InvalidInput(f"Expected {path} to be {wanted}, and it is {name}{hint}.")


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InvalidInput(f"Expected {path} to be a file written by discreet build or fit.")
    return path
