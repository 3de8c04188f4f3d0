"""The experiments that the paper does not have, as one page with pictures.

Errors are measured against the same structure without noise, so that they are the noise's alone.
Times are ratios or slopes within one run.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from discreet.bench.paper_costs import accounting_page, speed_page, times_page
from discreet.bench.paper_laws import errors_page, useful_page, variance_page
from discreet.bench.paper_setup import Size

_FULL = Size(builds=24, largest_power=17)
_QUICK = Size(builds=4, largest_power=13)

PAGE = "paper-results.md"

_HEAD = """# The paper, measured

Made by `discreet paper report`; the paper itself has no experiments.
"""


def write(
    folder: Path, *, quick: bool = False, done: Callable[[str], None] = lambda _: None
) -> Path:
    """Run all experiments and write paper-results.md and its PNGs; return the page.

    Args:
        folder: made if it is not there; its parent must be.
        quick: fewer builds and rows.
        done: told the name of each section when it is finished.
    """
    size = _QUICK if quick else _FULL
    # Moved to the folder when all of it is there.
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=".discreet-") as name:
        work = Path(name)
        sections: dict[str, Callable[[], list[str]]] = {
            "errors": lambda: errors_page(work, size),
            "variances": lambda: variance_page(work),
            "times": lambda: times_page(work, size),
            "speed": speed_page,
            "accounting": lambda: accounting_page(work),
            "usefulness": useful_page,
        }
        lines = [_HEAD]
        for title, section in sections.items():
            lines += section()
            done(title)
        (work / PAGE).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for path in work.iterdir():
            path.replace(folder / path.name)
    return folder / PAGE
