"""The experiments that the paper does not have, as one page with pictures.

Errors are measured against the same structure without noise, so that they are the noise's alone.
Times are ratios or slopes within one run.
"""

from collections.abc import Callable
from pathlib import Path

from discreet.bench.paper_costs import accounting_page, speed_page, times_page
from discreet.bench.paper_laws import errors_page, useful_page, variance_page
from discreet.bench.paper_setup import Size

_FULL = Size(builds=24, largest_power=17)
_QUICK = Size(builds=4, largest_power=13)

_HEAD = """# The paper, measured

Made by `discreet paper report`; the paper itself has no experiments.
"""


def write(
    folder: Path, *, quick: bool = False, done: Callable[[str], None] = lambda _: None
) -> Path:
    """Run all experiments and write paper-results.md and its PNGs; return the page.

    Args:
        folder: made if it is not there.
        quick: fewer builds and rows.
        done: told the name of each section when it is finished.
    """
    size = _QUICK if quick else _FULL
    folder.mkdir(parents=True, exist_ok=True)
    sections: dict[str, Callable[[], list[str]]] = {
        "errors": lambda: errors_page(folder, size),
        "variances": lambda: variance_page(folder),
        "times": lambda: times_page(folder, size),
        "speed": speed_page,
        "accounting": lambda: accounting_page(folder),
        "usefulness": useful_page,
    }
    lines = [_HEAD]
    for name, section in sections.items():
        lines += section()
        done(name)
    page = folder / "paper-results.md"
    page.write_text("\n".join(lines).rstrip() + "\n")
    return page
