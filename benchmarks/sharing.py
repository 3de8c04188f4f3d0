"""What the benchmarks share: tables, pages, progress, times, and scripts of examples/."""

import importlib.util
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType

ROOT = pathlib.Path(__file__).parents[1]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return ["", lines[0], "|" + "---|" * len(head), *lines[1:], ""]


def replaced(page: str, script: str, part: str, section: str | None = None) -> str:
    """Return a page with another part that a script measured; at its end if it had none.

    Args:
        page: the text of the page.
        script: the name of the script, without its suffix.
        part: what it measured.
        section: the name of the part, if the script has a second one on the page.
    """
    name = f"benchmarks/{script}.py" if section is None else f"benchmarks/{script}.py {section}"
    start, end = f"<!-- measured: {name} -->", "<!-- end of measured -->"
    before, found, rest = page.partition(start)
    _, _, after = rest.partition(end)
    if not found:
        before = before.rstrip() + "\n\n"
    return f"{before}{start}\n\n{part.strip()}\n\n{end}{after or chr(10)}"


def tell(text: str) -> None:
    """Say how far the run is."""
    print(text, file=sys.stderr, flush=True)


def quiet_time(call: Callable[[], object]) -> float:
    """Return the time of a call: the least of three medians, since neighbours come and go."""
    call(), call()
    medians = []
    for _ in range(3):
        times: list[float] = []
        while sum(times) < 0.3 or len(times) < 3:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return min(medians)


def example(name: str) -> ModuleType:
    """Return a script of examples/ as a module."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
