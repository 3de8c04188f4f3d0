"""What `plan`, `build`, `attend` and `compare` do: from rows to a memory, and on to answers.

Tables are plain text, the same on a terminal and in a file; that of plans has at most 60 columns.
"""

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet._typing import Floats
from discreet.cli.files import check_output, check_picture, pictures
from discreet.cli.outputs import Columns, Ids, Output, places
from discreet.cli.releases import opened, public_rows, release_files, to_build
from discreet.cli.shell import (
    Page,
    aligned,
    has_terminal,
    print_json,
    print_lines,
    print_page,
    say,
)
from discreet.errors import InvalidInput
from discreet.privacy import titled
from discreet.readers.attention.comparison import compare
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.planning import Plan, plan
from discreet.readers.attention.prediction import times
from discreet.readers.attention.reader import WITHIN
from discreet.tables import read_array

# Times what was asked for: softer and sharper, and more and less private.
_SCALES = (0.25, 0.5, 1.0, 2.0)
_EPSILONS = (0.5, 1.0, 2.0)

# States of more bytes are not offered: no machine holds them.
_LARGEST_STATE = 10**12

# Characters of a number that leave room for all columns.
_WIDEST = 8

_PLANS_TITLE = "Other ε and temperatures"

_PLAN_HEADINGS = ("", "ε", "scale", "s/e", "±", "noise", "kernel", "features")

