"""What the commands do: call the library, print, write. Parsing is in the package itself."""

import json
import os
from pathlib import Path

import numpy as np
from rich.console import Console

from discreet.cli.arrays import read_array, read_groups
from discreet.errors import InvalidInput
from discreet.memory import Memory, Plan, build, load


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print a plan as a page, or as JSON."""
    if not as_json:
        Console(highlight=False).print(str(plan), markup=False, soft_wrap=True)
        return
    names = (
        "rows",
        "epsilon",
        "delta",
        "scale",
        "recommended_scale",
        "kernel_reason",
        "tau",
        "numerator_stderr",
        "denominator_stderr",
        "rows_needed",
        "stderr",
        "worst_stderr",
        "kernel_stderr",
        "state_bytes",
        "build_flops",
        "verdict",
        "warning",
    )
    facts = {name: getattr(plan, name) for name in names}
    facts |= {"kernel": plan.kernel.describe(), "kernel_error": plan.kernel.error}
    _print_json(facts)


def show_card(path: Path, *, as_json: bool) -> None:
    """Print the card of a memory."""
    card = load(_existing(path)).card
    if as_json:
        _print_json(card.to_dict())
    else:
        Console(highlight=False).print(str(card), markup=False, soft_wrap=True)


def build_file(
    keys: Path, values: Path, output: Path, *, groups: Path | None, force: bool, **options: object
) -> Memory:
    """Build a memory from files and write it: whole, or not at all."""
    check_output(output, force=force)
    memory = build(
        read_array(keys),
        read_array(values),
        groups=None if groups is None else read_groups(groups),
        progress=Console().is_terminal,
        **options,  # type: ignore[arg-type]  # the names are build's own
    )
    memory.save(output)
    return memory


def attend_file(memory: Path, queries: Path, output: Path, *, stderr: bool, force: bool) -> None:
    """Answer the queries in a file; with `stderr`, into a .npz with `out` and `stderr`."""
    check_output(output, force=force)
    asked = np.asarray(read_array(queries))
    out, error = load(_existing(memory)).attend(asked, stderr=True)
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            if stderr:
                np.savez(file, out=out, stderr=error)
            else:
                np.save(file, out)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)


def check_output(path: Path, *, force: bool) -> None:
    """Raise `InvalidInput` unless a file can be written there, before any work is done."""
    if path.is_dir():
        raise InvalidInput(f"Expected {path} to be a file name, and it is a directory.")
    if path.exists() and not force:
        raise InvalidInput(f"Expected {path} not to exist yet; --force replaces it.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"Expected {path.parent} to be a directory that can be written to.")


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InvalidInput(f"Expected {path} to be a file written by discreet build.")
    return path


def _print_json(facts: object) -> None:
    print(json.dumps(facts, indent=2, ensure_ascii=False))  # noqa: T201 (this is the output)
