"""Rows that commands write for the next program: named columns, in a file or on standard output.

The format follows from the file's ending, or is said. On standard output there is nothing else, and
a reader that has seen enough is no error. A column is an array with a number, or a vector, for each
row, or a list. Where a format has lists (Parquet, JSON lines) a vector is one; in a .csv table each
of its numbers has a column of its own: answer_0, answer_1, ...
"""

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from discreet._typing import Array
from discreet.cli.files import check_output, output_file
from discreet.cli.shell import (
    already_written,
    print_json,
    print_page,
    printable,
    without_infinities,
)
from discreet.errors import InvalidInput
from discreet.tables import read_labels, split
from discreet.tables.columns import needing_pyarrow
from discreet.tables.whole import TABLES, read_columns

# For each row a number, a vector, or whatever JSON knows; by the names of columns.
Columns = Mapping[str, Array | Sequence[Any]]

STANDARD_OUTPUT = Path("-")

_CSV, _PARQUET, _JSON_LINES = ROWS = ("csv", "parquet", "jsonl")
_ARRAYS = ("npy", "npz")

_FORMATS = {".ndjson": _JSON_LINES, **{f".{name}": name for name in (*ROWS, *_ARRAYS)}}

# Rows that are made texts at once.
_AT_ONCE = 2**12


@dataclass(frozen=True)
class Output:
    """Where rows go, and how they are written. `checked` makes one.

    Attributes:
        path: of the file; `STANDARD_OUTPUT` for that.
        file_format: one of `ROWS`, "npy" or "npz".
        force: whether a file that is there may be replaced.
    """

    path: Path
    file_format: str
    force: bool

    @classmethod
    def checked(
        cls,
        path: Path,
        file_format: str | None,
        *,
        force: bool,
        as_json: bool,
        arrays: str | None = None,
        inputs: Iterable[Path | None] = (),
    ) -> Self:
        """Return where to write, if that can be done; before any work is.

        Args:
            path: of the file; - for standard output.
            file_format: that somebody asked for; else the ending says it, and standard output gets
                a .csv table.
            force: whether a file that is there may be replaced.
            as_json: whether something is to be said as JSON, on standard output.
            arrays: the ending of a file of arrays, if the rows may become one: "npy" for one array,
                "npz" for several.
            inputs: files that may not be replaced, even so.

        Raises:
            InvalidInput: it is not one of the formats, or nothing can be written there.
        """
        chosen = cls(path, _format(path, file_format, arrays), force)
        if chosen.is_standard:
            chosen._check_standard(as_json=as_json)
        else:
            check_output(path, force=force, inputs=inputs)
        if not chosen.has_rows and chosen.file_format != arrays:
            other = "are several arrays" if arrays == "npz" else "is one array"
            raise InvalidInput(f"Expected {path} to end in .{arrays}: what is written {other}.")
        if chosen.file_format == _PARQUET:
            chosen._check_parquet()
        return chosen

    @classmethod
    def if_wanted(
        cls,
        path: Path | None,
        file_format: str | None,
        **given: Any,  # noqa: ANN401 (those of `checked`)
    ) -> Self | None:
        """Return where to write, of a command that prints for people if nobody says where.

        Args:
            path: of the file; - for standard output; None if nothing is to be written.
            file_format: that somebody asked for.
            **given: of `checked`.

        Raises:
            InvalidInput: it is not one of the formats, or nothing can be written there.
        """
        if path is not None:
            return cls.checked(path, file_format, **given)
        if file_format is not None:
            raise InvalidInput("Expected --format with --output, which says where to write.")
        return None

    @property
    def is_standard(self) -> bool:
        """Whether rows are printed."""
        return self.path == STANDARD_OUTPUT

    @property
    def has_rows(self) -> bool:
        """Whether rows of columns are written, and not arrays."""
        return self.file_format in ROWS

    @property
    def has_lists(self) -> bool:
        """Whether a cell can hold a list, or an object."""
        return self.file_format in (_PARQUET, _JSON_LINES)

    def write(self, batches: Iterable[Columns]) -> None:
        """Write rows as they come, whole or, in a file, not at all.

        Args:
            batches: columns of some rows each, with the same names.
        """
        with self._opened() as file:
            if self.file_format == _PARQUET:
                from discreet.tables.arrow import write_parquet

                write_parquet(batches, file)
                return
            as_text = _as_csv if self.file_format == _CSV else _as_json_lines
            for text in as_text(batches):
                shown = printable(text) if self._is_seen else text
                file.write(shown.encode(errors="replace"))
                if isinstance(file, io.BytesIO):
                    _print(file)

    def write_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Write arrays, by name, to a .npz file; the only one to a .npy file."""
        with self._opened() as file:
            if self.file_format == "npz":
                np.savez(file, **arrays)
            else:
                [array] = arrays.values()
                np.save(file, array, allow_pickle=False)

    def tell(self, show: Callable[[], None]) -> None:
        """Tell of a file that was written; nothing of standard output, which has rows only.

        Args:
            show: prints.
        """
        if not self.is_standard:
            with already_written(self.path):
                show()

    @property
    def _is_seen(self) -> bool:
        return self.is_standard and sys.stdout.isatty()

    def _check_standard(self, *, as_json: bool) -> None:
        if as_json:
            raise InvalidInput(
                "Expected --json with a file: --output - prints the rows, and nothing else "
                f"(--format {_JSON_LINES} makes JSON of them)."
            )
        if self._is_seen and self.file_format not in (_CSV, _JSON_LINES):
            raise InvalidInput(
                f"Expected a pipe or a file for --format {self.file_format}: a terminal shows text."
            )

    def _check_parquet(self) -> None:
        with needing_pyarrow(self.path, to="write"):
            import discreet.tables.arrow as _  # noqa: F401

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Yield the file; for standard output memory, and print what is left there."""
        if not self.is_standard:
            with output_file(self.path, force=self.force) as file:
                yield file
            return
        held = io.BytesIO()
        yield held
        _print(held)


