"""What the commands do: call the library, print, write. Parsing is in the package itself."""

import dataclasses
import json
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet._files import whole_file
from discreet.cli.arrays import read_array, read_groups
from discreet.errors import DiscreetError, InvalidInput
from discreet.memory import Plan, build, compare, load
from discreet.memory.comparison import WITHIN

_OWNER = "For the owner of the rows only: what follows was computed from them without noise."


def show_plan(plan: Callable[..., Plan], *, epsilon: float, as_json: bool) -> None:
    """Print a plan, and a table of what other ε and temperatures would give.

    Args:
        plan: makes one, given ε and maybe a scale.
        epsilon: the one that was asked for.
        as_json: print the same figures as JSON.
    """
    made = plan(epsilon=epsilon)
    others = [
        plan(epsilon=factor * epsilon, scale=times * made.scale)
        for factor in (0.5, 1.0, 2.0)
        for times in (0.25, 0.5, 1.0)
    ]
    if as_json:
        print_json({**_facts(made), "table": [_facts(other) for other in others]})
        return
    print_page(str(made))
    console = Console(highlight=False)
    console.print()
    console.print(_plans(others))


def _plans(plans: list[Plan]) -> Table:
    table = Table(title="Other ε and temperatures: each number of an answer, 95% of the time")
    for heading in ("ε", "scale", "advised", "usual", "worst", "rows needed", "MB", "Gflop"):
        table.add_column(heading, justify="right")
    for plan in plans:
        table.add_row(
            f"{plan.epsilon:g}",
            f"{plan.scale:.3g}",
            f"{plan.recommended_scale:.3g}",
            f"±{WITHIN * float(np.hypot(plan.stderr, plan.kernel_stderr)):.2g}",
            f"±{WITHIN * plan.worst_stderr:.2g}",
            f"{plan.rows_needed:,.0f}",
            f"{plan.state_bytes / 1e6:.2g}",
            f"{plan.build_flops / 1e9:.2g}",
        )
    return table


def _facts(plan: Plan) -> dict[str, object]:
    facts = {
        field.name: getattr(plan, field.name)
        for field in dataclasses.fields(plan)
        if field.name not in ("kernel", "spread")
    }
    kernel = {"kernel": plan.kernel.describe(), "kernel_error": plan.kernel.error}
    return {**facts, **kernel, "verdict": plan.verdict}


def show_card(path: Path, *, as_json: bool) -> None:
    """Print the card of a memory."""
    card = load(_existing(path)).card
    if as_json:
        print_json(card.to_dict())
    else:
        print_page(str(card))


def build_file(
    keys: Path,
    values: Path,
    output: Path,
    *,
    groups: Path | None,
    force: bool,
    as_json: bool,
    **options: object,
) -> None:
    """Build a memory from files and write it: whole, or not at all."""
    check_output(output, force=force)
    memory = build(
        read_array(keys, "keys"),
        read_array(values, "values"),
        groups=None if groups is None else read_groups(groups),
        progress=_has_terminal(),
        **options,  # type: ignore[arg-type]  # the names are build's own
    )
    with writing(output):
        memory.save(output)
    if as_json:
        print_json({"output": str(output), **memory.card.to_dict()})
    else:
        print_page(f"{output}: {memory.guarantee}")


def attend_file(
    memory: Path, queries: Path, output: Path, *, stderr: bool, force: bool, as_json: bool
) -> None:
    """Answer the queries in a file; with `stderr`, into a .npz with `out` and `stderr`."""
    check_output(output, force=force)
    asked = np.asarray(read_array(queries, "queries"))
    out, error = load(_existing(memory)).attend(asked, stderr=True)
    with output_file(output) as file:
        if stderr:
            np.savez(file, out=out, stderr=error)
        else:
            np.save(file, out)
    typical = float(np.median(error)) if error.size else None
    if as_json:
        print_json({"output": str(output), "shape": out.shape, "median_stderr": typical})
    elif typical is not None:
        print_page(f"{output}: answers of shape {out.shape}, typical standard error {typical:.3g}")


def compare_files(
    memory: Path, keys: Path, values: Path, queries: Path, *, picture: Path | None, as_json: bool
) -> None:
    """Print, and draw, exact attention against a memory's answers. NOT PRIVATE."""
    if picture is not None:
        check_output(picture, force=True)
        pictures().check_suffix(picture)
    made = compare(
        load(_existing(memory)),
        read_array(keys, "keys"),
        read_array(values, "values"),
        np.asarray(read_array(queries, "queries")),
        progress=_has_terminal(),
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
        "error": f"{made.error:.3g} (root mean square, each number of an answer)",
        "predicted": f"{made.predicted:.3g} from the noise alone",
        "within": f"{made.within:.1%} of numbers are within 1.96 standard errors; noise alone: 95%",
        "spread": f"{made.spread:.3g} is how much exact numbers differ from query to query",
        "verdict": made.verdict,
    }
    if picture is not None:
        lines["picture"] = str(picture)
    print_lines(lines, note=_OWNER)


def print_lines(lines: dict[str, str], *, note: str | None = None) -> None:
    """Print names and what they are, one a line, under a note."""
    if note is not None:
        print_page(note, style="bold")
    print_page("\n".join(f"{name:<14}{text}" for name, text in lines.items()))


def print_page(text: str, *, style: str | None = None) -> None:
    """Print lines; on a terminal, what does not fit goes on below where it began.

    Elsewhere a line stays one line, so that programs can look for it.
    """
    console = Console(highlight=False)
    for line in text.splitlines():
        name = re.match(r"\S+( \S+)*\s{2,}", line)
        indent = " " * (len(name[0]) if name else 0)
        shown = (
            textwrap.fill(line, console.width, subsequent_indent=indent, break_on_hyphens=False)
            if console.is_terminal
            else line
        )
        console.print(shown, style=style, markup=False, soft_wrap=True)


def print_json(facts: object) -> None:
    """Print JSON."""
    print(json.dumps(facts, indent=2, ensure_ascii=False))  # noqa: T201 (this is the output)


def check_output(path: Path, *, force: bool) -> None:
    """Raise `InvalidInput` unless a file can be written there, before any work is done."""
    if path.is_dir():
        raise InvalidInput(f"Expected {path} to be a file name, and it is a directory.")
    if path.exists() and not force:
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
    except OSError as error:
        raise DiscreetError(
            f"{path} could not be written ({error.strerror or error}), so nothing was; "
            "is the disk full?"
        ) from None


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes its name when it is complete; else nothing is left of it."""
    with writing(path), whole_file(path) as file:
        yield file


def _has_terminal() -> bool:
    return Console(stderr=True).is_terminal


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InvalidInput(f"Expected {path} to be a file written by discreet build.")
    return path
