"""What the benchmarks share: tables, pages, progress, and scripts of examples/."""

import importlib.util
import pathlib
import sys
from collections.abc import Sequence
from types import ModuleType

ROOT = pathlib.Path(__file__).parents[1]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return ["", lines[0], "|" + "---|" * len(head), *lines[1:], ""]


def replaced(page: str, script: str, part: str) -> str:
    """Return a page with another part that a script measured; at its end if it had none.

    Args:
        page: the text of the page.
        script: the name of the script, without its suffix.
        part: what it measured.
    """
    start, end = f"<!-- measured: benchmarks/{script}.py -->", "<!-- end of measured -->"
    before, found, rest = page.partition(start)
    _, _, after = rest.partition(end)
    if not found:
        before = before.rstrip() + "\n\n"
    return f"{before}{start}\n\n{part.strip()}\n\n{end}{after or chr(10)}"


def tell(text: str) -> None:
    """Say how far the run is."""
    print(text, file=sys.stderr, flush=True)


def example(name: str) -> ModuleType:
    """Return a script of examples/ as a module."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
