"""What the columns of a table may hold, and how rows become keys: each by itself, to the bit.

Other rows must not move when one is added, so a row becomes the same key wherever it stands and
whatever stands beside it.

numpy, pandas and scikit-learn make one type of all that stands in a column. One date in a finer
unit, or one text, would then rescale or round the numbers of everybody, and a row could move the
sums by far more than its sensitivity. So whatever is no plain number or boolean is refused before
it is converted. Messages name columns and types, never a value, and not how many rows there are.

Keys are public functions of rows, frozen before any row is read. Nothing but sums, products,
quotients and roots is used, which are rounded correctly; powers and exponentials of whole arrays
differ in the last bit from place to place.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet import _validate
from discreet._arrays import PLAIN, element_types, has_mask, is_number, is_torch
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.features.base import NORMS
from discreet.features.columns import Bins, Categories, Column, TableColumns, Unknown
from discreet.readers.softmax.rows import of_one_kind
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.targets import checked_indicators
from discreet.tables.schema import Category, Entry, Number, Private, Schema

# Amounts, counts and intensities begin at zero, and most of them are small: so much of the root of
# their fraction, and the rest of it as it is, spreads the small ones out (about as a power of 0.6,
# or 0.8, would). Less of it for pictures, whose pixels are often large, and for numbers: they may
# well be linear in what is predicted. Columns that begin elsewhere are taken as they are.
ROOT_FOR_CLASSES, ROOT_FOR_PICTURES, ROOT_FOR_NUMBERS = 2 / 3, 1 / 2, 1 / 3

# Keys are clipped to the ball, exactly; so much longer, all of them are, and only their direction
# is left.
_LONG = 2.0**20

# So many numbers are mapped at a time.
_AT_ONCE = 2**20

_DATES = "Make a number of each date by itself, for instance the days since a fixed day."
_TEXTS = "Make numbers of each text by itself: a column of 0 and 1 for each value of a public list."
_OTHERS = (
    "An argument must be numeric, so no date and no string: make of each value a number by itself."
)
# Not the type as numpy prints it: that of texts tells how long the longest is.
_WORDS = {"U": "texts", "S": "texts in bytes", "M": "dates", "m": "spans of time"}
_RESHAPE = (
    "Reshape your data with X.reshape(-1, 1) if it has a single column, or X.reshape(1, -1) if it "
    "is a single row."
)


class NotNumbers(InvalidInput, TypeError):  # noqa: N818 (as its parent)
    """Also a TypeError, as scikit-learn wants it of objects that are no numbers."""


def check_rows(X: Array) -> Array:
    """Return a frame as it is, and anything else as an array (n, d) that holds numbers only.

    Raises:
        InvalidInput: if a column holds anything but plain numbers and booleans.
    """
    if _is_frame(X):
        _check_frame("X", X)
        return X
    rows = _array("X", X)
    if rows.ndim != 2:
        raise InvalidInput(f"Expected 2D array X of shape (n, d), got dim {rows.ndim}. {_RESHAPE}")
    return _plain("X", rows, ((f"column {place} of X", each) for place, each in enumerate(rows.T)))


def check_numbers(y: Array) -> Array:
    """Return targets of regression as an array that holds plain numbers and booleans only."""
    if _is_frame(y):
        _check_frame("y", y)
    targets = _array("y", y)
    if targets.ndim == 0:
        raise InvalidInput("Expected y of shape (n,) or (n, k): one target for each row.")
    return _plain("y", targets, [("y", targets)])


def check_labels(y: Array) -> Array:
    """Return labels as an array (n,) of numbers, or of texts; or several of 0 and 1, (n, k)."""
    if _is_frame(y) and len(y.columns) > 1:
        y = y.to_numpy()
    labels = of_one_kind(y)
    if labels.ndim == 2 and labels.shape[1] > 1:
        return checked_indicators(labels)
    if labels.ndim == 0 or (labels.ndim != 1 and labels.shape[1:] != (1,)):
        raise InvalidInput("y should be a 1d array of shape (n,): one label for each row.")
    return labels


def missing(X: Array) -> str:
    """Return the names of columns in which a number is missing."""
    names = X.columns if _is_frame(X) else range(X.shape[1])
    numbers = X.astype(np.float64) if hasattr(X, "astype") else X  # of pandas: what is NA, too
    gone = np.any(np.isnan(np.asarray(numbers, dtype=np.float64)), axis=0).tolist()
    found = [_quoted(name) for name, one in zip(names, gone, strict=True) if one]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"column {', '.join(found[:3])}{more}"


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns with known ranges, as keys in the ball of radius one.

    Each column goes to [0, 1] (clipped), is spread out if its range begins at 0, then goes to
    [-1, 1], and is divided by √d.

    Attributes:
        ranges: public.
        root: how much small numbers of a range that begins at 0 are spread out, from 0 to 1.
        directions: whether keys are the directions of such rows, from the low end of the ranges:
            for pictures, of which some are brighter than others.
    """

    ranges: Ranges
    root: float = ROOT_FOR_CLASSES
    directions: bool = False

    norm: ClassVar[float] = 1.0  # the bound on keys

    def keys(self, rows: Floats) -> Array:
        """Return rows (n, d) as keys (n, d), in single precision.

        Whatever precision rows have: one more row can change that of all others, and must not
        change their keys. It is finer than the lattice that keys are rounded to.
        """
        keys = np.empty(rows.shape, dtype=np.float32)
        step = max(_AT_ONCE // rows.shape[1], 1)
        for start in range(0, len(rows), step):
            keys[start : start + step] = self._some(rows[start : start + step])
        return keys

    @property
    def straight(self) -> bool:
        """Whether keys are straight lines of rows, within the ranges."""
        return not self.directions and not np.any(self.ranges.low == 0)

    def line(self, width: int) -> tuple[Floats, Floats]:
        """Return slopes and offsets of keys in units of rows, shape (width,) each."""
        span = np.maximum(self.ranges.high - self.ranges.low, 1e-300) * math.sqrt(width)
        return 2 / span, -(self.ranges.high + self.ranges.low) / span

    def to_json(self) -> dict[str, object]:
        """Return what a file keeps."""
        ends = {"low": self.ranges.low.tolist(), "high": self.ranges.high.tolist()}
        return {**ends, "root": self.root, "directions": self.directions}

    def _some(self, rows: Floats) -> Floats:
        numbers = self.ranges.fractions(rows)
        skewed = self.ranges.low == 0
        if np.any(skewed):
            fractions = numbers[:, skewed]
            numbers[:, skewed] = fractions * (1 - self.root) + np.sqrt(fractions) * self.root
        if self.directions:
            return numbers * _LONG
        numbers *= 2
        numbers -= 1
        # One number only says nothing.
        numbers[:, self.ranges.low == self.ranges.high] = 0
        return numbers / math.sqrt(rows.shape[1])


@dataclass(frozen=True)
class Embeddings:
    """Rows with a known bound on their length: keys as they are.

    Attributes:
        norm: public bound on ‖row‖₂; longer rows are clipped where they are used.
    """

    norm: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", _validate.real("norm", self.norm, **NORMS))

    def keys(self, rows: Floats) -> Array:
        """Return rows (n, d) themselves."""
        return rows

    straight: ClassVar[bool] = True

    def line(self, width: int) -> tuple[Floats, Floats]:
        """Return slopes and offsets of keys in units of rows, shape (width,) each."""
        return np.ones(width), np.zeros(width)

    def to_json(self) -> dict[str, object]:
        """Return what a file keeps."""
        return {"norm": self.norm}


@dataclass(frozen=True, eq=False)
class Tabled:
    """Columns of a table with a schema: keys are looked up, value by value.

    Attributes:
        schema: public.
    """

    schema: Schema

    norm: ClassVar[float] = 1.0  # no bound: keys are looked up
    straight: ClassVar[bool] = False

    def line(self, width: int) -> tuple[Floats, Floats]:
        """There is none: keys are looked up."""
        raise NotImplementedError

    def keys(self, rows: Floats) -> Array:
        """Return keys (n, p) as they are: `Schema.keys` has made them."""
        return rows

    def to_json(self) -> dict[str, object]:
        """Return what a file keeps."""
        # As a list: a file sorts dictionaries, and the order of columns matters.
        return {"schema": [[name, each] for name, each in self.schema.to_json().items()]}

    def fits(self, features: TableColumns) -> bool:
        """Whether features are those of such columns, whatever was found of private ones."""
        made = self.map().columns
        return len(made) == features.dim and all(
            one == other or (isinstance(one, Unknown) and one.numbers == isinstance(other, Bins))
            for one, other in zip(made, features.columns, strict=True)
        )

    def map(self) -> TableColumns:
        """Return the feature map of these columns; what is private is still to be found."""
        return TableColumns(tuple(map(_feature_column, self.schema.columns.values())))


def _feature_column(entry: Entry) -> Column:
    """Return what a column of a schema is to the feature map."""
    if isinstance(entry, Category):
        return Categories(tuple(range(len(entry.categories))))
    if isinstance(entry, Private):
        return Unknown(entry.holds != "categories")
    low, high = entry.range
    # Amounts and counts begin at zero, and most of them are small.
    return Bins.between(low, high, skewed=isinstance(entry, Number) and low == 0)


def _array(name: str, given: Array) -> Array:
    """Return what numpy makes of something that is no frame, without a word about its values."""
    if has_mask(given):
        raise InvalidInput(
            f"Expected {name} without a mask: fill what is missing with a public constant."
        )
    if hasattr(given, "toarray"):
        raise InvalidInput(f"Expected {name} not to be sparse: {name}.toarray() makes it dense.")
    try:
        return np.asarray(given.detach().cpu() if is_torch(given) else given)
    except Exception:  # noqa: BLE001 (objects that may say anything, numbers included)
        raise InvalidInput(
            f"Expected {name} to be an array of numbers, all rows of one length."
        ) from None


def _plain(name: str, numbers: Array, parts: Iterable[tuple[str, Array]]) -> Array:
    """Return an array if it holds plain numbers: Python's own in double precision, each by itself.

    Args:
        name: of the argument, for messages.
        numbers: of any type.
        parts: of `numbers`, each after what messages call it.
    """
    if numbers.dtype.kind != "O":
        _refuse(name, _odd_kind(numbers.dtype))
        return numbers
    for part, objects in parts:
        _refuse(part, _odd_type(objects))
    try:
        return numbers.astype(np.float64)
    except OverflowError:
        raise InvalidInput(f"Expected {name} to hold numbers within float64.") from None


def _is_frame(given: Array) -> bool:
    return hasattr(given, "columns") and hasattr(given, "dtypes")


def _check_frame(name: str, frame: Array) -> None:
    """Raise unless each column of a frame holds plain numbers and booleans only."""
    for place, (column, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        objects = isinstance(dtype, np.dtype) and dtype.kind == "O"
        found = _odd_type(frame.iloc[:, place]) if objects else _odd_kind(dtype)
        _refuse(f"column {_quoted(column)} of {name}", found)


def _odd_kind(dtype: Any) -> str | None:  # noqa: ANN401
    """Return what a column of this type holds, unless that is numbers. Of pandas, or of Polars."""
    if hasattr(dtype, "is_integer"):
        plain = dtype.is_integer() or dtype.is_float() or str(dtype) == "Boolean"
    else:
        plain = getattr(dtype, "kind", "O") in PLAIN
    kind = str(getattr(dtype, "kind", ""))
    return None if plain else _WORDS.get(kind, re.split(r"[(\[]", str(dtype))[0])


def _odd_type(objects: Iterable[object]) -> str | None:
    """Return the name of a type among Python's objects that is none of numbers."""
    odd = sorted(each.__name__ for each in element_types(objects) if not is_number(each))
    return odd[0] if odd else None


def _refuse(what: str, found: str | None) -> None:
    """Raise if something other than numbers was found, and say what to do about it."""
    if found is None:
        return
    kind = found.lower()
    if kind.startswith("complex"):
        raise InvalidInput(f"Complex data not supported: expected {what} to be real numbers.")
    dates = any(word in kind for word in ("date", "time", "period", "duration"))
    texts = any(word in kind for word in ("str", "text", "bytes", "utf8", "categor", "enum"))
    advice = _DATES if dates else _TEXTS if texts else _OTHERS
    raise NotNumbers(
        f"Expected {what} to hold plain numbers or booleans, and it holds {found}. {advice}"
    ) from None


def _quoted(name: object) -> str:
    """Return the name of a column, which is public, on one line."""
    return repr(str(name) if not isinstance(name, int) else name)[:80]
