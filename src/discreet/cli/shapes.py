"""`discreet shapes`: what each column of a table does to predictions, printed and drawn.

Post-processing of a released file. The ± is 1.96 standard errors of the noise.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._typing import Floats
from discreet.cli.files import check_picture, pictures
from discreet.cli.outputs import Output, means_rows, tell_rows
from discreet.cli.releases import opened_release
from discreet.cli.shell import aligned, already_written, print_json, print_page
from discreet.cli.tabular import is_estimator, opened_estimator
from discreet.errors import InvalidInput
from discreet.readers.attention.reader import WITHIN
from discreet.tables.schema import Date, Entry, Number, Private

if TYPE_CHECKING:
    from discreet.sklearn.shapes import Shape

_NOTE = (
    "The ± is that of the noise. What steps and clipping leave out, bias, is not in it; nor are "
    "waves over several columns, which belong to none of them. What is added where a value is "
    "missing has no ±; where none is, it is noise."
)
_UNCLEAR = "not clear of the noise"

# What a row says of a step, and of its column.
_STEP = ("name", "share", "clear", "label", "low", "high")

_DAY = 86_400  # seconds

# Letters of a line, and of a number with its ± and two spaces; digits that tell edges apart.
_LINE, _CELL, _DIGITS = 76, 15, 17


@dataclass(frozen=True, eq=False)
class _Column:
    """One column: what it adds to scores, and what is known of it.

    Attributes:
        shape: what it adds.
        entry: what the schema says of it.
        share: of what all columns do to scores.
    """

    shape: "Shape"
    entry: Entry
    share: float

    @property
    def dates(self) -> bool:
        """Whether it holds dates."""
        return isinstance(self.entry, Date) or self.entry == Private("dates")

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each bin or category."""
        edges = self.shape.edges
        if edges is None or not len(edges):
            return self.shape.labels
        texts = _days(edges) if self.dates else _told_apart(edges)
        inner = [f"{low} to {high}" for low, high in pairwise(texts)]
        return (f"below {texts[0]}", *inner, f"from {texts[-1]}")

    @property
    def ends(self) -> tuple[float, float] | None:
        """The public range of its numbers or dates, if there is one."""
        return self.entry.range if isinstance(self.entry, Number | Date) else None

    @property
    def clear(self) -> bool:
        """Whether any step is larger than its ±."""
        return bool(np.any(np.abs(self.shape.values) > WITHIN * self.shape.stderr))

    def rows(self) -> tuple[Floats, Floats]:
        """Return values and their ±, shape (steps, outputs)."""
        count = len(self.shape.labels)
        return self.shape.values.reshape(count, -1), WITHIN * self.shape.stderr.reshape(count, -1)

    def table(self, outputs: Sequence[str]) -> dict[str, list[Any]]:
        """Return a row for each step and score, and for what is added where a value is missing.

        Args:
            outputs: names of scores, if there are several.
        """
        edges = [] if self.shape.edges is None else self.shape.edges.tolist()
        low, high = [None, *edges], [*edges, None]
        if not edges:
            low = high = [None] * len(self.labels)
        values, margins = self.rows()
        stderr = [*(margins / WITHIN).tolist(), [None] * values.shape[1]]
        steps = zip(
            [*self.labels, "missing"],
            [*low, None],
            [*high, None],
            [*values.tolist(), np.ravel(self.shape.missing).tolist()],
            stderr,
            strict=True,
        )
        rows = [
            (self.shape.name, self.share, self.clear, *step, *([name] if outputs else []), *pair)
            for *step, numbers, errors in steps
            for name, *pair in zip(outputs or [""], numbers, errors, strict=True)
        ]
        names = [*_STEP, *(["output"] if outputs else []), "value", "stderr"]
        columns = zip(*rows, strict=True)
        return dict(zip(names, map(list, columns), strict=True))

    def facts(self) -> dict[str, object]:
        """Return all of it, ready for JSON."""
        shape = self.shape
        return {
            "name": shape.name,
            "importance": shape.importance,
            "share": self.share,
            "clear": self.clear,
            "dates": self.dates,
            "edges": None if shape.edges is None else shape.edges.tolist(),
            "labels": list(self.labels),
            "values": shape.values.tolist(),
            "stderr": shape.stderr.tolist(),
            "missing": np.asarray(shape.missing).tolist(),
        }


def show_shapes(
    model: Path,
    *,
    output: Path | None,
    file_format: str | None,
    top: int,
    force: bool,
    as_json: bool,
) -> None:
    """Print, and draw or write, what each column of a table adds to scores.

    Args:
        model: a file with an estimator of a table.
        output: where to draw, or to write rows, if anywhere.
        file_format: of rows, if the ending does not say it.
        top: so many columns are shown, the most important first.
        force: whether a file that is there may be replaced.
        as_json: whether to print all of it as JSON.
    """
    out = None
    if means_rows(output, file_format):
        wanted: dict[str, Any] = {"force": force, "as_json": as_json, "inputs": (model,)}
        out = Output.if_wanted(output, file_format, **wanted)
    else:
        check_picture(output, force=force, inputs=(model,))
    fitted, columns = _opened(model)
    several = columns[0].shape.values.ndim > 1
    outputs = _outputs(fitted, columns[0].rows()[0].shape[1]) if several else []
    adds = _meaning(fitted, several=several)
    if out is not None:
        out.write([each.table(outputs) for each in columns])
        out.tell(lambda: tell_rows(out.path, len(columns), "columns", as_json=as_json))
        return
    if output is not None:
        _draw(columns[:top], outputs, adds, output)
        with already_written(output):
            _show(columns, outputs, adds, model, top=top, as_json=as_json, picture=output)
    else:
        _show(columns, outputs, adds, model, top=top, as_json=as_json, picture=None)


