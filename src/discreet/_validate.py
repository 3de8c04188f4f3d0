"""Checks of public parameters; every message names the argument and, if it is plain, the value.

Lists, arrays and long texts are never quoted: whoever passes one by mistake may have passed rows.
"""

import math
import numbers
import operator
from enum import StrEnum
from typing import NoReturn, TypeVar

from discreet.errors import InvalidInput

Choice = TypeVar("Choice", bound=StrEnum)

# A text longer than this is not the name of anything.
_LONGEST = 80


def reject(name: str, value: object, wanted: str) -> NoReturn:
    """Raise `InvalidInput`: `name`, which the library worked out, should have been `wanted`.

    As `reject_argument`, but shapes (tuples of whole numbers) are shown. The row count of private
    rows must not be among them.
    """
    if _is_shape(value):
        raise InvalidInput(f"Expected {name}={value} to be {wanted}.")
    reject_argument(name, value, wanted)


def reject_argument(name: str, value: object, wanted: str) -> NoReturn:
    """Raise `InvalidInput`: argument `name` got `value`, and should have been `wanted`.

    Only single numbers and short texts are shown; of all else the type, and of long texts the
    beginning. Nor may a traceback show an earlier error, which may quote the value: `from None`.
    """
    raise InvalidInput(f"Expected {name}={_shown(value)} to be {wanted}.") from None


def _shown(value: object) -> str:
    """Return what a message may say of a value."""
    hidden = f"<{type(value).__name__}>"
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}..."
    if not (value is None or isinstance(value, str | bool | numbers.Number)):
        return hidden
    try:
        return repr(value)
    except ValueError:  # Python writes no integer of more than some thousand digits
        return hidden


def _is_shape(value: object) -> bool:
    """Whether this is a tuple of whole numbers, or of such tuples."""
    return isinstance(value, tuple) and all(type(part) is int or _is_shape(part) for part in value)


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
    limits = [
        (above, ">", operator.gt),
        (at_least, ">=", operator.ge),
        (below, "<", operator.lt),
        (at_most, "<=", operator.le),
    ]
    given = [(limit, sign, holds) for limit, sign, holds in limits if limit is not None]
    wanted = " and ".join(["a finite number", *(f"{sign} {limit:g}" for limit, sign, _ in given)])
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        reject_argument(name, value, wanted)
    try:
        number = float(value)
    except OverflowError:  # an int or a fraction beyond float64
        reject_argument(name, value, wanted)
    if not math.isfinite(number) or not all(holds(number, limit) for limit, _, holds in given):
        reject_argument(name, value, wanted)
    return number


def choice(name: str, value: object, kind: type[Choice]) -> Choice:
    """Return the member of an Enum of strings that `value` is or names."""
    try:
        return kind(value)  # type: ignore[arg-type]  # the Enum itself rejects what it does not know
    except ValueError:
        reject_argument(name, value, f"one of {[str(known) for known in kind]}")


def instance(name: str, value: object, kind: type) -> None:
    """Raise `InvalidInput` unless `value` is of the given type."""
    if not isinstance(value, kind):
        reject_argument(name, value, f"a {kind.__name__}")


def text(name: str, value: object) -> str:
    """Return `value` if it is a text that can be printed on a line, and not blank."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        reject_argument(name, value, "a printable text")
    return value


def whole(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return `value` as an int if it is an integer (or an integral float) within the bounds."""
    limit = "" if at_most is None else f" and <= {at_most}"
    wanted = f"a whole number >= {at_least}{limit}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        reject_argument(name, value, wanted)
    if not isinstance(value, int) and not math.isfinite(value):
        reject_argument(name, value, wanted)
    number = int(math.floor(value))  # noqa: RUF046 (a numpy float floors to a numpy float)
    if number != value:
        reject_argument(name, value, wanted)
    if number < at_least or (at_most is not None and number > at_most):
        reject_argument(name, value, wanted)
    return number
