"""Which columns and targets are taken: plain numbers and booleans, looked at before anything else.

numpy, pandas and scikit-learn make one type of all that stands in a column. One date in a finer
unit, or one text, would then rescale or round the numbers of everybody, and a row could move the
sums by far more than its sensitivity. So whatever is no number is refused before it is converted.
Messages name columns and types, never a value, and not how many rows there are.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from discreet._arrays import PLAIN, element_types, has_mask, is_number, is_torch
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.readers.softmax.labels import of_one_kind

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
        for name, found in _frame_kinds(X):
            _refuse(f"column {_quoted(name)} of X", found)
        return X
    rows = _array("X", X)
    if rows.ndim != 2:
        raise InvalidInput(f"Expected 2D array X of shape (n, d), got dim {rows.ndim}. {_RESHAPE}")
    if rows.dtype.kind != "O":
        _refuse("X", _odd_kind(rows.dtype))
        return rows
    for place, column in enumerate(rows.T):
        _refuse(f"column {place} of X", _odd_type(column))
    return _float64("X", rows)


def check_numbers(y: Array) -> Array:
    """Return targets of regression as an array that holds plain numbers and booleans only."""
    if _is_frame(y):
        for name, found in _frame_kinds(y):
            _refuse(f"column {_quoted(name)} of y", found)
    targets = _array("y", y)
    if targets.ndim == 0:
        raise InvalidInput("Expected y of shape (n,) or (n, k): one target for each row.")
    if targets.dtype.kind != "O":
        _refuse("y", _odd_kind(targets.dtype))
        return targets
    _refuse("y", _odd_type(targets))
    return _float64("y", targets)


def check_labels(y: Array) -> Array:
    """Return labels as an array (n,) of numbers, or of texts."""
    labels = of_one_kind(y)
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


def _float64(name: str, numbers: Array) -> Floats:
    """Return Python's own numbers in double precision, each converted by itself."""
    try:
        return numbers.astype(np.float64)  # type: ignore[no-any-return]
    except OverflowError:
        raise InvalidInput(f"Expected {name} to hold numbers within float64.") from None


def _is_frame(given: Array) -> bool:
    return hasattr(given, "columns") and hasattr(given, "dtypes")


def _frame_kinds(frame: Array) -> Iterator[tuple[object, str | None]]:
    """Yield the name of each column of a frame, and what it holds if that is not plain numbers."""
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            yield name, _odd_type(frame.iloc[:, place])
        else:
            yield name, _odd_kind(dtype)


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
