"""What the columns of a table hold, as far as that is public; and how rows become keys.

A `Schema` is written without a look at the private rows. A row becomes its key by comparisons and
look-ups, value by value: the same key to the bit, whatever stands beside it, in whatever frame.

numpy and pandas make one type of all that stands in a column, and one value may change the type of
all. So a value is never converted by way of the others: whole numbers, floats and dates in any unit
become the same float64, and texts are compared as they are. What is neither is refused, by the name
of the column and without a value.
"""

import math
import numbers
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet._keys import LARGEST, MISSING, place_of
from discreet.errors import InvalidInput

PRIVATE = "private"
_Floats: TypeAlias = NDArray[np.float64]

_NUMBERS = "biuf"
_TEXTS = "leave it out of columns; whole texts are answered by a corpus, or by an encoder"


@dataclass(frozen=True)
class Number:
    """A column of numbers in a public range; numbers beyond count as the nearer end.

    Attributes:
        low: of the range.
        high: of the range, above `low`.
    """

    kind: ClassVar[str] = "number"

    low: float
    high: float

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        try:
            low, high = (float(each) if _is_number(each) else math.nan for each in ends)
        except OverflowError:
            low = high = math.nan
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidInput("Expected the range of a column to be two finite numbers.")
        if not low < high or max(-low, high) > LARGEST:
            raise InvalidInput("Expected the range of a column to be (low, high), low below high.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def range(self) -> tuple[float, float]:
        """The ends, as keys have them."""
        return self.low, self.high

    def keys(self, values: NDArray[Any], where: str) -> _Floats:
        """Return the numbers of a column.

        Args:
            values: of the column.
            where: what messages call it.
        """
        return _numbers(values, where)

    def to_json(self) -> object:
        """Return it as JSON and TOML know it."""
        return {"range": [self.low, self.high]}


@dataclass(frozen=True)
class Date:
    """A column of dates or times between two public ones.

    Attributes:
        first: a text like "2000-01-01", or a date.
        last: likewise, later.
    """

    kind: ClassVar[str] = "date"

    first: str
    last: str

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            value = getattr(self, name)
            if not isinstance(value, str | date):
                raise InvalidInput(f"Expected {name} of a Date to be a date like '2000-01-01'.")
            text = value if isinstance(value, str) else value.isoformat()
            _end(text, name)
            object.__setattr__(self, name, text)
        low, high = self.range
        if not low < high:
            raise InvalidInput("Expected the first of a Date to be before the last.")

    @property
    def range(self) -> tuple[float, float]:
        """The ends, in seconds since 1970."""
        return _end(self.first, "first"), _end(self.last, "last")

    def keys(self, values: NDArray[Any], where: str) -> _Floats:
        """Return the seconds since 1970 of a column of dates.

        Args:
            values: of the column.
            where: what messages call it.
        """
        return _seconds(values, where)

    def to_json(self) -> object:
        """Return it as JSON and TOML know it."""
        return {"first": self.first, "last": self.last}


@dataclass(frozen=True)
class Category:
    """A column of categories on a public list; others are unknown, and say nothing.

    Attributes:
        categories: distinct texts, or distinct numbers.
    """

    kind: ClassVar[str] = "category"

    categories: tuple[Any, ...]

    def __post_init__(self) -> None:
        given = tuple(_plain(each) for each in self.categories)
        texts = {isinstance(each, str) for each in given}
        if (
            not given
            or len(texts) != 1
            or not all(isinstance(each, str | int | float) for each in given)
        ):
            raise InvalidInput("Expected a list of categories: all of them texts, or all numbers.")
        compared = [each if isinstance(each, str) else _float(each) for each in given]
        if any(each != each for each in compared):  # noqa: PLR0124 (NaN equals nothing)
            raise InvalidInput("Expected a list of categories without NaN: it means missing.")
        if len(set(compared)) != len(given):
            raise InvalidInput("Expected the categories of a list to be distinct.")
        object.__setattr__(self, "categories", given)

    def keys(self, values: NDArray[Any], where: str) -> _Floats:
        """Return the place of each category on the list; -1 for one that is not on it.

        Args:
            values: of the column.
            where: what messages call it.
        """
        texts = isinstance(self.categories[0], str)
        known = {
            each if texts else _float(each): float(place)
            for place, each in enumerate(self.categories)
        }
        return _looked_up(values, where, lambda each: known.get(each, -1.0), texts=texts)

    def to_json(self) -> object:
        """Return it as JSON and TOML know it."""
        return list(self.categories)


@dataclass(frozen=True)
class Private:
    """A column whose range, or list of categories, is found with a share of the budget.

    Attributes:
        holds: "numbers", "dates" or "categories"; "" for what the table says that it holds.
    """

    kind: ClassVar[str] = PRIVATE

    holds: str = ""

    def __post_init__(self) -> None:
        if self.holds not in {"", "numbers", "dates", "categories"}:
            raise InvalidInput("Expected Private to hold 'numbers', 'dates' or 'categories'.")

    def keys(self, values: NDArray[Any], where: str) -> _Floats:
        """Return numbers as they are, and categories by their place among 512.

        Args:
            values: of the column.
            where: what messages call it.
        """
        if self.holds == "numbers":
            return _numbers(values, where)
        if self.holds == "dates":
            return _seconds(values, where)
        return _looked_up(values, where, lambda each: float(place_of(_name(each))), texts=None)

    def to_json(self) -> object:
        """Return it as JSON and TOML know it."""
        return f"{PRIVATE} {self.holds}" if self.holds else PRIVATE


@dataclass(frozen=True)
class Text:
    """A column of free texts. Refused: a text is no category, and an average of texts is none."""


Entry = Number | Date | Category | Private


class Schema:
    """Columns of a table by name, and what is public about each.

    Args:
        columns: for each name one of: `(low, high)`, the public range of a number; a list of
            categories; `Date(first, last)`; or "private", for a range or a list of categories that
            is found with a share of the budget. Columns that are not named are not read.

    A tuple of two numbers is a range, and a list is a list of categories. Values that are missing
    (None, NaN, NaT, NA) need no mention: they have a place of their own.
    """

    def __init__(self, columns: "Mapping[str, Any] | Schema") -> None:
        given = columns.columns if isinstance(columns, Schema) else columns
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(
                "Expected columns to be a dictionary: names of columns, and what each holds."
            )
        self.columns: dict[str, Entry] = {
            _named(name): _entry(name, each) for name, each in given.items()
        }

    def __repr__(self) -> str:
        return f"Schema({self.columns!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and list(self.columns.items()) == list(
            other.columns.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self.columns))

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.columns)

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        """Return the schema in a TOML file, as `discreet schema guess` writes it.

        Args:
            path: of the file.
        """
        try:
            given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInput(f"Expected {path} to be readable: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"Expected {path} to be a schema in TOML: {error}.") from None
        return cls.from_json(given.get("columns", given))

    @classmethod
    def from_json(cls, given: object) -> "Schema":
        """Return the schema that `to_json` described, by way of JSON or TOML.

        Args:
            given: a dictionary.
        """
        if not isinstance(given, Mapping):
            raise InvalidInput("Expected a table of columns: names, and what each holds.")
        return cls({name: _from_json(name, each) for name, each in given.items()})

    def to_json(self) -> dict[str, object]:
        """Return what each column holds, as JSON and TOML know it."""
        return {name: each.to_json() for name, each in self.columns.items()}

    def to_toml(self) -> str:
        """Return the text of a TOML file that `read` reads."""
        lines = [f"{_toml(name)} = {_toml(each.to_json())}" for name, each in self.columns.items()]
        return "\n".join(["[columns]", *lines, ""])

    def for_table(self, table: object) -> "Schema":
        """Return the schema with private columns as what the table says that they hold.

        By the types of values only; a column that mixes texts and numbers is refused.

        Args:
            table: a frame, an Arrow table, a dictionary of columns, or rows in order.
        """
        columns: dict[str, Any] = dict(self.columns)
        for name, entry in self.columns.items():
            if entry == Private():
                columns[name] = Private(_held(_column(table, name, self.names), _quoted(name)))
        return Schema(columns)

    def keys(self, table: object) -> _Floats:
        """Return the keys of a table's rows, shape (n, p): one number for each column.

        Args:
            table: a frame of pandas or Polars, an Arrow table or batch, a dictionary of columns, or
                an array with the columns of the schema, in order.

        Raises:
            InvalidInput: a column is not there, or is not of the type that the schema says.
        """
        given = [
            entry.keys(_column(table, name, self.names), _quoted(name))
            for name, entry in self.columns.items()
        ]
        if len({len(each) for each in given}) > 1:
            raise InvalidInput("Expected all columns to have one value for each row.")
        return np.column_stack(given)


def guess(table: object) -> Schema:
    """Return a schema for a table of *public* rows: ranges rounded outwards, lists of categories.

    Never of private rows: the largest number of a column is somebody's, and so is a rare category.

    Args:
        table: of public rows, as for `Schema.keys`.
    """
    names = _names(table)
    columns: dict[str, Any] = {}
    for name in names:
        values = _column(table, name, names)
        where = _quoted(name)
        if all(map(_gone, values.tolist())):
            columns[name] = PRIVATE
            continue
        held = _held(values, where)
        if held == "categories":
            columns[name] = sorted({_plain(each) for each in values.tolist() if not _gone(each)})
            continue
        keys = _numbers(values, where) if held == "numbers" else _seconds(values, where)
        known = keys[keys != MISSING]
        if held == "dates":
            ends = known.min(), known.max() + 86_400
            columns[name] = Date(*(_day(each) for each in ends))
        else:
            columns[name] = _rounded(float(known.min()), float(known.max()))
    return Schema(columns)


def _day(seconds: float) -> str:
    return str(np.datetime64(int(seconds), "s").astype("datetime64[D]"))


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Return a range around both, of numbers with one digit; from 0 on where none is negative."""
    high, low = _outwards(high), -_outwards(-low)
    low = 0.0 if low >= 0 else low
    return (low, high) if low < high else (low, low + 1.0)


def _outwards(number: float) -> float:
    """Return a number with one digit that is no smaller."""
    if number == 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(abs(number)))
    return float(f"{math.ceil(number / unit) * unit:.12g}")


def _named(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidInput("Expected columns to be named by texts.")
    return name


def _entry(name: str, given: Any) -> Entry:  # noqa: ANN401
    """Return what a caller says of a column."""
    where = f"Expected column {_quoted(name)} to be"
    if isinstance(given, Number | Date | Category | Private):
        return given
    if given is Text or isinstance(given, Text):
        raise InvalidInput(f"{where} numbers, dates or categories, and it is Text: {_TEXTS}.")
    try:
        if isinstance(given, str):
            first, _, rest = given.partition(" ")
            if first == PRIVATE:
                return Private(rest)
        elif isinstance(given, tuple) and len(given) == 2 and all(map(_is_number, given)):
            return Number(*given)
        elif isinstance(given, list | np.ndarray) or hasattr(given, "categories"):
            listed = getattr(given, "categories", given)
            return Category(tuple(np.asarray(listed, dtype=object).tolist()))
    except InvalidInput as error:
        raise InvalidInput(f"Column {_quoted(name)}: {error}") from None
    raise InvalidInput(
        f"{where} (low, high), a list of categories, Date(first, last) or 'private'."
    )


def _from_json(name: str, given: Any) -> Any:  # noqa: ANN401
    if not isinstance(given, Mapping):
        return given
    ends = given.get("range")
    if given.keys() == {"range"} and isinstance(ends, list) and len(ends) == 2:
        return tuple(ends)
    if given.keys() == {"first", "last"}:
        return Date(given["first"], given["last"])
    raise InvalidInput(
        f"Expected column {_quoted(name)} to be {{ range = [low, high] }}, a list of categories, "
        '{ first = "...", last = "..." } or "private".'
    )


def _toml(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        escaped = re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped)
        return f'"{escaped}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


def _quoted(name: object) -> str:
    """Return the name of a column, which is public, on one line."""
    return repr(str(name))[:80]


def _is_number(value: object) -> bool:
    # numpy counts spans of time among whole numbers.
    odd = isinstance(value, bool | np.bool_ | np.timedelta64)
    return isinstance(value, numbers.Real | np.integer | np.floating) and not odd


def _float(value: Any) -> float:  # noqa: ANN401
    """Return a number as float64, and one that is too large as infinity: each by itself."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _end(text: str, name: str) -> float:
    """Return an end of a range of dates, in seconds since 1970."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"Expected {name} of a Date to be a date like '2000-01-01'.") from None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return float(np.datetime64(moment.replace(microsecond=0), "s").astype(np.int64))


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return Python's own number or text for numpy's."""
    if isinstance(value, np.generic):
        value = value.item()
    return str.__str__(value) if isinstance(value, str) else value


def _gone(value: object) -> bool:
    """Whether a value is missing."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating) and math.isnan(value)


def _name(value: object) -> str:
    """Return the name of a category that nobody listed: 1, 1.0 and True are one and the same."""
    if isinstance(value, str):
        return f"text {value}"
    number = _float(value)
    return f"number {int(number)}" if number.is_integer() else f"number {number!r}"


def _names(table: Any) -> list[str]:  # noqa: ANN401
    """Return the names of a table's columns."""
    if isinstance(table, Mapping):
        return list(table)
    # Of the class: a frame may have a column of that name.
    known = [each for each in ("column_names", "columns") if hasattr(type(table), each)]
    found = list(getattr(table, known[0])) if known else None
    if found is None or any(not isinstance(each, str) for each in found):
        raise InvalidInput("Expected a table whose columns have names.")
    return list(found)


def _column(table: Any, name: str, names: Sequence[str]) -> NDArray[Any]:  # noqa: ANN401
    """Return the values of a column, as numpy has them."""
    if isinstance(table, np.ndarray) and table.dtype.names is None:
        if table.ndim != 2 or table.shape[1] != len(names):
            raise InvalidInput(
                f"Expected an array with {len(names)} columns, as the schema has, in its order."
            )
        return _array(table[:, list(names).index(name)], name)
    known = table.dtype.names if isinstance(table, np.ndarray) else _names(table)
    if name not in known:
        more = ", ..." if len(known) > 12 else ""
        listed = ", ".join(map(str, list(known)[:12]))
        raise InvalidInput(
            f"Expected a column {_quoted(name)} in the table, and there is none; it has "
            f"{listed}{more}."
        )
    if list(known).count(name) > 1:
        raise InvalidInput(f"Expected one column {_quoted(name)} in the table, and there are more.")
    return _array(table[name], name)


def _array(column: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    """Return a column as numpy's own: numbers and dates as they are, all else as objects."""
    try:
        if isinstance(column, str | bytes):
            raise TypeError
        if isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray):
            if column.ndim != 1:
                raise ValueError
            return column
        dtype = getattr(column, "dtype", None)
        masked = isinstance(column, np.ma.MaskedArray)
        if isinstance(dtype, np.dtype) and dtype.kind in f"{_NUMBERS}M" and not masked:
            return np.asarray(column)
        if str(dtype).startswith("datetime64"):  # of pandas, with a time zone
            return np.asarray(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
        ways = ("to_pylist", "to_list", "tolist")
        listing = next((getattr(column, each) for each in ways if hasattr(column, each)), None)
        values = list(column if listing is None else listing())
        objects = np.empty(len(values), dtype=object)
        objects[:] = values
    except Exception:  # noqa: BLE001 (objects that may say anything, values included)
        raise InvalidInput(
            f"Expected column {_quoted(name)} to hold one value for each row."
        ) from None
    return objects


def _refuse(where: str, wanted: str, values: NDArray[Any]) -> InvalidInput:
    """Return an error that says what a column holds, by its type and not by a value."""
    found = {"M": "dates", "m": "spans of time", "U": "texts", "S": "bytes", "c": "complex numbers"}
    kind = found.get(values.dtype.kind)
    if kind is None:
        kind = "numbers" if values.dtype.kind in _NUMBERS else "something else"
    return InvalidInput(f"Expected column {where} to hold {wanted}, and it holds {kind}.")


def _numbers(values: NDArray[Any], where: str) -> _Floats:
    """Return numbers in double precision: each by itself, missing ones and huge ones included."""
    if values.dtype.kind in _NUMBERS:
        numbers_ = values.astype(np.float64)
    elif values.dtype.kind == "O":
        numbers_ = np.fromiter((_number(each, where) for each in values), np.float64, len(values))
    else:
        raise _refuse(where, "numbers", values)
    missing = np.isnan(numbers_)
    return np.where(missing, MISSING, np.clip(numbers_, -LARGEST, LARGEST))


def _number(value: Any, where: str) -> float:  # noqa: ANN401
    if _gone(value):
        return math.nan
    if _is_number(value) or isinstance(value, bool | np.bool_ | Decimal):
        return _float(value)
    raise InvalidInput(
        f"Expected column {where} to hold numbers, and it holds something else, too."
    )


def _seconds(values: NDArray[Any], where: str) -> _Floats:
    """Return dates as whole seconds since 1970, cut towards the past."""
    if values.dtype.kind == "O":
        values = np.array([_date(each, where) for each in values], dtype="datetime64[s]")
    elif values.dtype.kind == "U":
        values = np.array([_date(str(each), where) for each in values], dtype="datetime64[s]")
    if values.dtype.kind != "M":
        raise _refuse(where, "dates", values)
    missing = np.isnat(values)
    seconds = values.astype("datetime64[s]").astype(np.int64).astype(np.float64)
    return np.where(missing, MISSING, np.clip(seconds, -LARGEST, LARGEST))


def _date(value: Any, where: str) -> Any:  # noqa: ANN401
    if _gone(value):
        return np.datetime64("NaT", "s")
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        if isinstance(value, datetime):
            value = value.replace(microsecond=0)
        if isinstance(value, date | np.datetime64):
            return np.array(value, dtype="datetime64[s]")[()]
    except (ValueError, OverflowError, TypeError):
        pass
    raise InvalidInput(f"Expected column {where} to hold dates, and it holds something else, too.")


def _looked_up(
    values: NDArray[Any], where: str, place: Callable[[Any], float], *, texts: bool | None
) -> _Floats:
    """Return the place of each category, and `MISSING` where there is none.

    Args:
        values: of the column.
        where: what messages call it.
        place: of a category.
        texts: whether categories are texts; None if they may be either.
    """
    if values.dtype.kind in "MmSc":
        raise _refuse(where, "categories", values)
    found: dict[tuple[type, object], float] = {}

    def known(value: Any) -> float:  # noqa: ANN401
        if _gone(value):
            return MISSING
        is_text = isinstance(value, str)
        if not is_text and not isinstance(value, int | float):
            raise InvalidInput(
                f"Expected column {where} to hold categories: texts, or whole numbers."
            )
        if texts is not None and is_text is not texts:
            wanted = "texts" if texts else "numbers"
            raise InvalidInput(f"Expected column {where} to hold {wanted}, as its list does.")
        # Numbers as float64: a library may make that of whole ones for the sake of another row.
        return place(value if is_text else _float(value))

    def looked_up(value: Any) -> float:  # noqa: ANN401
        value = _plain(value)
        # With its type: what equals a category and is none must not pass for it.
        pair = type(value), value
        place_ = found.get(pair)
        if place_ is None:
            place_ = found[pair] = known(value)
        return place_

    try:
        return np.fromiter(map(looked_up, values.tolist()), np.float64, len(values))
    except TypeError:  # lists and the like, which have no place
        raise InvalidInput(
            f"Expected column {where} to hold categories: texts, or whole numbers."
        ) from None


def _held(values: NDArray[Any], where: str) -> str:
    """Return what a column holds, by the types of its values: all of them have to agree."""
    if values.dtype.kind == "b":
        return "categories"
    if values.dtype.kind in _NUMBERS:
        return "numbers"
    if values.dtype.kind == "M":
        return "dates"
    if values.dtype.kind == "U":
        return "categories"
    if values.dtype.kind != "O":
        raise _refuse(where, "numbers, dates or categories", values)
    kinds = {_kind_of(each) for each in values if not _gone(each)}
    if len(kinds) > 1 or None in kinds:
        raise InvalidInput(
            f"Expected column {where} to hold numbers, dates or texts, and no mixture."
        )
    if not kinds:
        raise InvalidInput(
            f"Expected column {where} to hold something, to tell what by: write 'private numbers', "
            "'private dates' or 'private categories'."
        )
    held = str(kinds.pop())
    return "categories" if held == "booleans" else held


def _kind_of(value: object) -> str | None:
    """Return what a value is, if it is anything that a column may hold."""
    if isinstance(value, str):
        return "categories"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if _is_number(value) or isinstance(value, Decimal):
        return "numbers"
    return "dates" if isinstance(value, date | np.datetime64) else None
