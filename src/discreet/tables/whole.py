"""Whole tables in memory: columns of one .csv or .parquet file, as a schema takes them.

A .csv file is in UTF-8, its first line names the columns, and an empty cell is a missing value. All
other cells are texts, so what a cell means is for the schema to say: a number of a range or of a
list of numbers is parsed, a date is written as ISO has it, and categories are compared as texts.
Each cell is read by itself, whatever stands in others.

One thing a .csv file cannot say, and a schema may leave open: whether a column that is only
"private" holds numbers. One row could change what the cells look like, so it is refused: the schema
has to say "private numbers", "private dates" or "private categories".

Errors name files and columns, never a value.
"""

import csv
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput
from discreet.tables.columns import check_unpacked, listed, needing_pyarrow, sentences
from discreet.tables.schema import Category, Number, Private, Schema

TABLES = (".csv", ".parquet")

# What the cells of a .csv file call what is true and false, if a list of categories has these.
_BOOLEANS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False, repr=False)
class Whole:
    """Some columns of a table. PRIVATE, unless the table is public.

    Attributes:
        columns: of the schema, by name, in the types that it says.
        others: the other columns that were asked for, by name; cells of a .csv file as texts.
    """

    columns: dict[str, Any]
    others: dict[str, Any]


def column_names(path: Path) -> list[str]:
    """Return the names of a table's columns, in order.

    Args:
        path: of a .csv or .parquet file.

    Raises:
        InvalidInput: if it is none.
    """
    if _is_csv(path):
        with _csv(path) as (names, _):
            return names
    with _parquet(path) as file:
        return list(file.schema_arrow.names)


def read_columns(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return columns of a table, each as a list or an array with a value for each row.

    Args:
        path: of a .csv or .parquet file.
        names: of the columns.

    Returns:
        Of a .csv file texts, and None where a cell is empty; of a .parquet file what is in it.

    Raises:
        InvalidInput: if there is no such file, or a column is not there; the sentence names the
            file and no value of it.
    """
    wanted = list(dict.fromkeys(names))
    if not _is_csv(path):
        return _of_parquet(path, wanted)
    with _csv(path) as (known, lines):
        _check_names(path, wanted, known)
        places = [known.index(name) for name in wanted]
        # Of one place it would return the cell itself.
        pick = operator.itemgetter(*places, *places[:1])
        picked = [pick(line) for line in lines]
    cells = zip(*picked, strict=True) if picked else ((),) * len(wanted)
    return {
        name: [each.rstrip() or None for each in column]
        for name, column in zip(wanted, cells, strict=False)  # all but the one that is there twice
    }


def read_table(path: Path, schema: Schema, *others: str) -> Whole:
    """Return the columns of a schema, and others beside them.

    Args:
        path: of a .csv or .parquet file.
        schema: what columns hold.
        *others: names of further columns.

    Raises:
        InvalidInput: if a column is not there, or does not hold what the schema says.
    """
    found = read_columns(path, [*schema.names, *others])
    columns = {name: found[name] for name in schema.names}
    if _is_csv(path):
        columns = typed(columns, schema)
    return Whole(columns, {name: found[name] for name in others})


def read_public(path: Path) -> dict[str, Any]:
    """Return all columns of a table of *public* rows, for `guess`.

    Args:
        path: of a .csv or .parquet file. A column of the former is numbers if all of its cells are,
            else dates if all are, else texts.
    """
    columns = read_columns(path, column_names(path))
    if not _is_csv(path):
        return columns
    return {name: _inferred(cells) for name, cells in columns.items()}


def typed(columns: Mapping[str, Sequence[str | None]], schema: Schema) -> dict[str, Any]:
    """Return the cells of a .csv file as what the schema says that they are.

    Args:
        columns: texts, and None where one is missing.
        schema: what they hold.

    Raises:
        InvalidInput: if a cell is no number where one is expected. (Dates are for the schema to
            read: texts are what it takes.)
    """
    made: dict[str, Any] = {}
    for name, entry in schema.columns.items():
        cells = columns[name]
        if isinstance(entry, Number) or entry == Private("numbers"):
            made[name] = as_numbers(cells, name)
        elif isinstance(entry, Category) and not isinstance(entry.categories[0], str):
            made[name] = as_numbers(cells, name, booleans=True)
        elif entry == Private():
            raise InvalidInput(
                f"Expected the schema to say what {name!r} holds, since all cells of a .csv file "
                "are texts: 'private numbers', 'private dates' or 'private categories'."
            )
        else:
            made[name] = cells
    return made


def as_numbers(
    cells: Sequence[str | None], name: str, *, booleans: bool = False
) -> list[float | None]:
    """Return cells of a .csv file as numbers, and None where one is missing.

    Args:
        cells: texts.
        name: of the column.
        booleans: whether true and false are one and zero.
    """
    known = _BOOLEANS if booleans else {}
    try:
        return [
            None if each is None else known[each.lower()] if each.lower() in known else float(each)
            for each in cells
        ]
    except ValueError:  # its message quotes the cell
        raise InvalidInput(
            f"Expected column {name!r} to hold numbers, and it holds something else, too."
        ) from None


def check_complete(values: Sequence[Any], name: str, path: Path) -> None:
    """Raise `InvalidInput` if a value is missing in a column where none may be.

    Args:
        values: of the column.
        name: of the column.
        path: of the file.
    """
    if any(each is None or (isinstance(each, float) and math.isnan(each)) for each in values):
        raise InvalidInput(f"Expected no missing value in {name!r} of {path}.")


def _inferred(cells: Sequence[str | None]) -> Sequence[Any]:
    """Return public cells as numbers, or as dates, if all of them are; else as they are."""
    for parse in (float, datetime.fromisoformat):
        with suppress(ValueError):
            return [None if each is None else parse(each) for each in cells]
    return cells


def _is_csv(path: Path) -> bool:
    """Whether a table is a .csv file; if it is no file that can be read, raise."""
    if path.is_dir():
        raise InvalidInput(f"Expected {path} to be a file, and it is a directory.")
    if not path.is_file():
        raise InvalidInput(f"Expected {path} to be a file, and there is none of this name.")
    if path.suffix.lower() not in TABLES:
        raise InvalidInput(f"Expected {path} to be a table, a {' or '.join(TABLES)} file.")
    return path.suffix.lower() == ".csv"


def _check_names(path: Path, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if known.count(name) != 1:
            raise InvalidInput(
                f"Expected {path} to have one column {name!r}; it has: {listed(known)}."
            )


@contextmanager
def _csv(path: Path) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
    """Yield the names of a .csv file's columns, and its other lines."""
    wanted = "a .csv file in UTF-8 whose first line names columns"
    with sentences(path, wanted), path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True, skipinitialspace=True)
        names = [name.strip() for name in next(lines, [])]
        if not names or not all(names):
            raise InvalidInput(f"Expected {path} to be {wanted}.")
        yield names, _lines(path, lines, len(names))


