"""The experiments that the paper does not have, as one page with pictures.

Total errors are against the truth, for queries that no method has seen. Every sentence of the page
that states a result is made from what was measured, or refused (`paper_words.claim`). Times are
ratios or slopes within one run.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from discreet.bench.paper_constant import constant_page
from discreet.bench.paper_costs import speed_page, times_page
from discreet.bench.paper_data import data_sets
from discreet.bench.paper_distances import distances_page
from discreet.bench.paper_error import error_page
from discreet.bench.paper_laws import laws_page, variance_page
from discreet.bench.paper_levels import levels_page
from discreet.bench.paper_ranges import ranges_page
from discreet.bench.paper_setup import FULL, QUICK, Size
from discreet.bench.paper_useful import useful_page

PAGE = "paper-results.md"

_HEAD = """# The paper, measured

Made by `discreet paper report`; the paper itself has no experiments. Every structure here is described in
[The paper, theorem by theorem](paper.md). Noise comes from seeds, so that the same numbers come again; times differ.
Exact answers and errors are for the owner of the data: they are not private.
"""

Section = Callable[[Path, Size], list[str]]

SECTIONS: dict[str, Section] = {
    "error against the truth": error_page,
    "the constant c": lambda out, size: constant_page(out, quick=size.quick),
    "useful n": useful_page,
    "distances": distances_page,
    "better trees": ranges_page,
    "levels": lambda out, _: levels_page(out),
    "laws": laws_page,
    "variances": lambda out, _: variance_page(out),
    "times": times_page,
    "speed": lambda _out, _size: speed_page(),
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
