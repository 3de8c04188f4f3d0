"""What `plan` prints: a page, a table of other ε and temperatures, and what its columns mean.

The table is plain text of at most 60 columns, the same on a terminal and in a file.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.cli.inputs import public_rows
from discreet.cli.shell import Page, aligned, print_json, print_page
from discreet.errors import InvalidInput
from discreet.privacy import titled
from discreet.readers.attention.planning import Plan, plan
from discreet.readers.attention.prediction import times

# Times what was asked for: softer and sharper, and more and less private.
_SCALES = (0.25, 0.5, 1.0, 2.0)
_EPSILONS = (0.5, 1.0, 2.0)

# States of more bytes are not offered: no machine holds them.
_LARGEST_STATE = 10**12

# Characters of a number that leave room for all columns.
_WIDEST = 8

_TITLE = "Other ε and temperatures"

_HEADINGS = ("", "ε", "scale", "s/e", "±", "noise", "kernel", "features")

_LEGEND = (
    (">", "as planned above"),
    ("*", "the recommended scale"),
    (
        "s/e",
        (
            "signal over standard error: how much answers differ from query to query, at best, "
            "over how far they are off; below 1 they are mostly error"
        ),
    ),
    ("±", "how far each number is from exact attention, 95% of the time; noise and kernel"),
    ("noise", "the noise's part of it; less by more rows, a larger ε or a softer scale"),
    ("kernel", "the kernel's part; less by more features or public rows"),
    ("features", "of each key; size of the file and time of the build are in proportion"),
)


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        plan: what it shows.
        chosen: whether ε and scale are those that were asked for.
        recommended: whether ε was asked for and the scale is the one recommended for it.
    """

    plan: Plan
    chosen: bool
    recommended: bool


def show_plan(
    *,
    epsilon: float,
    scale: float | None,
    public: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of `plan`)
) -> None:
    """Print a plan, and a table of what other ε and temperatures would give."""
    planned = functools.partial(plan, public_rows=public_rows(public), **options)
    made = planned(epsilon=epsilon, scale=scale)
    lines = list(_around(made, planned))
    if as_json:
        table = [
            {**line.plan.to_dict(), "chosen": line.chosen, "recommended": line.recommended}
            for line in lines
        ]
        print_json({**made.to_dict(), "table": table})
        return
    print_page(str(made))
    print_page(f"\n{_TITLE}\n", style="bold")
    _print_table(lines)
    print_page(f"\n{titled(_LEGEND)}")


def _around(made: Plan, planned: Callable[..., Plan]) -> Iterator[Line]:
    """Yield what was planned among its neighbours, and with the recommended scale."""
    for factor in _EPSILONS:
        scales = {times * made.scale for times in _SCALES}
        best = made.recommended_scale
        if factor == 1 and not math.isclose(best, made.scale, rel_tol=1e-3):
            scales.add(best)
        for scale in sorted(scales):
            chosen = factor == 1 and scale == made.scale
            with suppress(InvalidInput):  # beyond what can be asked for
                other = made if chosen else planned(epsilon=factor * made.epsilon, scale=scale)
                if chosen or other.state_bytes <= _LARGEST_STATE:
                    yield Line(
                        other,
                        chosen=chosen,
                        recommended=factor == 1 and math.isclose(scale, best, rel_tol=1e-3),
                    )


def _print_table(lines: list[Line]) -> None:
    """Print a table, with an empty line between one ε and the next."""
    console = Page()
    heading, *drawn = aligned([_HEADINGS, *map(_cells, lines)], gap=1, right=True)
    console.print(heading, markup=False, soft_wrap=True)
    before = None
    for line, text in zip(lines, drawn, strict=True):
        if before not in (None, line.plan.epsilon):
            console.print()
        before = line.plan.epsilon
        console.print(text, style="bold" if line.chosen else None, markup=False, soft_wrap=True)


def _cells(line: Line) -> tuple[str, ...]:
    plan, said = line.plan, line.plan.prediction
    return (
        (">" if line.chosen else " ") + ("*" if line.recommended else " "),
        f"{plan.epsilon:.3g}",
        f"{plan.scale:.3g}",
        _narrow(times(said.signal_to_error)),
        said.within(plan.stderr),
        said.within(plan.noise_stderr),
        said.within(plan.kernel_stderr),
        _narrow(f"{plan.kernel.features:,}"),
    )


def _narrow(number: str) -> str:
    """Return a number as it was written, or in fewer characters, if they are many."""
    return number if len(number) <= _WIDEST else f"{float(number.replace(',', '')):.1e}"