def _print(held: io.BytesIO) -> None:
    """Print all bytes that are held, and let go of them.

    Where nothing is buffered (PYTHONUNBUFFERED), one write may take only some of them.
    """
    rest = memoryview(held.getvalue())
    held.seek(0)
    held.truncate()
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.flush()


def _format(path: Path, asked: str | None, arrays: str | None) -> str:
    """Return the format that was asked for, or that a file's ending says."""
    known = (*ROWS, *(_ARRAYS if arrays else ()))
    if asked is not None:
        found = _FORMATS.get(f".{asked.lower()}", "")
        if found not in known:
            raise InvalidInput(f"Expected --format {asked!r} to be {_listed(known)}.")
        return found
    if path == STANDARD_OUTPUT:
        return _CSV
    found = _FORMATS.get(path.suffix.lower(), "")
    if found not in known:
        endings = [f".{name}" for name in known]
        raise InvalidInput(
            f"Expected {path} to end in {_listed(endings)}; or --format, which says it for any "
            "ending."
        )
    return found


def means_rows(path: Path | None, file_format: str | None) -> bool:
    """Whether rows are asked for, of a command that could draw instead.

    Args:
        path: of the file.
        file_format: that somebody asked for.
    """
    ending = "" if path is None else _FORMATS.get(path.suffix.lower(), "")
    return file_format is not None or path == STANDARD_OUTPUT or ending in ROWS