_PLANS_LEGEND = (
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


@dataclass(frozen=True)
class PlanLine:
    """One line of the table of plans.

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
    reference: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of `plan`)
) -> None:
    """Print a plan, and a table of what other ε and temperatures would give."""
    planned = functools.partial(
        plan,
        public_rows=public_rows(public),
        reference=public_rows(reference, "reference"),
        **options,
    )
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
    print_page(f"\n{_PLANS_TITLE}\n", style="bold")
    _print_plans(lines)
    print_page(f"\n{titled(_PLANS_LEGEND)}")


def _around(made: Plan, planned: Callable[..., Plan]) -> Iterator[PlanLine]:
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
                    yield PlanLine(
                        other,
                        chosen=chosen,
                        recommended=factor == 1 and math.isclose(scale, best, rel_tol=1e-3),
                    )


def _print_plans(lines: list[PlanLine]) -> None:
    """Print a table, with an empty line between one ε and the next."""
    console = Page()
    heading, *drawn = aligned([_PLAN_HEADINGS, *map(_plan_cells, lines)], gap=1, right=True)
    console.print(heading, markup=False, soft_wrap=True)
    before = None
    for line, text in zip(lines, drawn, strict=True):
        if before not in (None, line.plan.epsilon):
            console.print()
        before = line.plan.epsilon
        console.print(text, style="bold" if line.chosen else None, markup=False, soft_wrap=True)


def _plan_cells(line: PlanLine) -> tuple[str, ...]:
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


_OWNER = "For the owner of the rows only: what follows was computed from them without noise."

# So many answers are shown; the file has all.
_SHOWN = 20

# What is known of answers besides.
_KNOWN = ("stderr", "base_rate", "difference", "difference_stderr")

_HEADINGS = ("answer", "number", "value", "base rate", "difference", "±", "")
_NOT_CLEAR = "not clear of the noise"


def build_file(
    source: Path,
    values_file: Path | None,
    output: Path,
    *,
    reference: Path | None,
    force: bool,
    **options: Any,  # noqa: ANN401 (those of `release_files`)
) -> None:
    """Build a memory from files, and write it (`release_files`).

    Args:
        source: a table, or the file of keys.
        values_file: that of values, if there is no table.
        output: where to write.
        reference: a file of points to read near.
        force: whether a file that is there may be replaced.
        **options: those of `release_files`.
    """
    check_output(output, force=force, inputs=(reference,))
    points = public_rows(reference, "reference")
    release_files(ATTENTION, source, values_file, output, force=force, reference=points, **options)


@dataclass(frozen=True)
class Line:
    """One answer: its number that differs most clearly from the base rate.

    Attributes:
        answer: which one, among all.
        number: which of its numbers.
        value: the number.
        base_rate: that number of the answer to the query at the origin.
        difference: the one less the other.
        stderr: of the difference.
        clear: whether the answer is clear of the noise.
    """

    answer: int
    number: int
    value: float
    base_rate: float
    difference: float
    stderr: float
    clear: bool


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to some queries, with standard errors, beside the base rate; shapes (..., d_v)."""

    out: Floats
    stderr: Floats
    difference: Floats
    difference_stderr: Floats

    @classmethod
    def of(cls, memory: Memory, queries: Floats) -> "Answers":
        """Return what a memory answers."""
        return cls(*memory.attend(queries, stderr=True), *memory.differences(queries))

    @property
    def base_rate(self) -> Floats:
        """The answer to the query at the origin, for each: in a memory of heads they differ."""
        return self.out - self.difference

    @property
    def width(self) -> float:
        """So many standard errors hold for all numbers of an answer together, 95% of the time.

        Šidák's quantile: one of many numbers is far off more often than a certain one.
        """
        return float(special.ndtri((1 + 0.95 ** (1 / max(self.out.shape[-1], 1))) / 2))

    @cached_property
    def clearness(self) -> Floats:
        """Differences over their standard errors, shape (answers, d_v); zero where both are."""
        flat = self.difference.reshape(-1, self.out.shape[-1])
        error = self.difference_stderr.reshape(flat.shape)
        return np.divide(np.abs(flat), error, out=np.zeros_like(flat), where=error > 0)

    @cached_property
    def clear(self) -> int:
        """How many answers are clear of the noise: one of their numbers is."""
        return int(np.sum(self._are_clear))

    @property
    def _are_clear(self) -> NDArray[np.bool_]:
        return np.asarray(np.any(self.clearness > self.width, axis=-1))

    def columns(self, *, heads: int, stderr: bool) -> Columns:
        """Return a row for each answer, as columns.

        Args:
            heads: how many axes of the answers are those of heads.
            stderr: whether all is wanted that is known of them.
        """
        shape, width = self.out.shape[:-1], self.out.shape[-1]
        columns = {**places(shape, heads=heads), "answer": self.out.reshape(-1, width)}
        if stderr:
            columns |= {name: getattr(self, name).reshape(-1, width) for name in _KNOWN}
            columns["clear"] = self._are_clear
        return columns

    def lines(self) -> list[Line]:
        """Return the first answers, each with the number that differs most clearly."""
        width = self.out.shape[-1]
        shown = []
        for answer, ratios in enumerate(self.clearness[:_SHOWN]):
            number = int(np.argmax(ratios))
            value, base, difference, stderr = (
                float(each.reshape(-1, width)[answer, number])
                for each in (self.out, self.base_rate, self.difference, self.difference_stderr)
            )
            clear = bool(ratios[number] > self.width)
            shown.append(Line(answer, number, value, base, difference, stderr, clear))
        return shown


def opened_memory(path: Path, reference: Path | None) -> Memory:
    """Return the memory in a file, read near the points in another if there is one.

    Args:
        path: of the memory.
        reference: of the points.
    """
    memory, points = opened(path, Memory), public_rows(reference, "reference")
    return memory if points is None else memory.with_reference(points.rows)


def attend_file(
    memory: Path,
    queries: Path,
    output: Path,
    *,
    file_format: str | None,
    row_id: str | None,
    stderr: bool,
    reference: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Answer the queries in a file; with `stderr`, all that is known of the answers is written."""
    out = Output.checked(
        output,
        file_format,
        arrays="npz" if stderr else "npy",
        force=force,
        as_json=as_json,
        inputs=(memory, queries, reference),
    )
    ids = Ids.read(queries, row_id, out)
    asked = np.asarray(read_array(queries, "queries"))
    opened_one = opened_memory(memory, reference)
    answers = Answers.of(opened_one, asked)
    if out.has_rows:
        columns = answers.columns(heads=len(opened_one.heads), stderr=stderr)
        out.write([ids.beside(columns) if ids else columns])
    else:
        names = ("out", *_KNOWN) if stderr else ("out",)
        out.write_arrays({name: getattr(answers, name) for name in names})
    if out.is_standard and answers.out.size:
        say(_clear(answers))
    out.tell(lambda: print_json(_facts(answers, output)) if as_json else _print(answers, output))


def _facts(answers: Answers, output: Path) -> dict[str, object]:
    typical = float(np.median(answers.stderr)) if answers.stderr.size else None
    return {
        "output": str(output),
        "shape": answers.out.shape,
        "median_stderr": typical,
        "clear": answers.clear,
        "answers": [asdict(line) for line in answers.lines()],
    }


def _print(answers: Answers, output: Path) -> None:
    shape, count = answers.out.shape, len(answers.clearness)
    if not answers.out.size:
        print_page(f"{output}: answers of shape {shape}")
        return
    typical = WITHIN * float(np.median(answers.stderr))
    print_page(
        f"{output}: answers of shape {shape}, ±{typical:.2g} in the median (95% of the time; noise "
        "and kernel)"
    )
    for line in aligned([_HEADINGS, *map(_cells, answers.lines())], gap=2, right=True):
        print_page(line)
    if count > _SHOWN:
        print_page(f"and {count - _SHOWN:,} more, in the file")
    print_page(_clear(answers))


def _clear(answers: Answers) -> str:
    """Return how many answers are clear of the noise, in words."""
    width = answers.out.shape[-1]
    number = "their number" if width == 1 else f"one of their {width} numbers"
    return (
        f"{answers.clear:,} of {len(answers.clearness):,} answers are clear of the noise: {number} "
        f"differs from the base rate by more than {answers.width:.3g} standard errors (a ± is "
        f"{WITHIN}). The noise alone does that to 1 answer in 20."
    )


def _cells(line: Line) -> tuple[str, ...]:
    return (
        str(line.answer),
        str(line.number),
        f"{line.value:.3g}",
        f"{line.base_rate:.3g}",
        f"{line.difference:+.2g}",
        f"{WITHIN * line.stderr:.2g}",
        "" if line.clear else _NOT_CLEAR,
    )


def compare_files(
    memory: Path,
    source: Path,
    values_file: Path | None,
    queries: Path | None,
    *,
    keys: str | None,
    values: str | None,
    reference: Path | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print, and draw, exact attention against a memory's answers. NOT PRIVATE.

    Args:
        memory: the file.
        source: a table, or the file of keys.
        values_file: that of values, if there is no table; then `queries` come after it.
        queries: their file. Of a table, the file that is typed last are the queries.
        keys: columns of the table.
        values: likewise.
        reference: a file of points to read near.
        picture: where to draw.
        force: whether a picture that is there may be replaced.
        as_json: whether to print JSON.
    """
    if queries is None:
        values_file, queries = None, values_file
    if queries is None:
        raise InvalidInput("Expected a file of queries after the rows.")
    given = to_build(source, values_file, keys=keys, values=values, groups=None)
    check_picture(picture, force=force, inputs=(memory, *given.files, queries, reference))
    rows = given.arguments({})
    made = compare(
        opened_memory(memory, reference),
        rows["keys"],
        rows.get("values"),
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