def _lines(path: Path, lines: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """Yield lines that have a cell for each column."""
    for line in lines:
        if not line:
            if width == 1:  # an empty cell; else an empty line, which is no row
                yield [""]
            continue
        if len(line) != width:
            raise InvalidInput(
                f"Expected every line of {path} to have {width} cells, as the first has."
            )
        yield line


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    with needing_pyarrow(path):
        from pyarrow import parquet
    with (
        sentences(path, "a whole .parquet file"),
        parquet.ParquetFile(path, memory_map=True) as file,
    ):
        yield file


def _of_parquet(path: Path, names: list[str]) -> dict[str, Any]:
    with _parquet(path) as file:
        _check_names(path, names, file.schema_arrow.names)
        check_unpacked(path, _unpacked(file))
        table = file.read(columns=names, use_threads=False)
        if sorted(table.column_names) != sorted(names):  # a name with a dot may be a path, too
            raise InvalidInput(f"Expected {path} to have columns that can be told apart by name.")
        return {name: _values(table[name]) for name in names}


def _unpacked(file: Any) -> int:  # noqa: ANN401 (pyarrow has no types)
    """Return how many bytes the footer says that rows unpack to."""
    groups = (file.metadata.row_group(place) for place in range(file.metadata.num_row_groups))
    return sum(int(group.total_byte_size) for group in groups)


def _values(column: Any) -> Any:  # noqa: ANN401
    """Return an Arrow column as numpy has it, or as Python does: to the value the same.

    numpy has no whole number that is missing, and would make floats of all others because of it.
    """
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(column.type):  # Python's own have no nanoseconds; instants are in UTC
        column = column.cast(pa.timestamp("us"), safe=False)
    whole = types.is_integer(column.type) and not column.null_count
    if whole or types.is_floating(column.type):
        return column.to_numpy()
    return column.to_pylist()