def tell_rows(path: Path, count: int, what: str, *, as_json: bool) -> None:
    """Print how many rows a file has.

    Args:
        path: of the file.
        count: of rows.
        what: they are.
        as_json: whether to print JSON.
    """
    if as_json:
        print_json({"output": str(path), what: count})
    else:
        print_page(f"{path}: {count:,} {what}")


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def places(shape: tuple[int, ...], *, heads: int = 0) -> dict[str, Array]:
    """Return where each answer stands, as columns: batch and head, where there are any, and query.

    Args:
        shape: of the answers, without the numbers of each: (*batch, *heads, m).
        heads: how many axes of it are those of heads.
    """
    last = shape[-1:] or (1,)
    inner = math.prod(shape[-1 - heads : -1]) if heads else 1
    flat = np.arange(math.prod(shape))
    found = {"batch": flat // max(inner * last[0], 1)} if len(shape) > 1 + heads else {}
    if heads:
        found["head"] = flat // max(last[0], 1) % inner
    return {**found, "query": flat % max(last[0], 1)}


@dataclass(frozen=True)
class Ids:
    """A column of the queries' file that goes with the answers, in place of their numbers.

    Attributes:
        name: of the column.
        cells: one for each query.
    """

    name: str
    cells: Sequence[Any]

    @classmethod
    def read(cls, queries: Path, name: str | None, output: Output) -> Self | None:
        """Return the column, if one was asked for.

        Args:
            queries: the file, or FILE:NAME.
            name: of the column; None for none.
            output: where it is to go.

        Raises:
            InvalidInput: there is none of this name, or it would go to an array.
        """
        if name is None:
            return None
        if not output.has_rows:
            raise InvalidInput(f"Expected --id with rows: {_listed(ROWS)}, not an array.")
        path, _ = split(queries)
        in_table = path.suffix.lower() in TABLES
        cells = read_columns(path, [name])[name] if in_table else read_labels(path, name=name)
        return cls(name, cells.tolist() if isinstance(cells, np.ndarray) else cells)

    def beside(self, columns: Columns) -> Columns:
        """Return the columns of answers with this one before them.

        Args:
            columns: `query` says which query each answer is of, if they are not in order.

        Raises:
            InvalidInput: the name is taken, or there are not as many queries.
        """
        others = {each: column for each, column in columns.items() if each != "query"}
        taken = {each for name, column in others.items() for each, _ in _apart(name, column)}
        if self.name in taken | others.keys():
            raise InvalidInput(
                f"Expected --id {self.name!r} not to be the name of a column of answers."
            )
        of_row = columns.get("query", range(len(next(iter(columns.values())))))
        if len(self.cells) != max(of_row, default=-1) + 1:
            raise InvalidInput(f"Expected --id {self.name!r} to have a row for each query.")
        return {self.name: [self.cells[place] for place in of_row], **others}


def _as_csv(batches: Iterable[Columns]) -> Iterator[str]:
    """Yield the lines of a .csv table, some at a time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names: list[str] | None = None
    for batch in batches:
        flat = [pair for name, column in batch.items() for pair in _apart(name, column)]
        if names is None:
            names = [name for name, _ in flat]
            writer.writerow(names)
        for rows in _sliced([column for _, column in flat]):
            writer.writerows(rows)
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _apart(name: str, column: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield a column; of one of vectors, one for each of their numbers."""
    if getattr(column, "ndim", 1) == 1:
        yield name, column
        return
    for place in range(column.shape[1]):
        yield f"{name}_{place}", column[:, place]


def _as_json_lines(batches: Iterable[Columns]) -> Iterator[str]:
    """Yield JSON objects, one a line, some at a time."""
    for batch in batches:
        names = tuple(batch)
        for rows in _sliced(list(batch.values())):
            yield "".join(f"{_json(dict(zip(names, row, strict=True)))}\n" for row in rows)


def _json(row: Mapping[str, Any]) -> str:
    """Return an object in one line: null for a number that is none, dates as texts."""
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(without_infinities(row), ensure_ascii=False, default=str)


def _sliced(columns: Sequence[Any]) -> Iterator[Iterable[tuple[Any, ...]]]:
    """Yield rows of columns, some at a time, as Python's own numbers and lists."""
    for start in range(0, len(columns[0]) if columns else 0, _AT_ONCE):
        some = [column[start : start + _AT_ONCE] for column in columns]
        lists = [each.tolist() if hasattr(each, "tolist") else each for each in some]
        yield zip(*lists, strict=True)
