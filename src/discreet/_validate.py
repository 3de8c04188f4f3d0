"""What callers are told: checks of public parameters, warnings at their own line, notes on errors.

Every message names the argument and, if it is plain, the value. Lists, arrays and long texts are
never quoted: whoever passes one by mistake may have passed rows.
"""

import math
import numbers
import sys
import warnings
from enum import StrEnum
from typing import NoReturn, TypeVar

from discreet.errors import InvalidInput

Choice = TypeVar("Choice", bound=StrEnum)

_PACKAGE = __name__.partition(".")[0]

# A text longer than this is not the name of anything.
_LONGEST = 80


def reject(name: str, value: object, wanted: str, *, needs: str | None = None) -> NoReturn:
    """Raise `InvalidInput`: `name`, which the library worked out, should have been `wanted`.

    As `reject_argument`, but shapes (tuples of whole numbers) are shown. The row count of private
    rows must not be among them.
    """
    if _is_shape(value):
        raise _error(name, value, repr(value), wanted, needs)
    reject_argument(name, value, wanted, needs=needs)


def reject_argument(name: str, value: object, wanted: str, *, needs: str | None = None) -> NoReturn:
    """Raise `InvalidInput`: argument `name` got `value`, and should have been `wanted`.

    Only single numbers and short texts are shown; of all else the type, and of long texts the
    beginning. Nor may a traceback show an earlier error, which may quote the value: `from None`.

    Args:
        name: of the argument.
        value: that it got.
        wanted: what it should have been.
        needs: another argument that this one takes, and that is missing.
    """
    raise _error(name, *_shown(value), wanted, needs) from None


def _error(name: str, value: object, shown: str, wanted: str, needs: str | None) -> InvalidInput:
    message = f"Expected {name}={shown} to be {wanted}."
    return InvalidInput(message, argument=name, value=value, wanted=wanted, needs=needs)


def _shown(value: object) -> tuple[object, str]:
    """Return what an error may carry of a value, and how its message shows that."""
    hidden = f"<{type(value).__name__}>"
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}...", f"{value[:_LONGEST]!r}..."
    if isinstance(value, str):
        return str(value), repr(value)
    if not (value is None or isinstance(value, bool | numbers.Number)):
        return hidden, hidden
    try:
        return value, repr(value)
    except ValueError:  # Python writes no integer of more than some thousand digits
        return hidden, hidden


def _is_shape(value: object) -> bool:
    """Whether this is a tuple of whole numbers, or of such tuples."""
    return isinstance(value, tuple) and all(type(part) is int or _is_shape(part) for part in value)


# Most numbers are of the first two types, which are told apart without a call in Python.
_REAL = (float, int, numbers.Real)


def real(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return `value` as a float if it is a finite real number within the given bounds."""
    number = math.nan
    if isinstance(value, _REAL) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an int or a fraction beyond float64
            number = math.inf
    if (
        math.isfinite(number)
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
        and (at_most is None or number <= at_most)
    ):
        return number
    limits = ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
    given = [f"{sign} {limit:g}" for sign, limit in limits if limit is not None]
    reject_argument(name, value, " and ".join(["a finite number", *given]))


def choice(name: str, value: object, kind: type[Choice]) -> Choice:
    """Return the member of an Enum of strings that `value` is or names."""
    try:
        return kind(value)  # type: ignore[arg-type]  # the Enum itself rejects what it does not know
    except ValueError:
        reject_argument(name, value, f"one of {[str(known) for known in kind]}")


def instance(name: str, value: object, kind: type) -> None:
    """Raise `InvalidInput` unless `value` is of the given type."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        reject_argument(name, value, f"{article} {kind.__name__}")


def text(name: str, value: object) -> str:
    """Return `value` if it is a text that can be printed on a line, and not blank."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        reject_argument(name, value, "a printable text")
    return value


def whole(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return `value` as an int if it is an integer (or an integral float) within the bounds."""
    number = None
    if isinstance(value, _REAL) and not isinstance(value, bool):
        try:
            number = int(math.floor(value))  # noqa: RUF046 (a numpy float floors to a numpy float)
        except (OverflowError, ValueError):  # infinity, NaN
            number = None
    if (
        number is not None
        and number == value
        and number >= at_least
        and (at_most is None or number <= at_most)
    ):
        return number
    limit = "" if at_most is None else f" and <= {at_most}"
    reject_argument(name, value, f"a whole number >= {at_least}{limit}")


def warn(message: str, category: type[Warning]) -> None:
    """Warn, as if from the first caller that is not part of this package."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 (inspect.stack reads source files)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)


class Note(str):
    """A sentence that the library adds to an exception on its way out: public numbers only.

    Others add notes, too, and those may quote anything: only these are ever shown.
    """

    __slots__ = ()


def notes(error: BaseException) -> list[Note]:
    """Return the library's own notes on an exception."""
    return [each for each in getattr(error, "__notes__", ()) if isinstance(each, Note)]