def _opened(model: Path) -> tuple[Any, list[_Column]]:
    """Return the estimator in a file, and its columns, the most important first, if it has any."""
    release = opened_release(model)
    fitted = opened_estimator(release) if is_estimator(release) else None
    shapes = getattr(fitted, "shapes_", None)
    if fitted is None or shapes is None:
        raise InvalidInput(
            f"Expected {model} to be a model of columns: discreet fit and regress make one with "
            "--schema."
        )
    total = sum(shape.importance for shape in shapes.values()) or 1.0
    entries = fitted.columns.columns
    columns = [
        _Column(shape, entries[name], shape.importance / total) for name, shape in shapes.items()
    ]
    return fitted, sorted(columns, key=lambda column: -column.share)


def _outputs(fitted: Any, count: int) -> list[str]:  # noqa: ANN401 (a class of an extra)
    """Return the name of each of several scores."""
    classes = [str(each) for each in getattr(fitted, "classes_", ())]
    if len(classes) == count > 2:
        return classes
    return [f"{'label' if classes else 'output'} {place}" for place in range(count)]


def _meaning(fitted: Any, *, several: bool) -> str:  # noqa: ANN401
    """Return what columns add to."""
    if not hasattr(fitted, "classes_"):
        if fitted.target == "log":
            return "the logarithm of the prediction, stretched to the range of targets"
        return "the prediction, in units of the target"
    if several and len(fitted.classes_) == 2:  # there or not: several labels at once
        return "the log-odds of each label"
    if several:
        return "the score of each class (a logit, around the mean of all classes)"
    return f"the log-odds of {fitted.classes_[1]} against {fitted.classes_[0]}"


def _show(
    columns: Sequence[_Column],
    outputs: Sequence[str],
    adds: str,
    model: Path,
    *,
    top: int,
    as_json: bool,
    picture: Path | None,
) -> None:
    if as_json:
        facts = {"model": str(model), "adds_to": adds, "outputs": list(outputs), "note": _NOTE}
        drawn = {} if picture is None else {"output": str(picture)}
        print_json({**drawn, **facts, "columns": [column.facts() for column in columns]})
        return
    print_page(f"{model}: what each column adds to {adds}, around its mean over steps. {_NOTE}")
    digits = _digits(columns)
    for column in columns[:top]:
        print_page("\n")
        for line in _lines(column, outputs, digits):
            print_page(line)
    if len(columns) > top:
        print_page("\n")
        print_page(f"and {len(columns) - top} less important; --top shows more")
    if picture is not None:
        print_page("\n")
        print_page(f"{picture}: a picture of it")


def _digits(columns: Sequence[_Column]) -> int:
    """Return how many digits after the point give a typical ± two in all."""
    typical = float(np.median(np.concatenate([column.rows()[1].ravel() for column in columns])))
    return min(max(1 - math.floor(math.log10(typical or 1.0)), 0), 6)


def _lines(column: _Column, outputs: Sequence[str], digits: int) -> Iterator[str]:
    """Yield what is printed of a column: a title, and a line for each step."""
    unclear = "" if column.clear else f", {_UNCLEAR}"
    yield f"{column.shape.name}, {column.share:.0%} of what columns do{unclear}"
    values, margins = column.rows()
    missing = np.ravel(column.shape.missing)
    longest = max(map(len, ["missing", *column.labels]))
    cell = max([_CELL, *map(len, outputs)])
    beside = max((_LINE - longest) // cell, 1)
    for start in range(0, values.shape[1], beside):
        some = slice(start, start + beside)
        table = [("", *outputs[some])] if outputs else []
        for label, row, margin in zip(
            column.labels, values[:, some], margins[:, some], strict=True
        ):
            cells = zip(row, margin, strict=True)
            table.append((label, *(f"{x:+.{digits}f} ± {y:.{digits}f}" for x, y in cells)))
        table.append(("missing", *(f"{x:+.{digits}f}" for x in missing[some])))
        for line in aligned(table, gap=2, right=False):
            yield f"  {line}"


def _days(seconds: Floats) -> list[str]:
    """Return seconds since 1970 as days; as minutes, if there are several on a day."""
    narrowest = float(np.min(np.diff(seconds), initial=np.inf))
    unit = "D" if narrowest >= _DAY else "m"
    moments = (np.datetime64(int(each), "s").astype(f"datetime64[{unit}]") for each in seconds)
    return [str(each).replace("T", " ") for each in moments]


def _told_apart(edges: Floats) -> list[str]:
    """Return edges with as many digits as it takes to tell them apart, at least three."""
    for digits in range(3, _DIGITS + 1):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(texts)) == len(texts) and _is_even(texts, edges):
            break
    return [f"{float(text):,.12g}" if digits <= 12 else text for text in texts]


def _is_even(texts: Sequence[str], edges: Floats) -> bool:
    """Whether no edge is off by more than a tenth of the narrowest step because of its digits."""
    narrowest = float(np.min(np.diff(edges), initial=np.inf))
    off = np.abs(np.array(list(map(float, texts))) - edges)
    return bool(np.all(off <= narrowest / 10))


def _draw(columns: Sequence[_Column], outputs: Sequence[str], adds: str, output: Path) -> None:
    drawing = pictures()
    panels = [
        drawing.ShapePanel(
            name=column.shape.name,
            share=column.share,
            edges=column.shape.edges,
            ends=column.ends,
            dates=column.dates,
            labels=column.labels,
            values=column.rows()[0],
            margins=column.rows()[1],
            clear=column.clear,
        )
        for column in columns
    ]
    drawing.save(drawing.shapes_of_columns(panels, outputs=outputs, adds=adds), output)
