"""The experiments that the paper does not have, as one page with pictures.

Total errors are against the truth, for queries that no method has seen. Every sentence of the page
that states a result is made from what was measured, or refused (`page.claim`). Times are
ratios or slopes within one run.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from discreet_benchmarks.paper.constant import constant_page
from discreet_benchmarks.paper.costs import speed_page, times_page
from discreet_benchmarks.paper.distance_methods import data_sets
from discreet_benchmarks.paper.distances import distances_page
from discreet_benchmarks.paper.error import error_page
from discreet_benchmarks.paper.laws import laws_page, levels_page, variance_page
from discreet_benchmarks.paper.page import FULL, QUICK, Size
from discreet_benchmarks.paper.trees import trees_page
from discreet_benchmarks.paper.useful import useful_page

PAGE = "paper-results.md"

_HEAD = """# The paper, measured

Made by `discreet paper report`; the paper itself has no experiments. Every structure here is described in
[The paper, theorem by theorem](paper.md). Noise comes from seeds, so that the same numbers come again; times differ.
Exact answers and errors are for the owner of the data: they are not private.
"""

Section = Callable[[Path, Size], list[str]]

SECTIONS: dict[str, Section] = {
    "error against the truth": error_page,
    "the constant c": constant_page,
    "useful n": useful_page,
    "distances": distances_page,
    "better trees": trees_page,
    "levels": levels_page,
    "laws": laws_page,
    "variances": variance_page,
    "times": times_page,
    "speed": speed_page,
}


def write(
    folder: Path,
    *,
    quick: bool = False,
    size: Size | None = None,
    done: Callable[[str], None] = lambda _: None,
) -> Path:
    """Run all experiments and write paper-results.md and its PNGs; return the page.

    Args:
        folder: made if it is not there; its parent must be.
        quick: fewer builds, rows and values.
        size: how much work to do, if neither the whole nor the quick run is wanted.
        done: told the name of each section when it is finished.
    """
    size = (QUICK if quick else FULL) if size is None else size
    data_sets()  # what is missing is said before the work, not after it
    # Moved to the folder when all of it is there.
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=".discreet-") as name:
        work = Path(name)
        lines = [_HEAD]
        for number, (title, section) in enumerate(SECTIONS.items(), 1):
            lines += section(work, size)
            done(f"{number} of {len(SECTIONS)}, {title}")
        (work / PAGE).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for path in work.iterdir():
            path.replace(folder / path.name)
    return folder / PAGE
