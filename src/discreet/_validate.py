"""Checks of public parameters; every message names the argument and the value that it got."""

import math
import numbers
import operator
from enum import StrEnum
from typing import NoReturn, TypeVar

from discreet.errors import InvalidInput

Choice = TypeVar("Choice", bound=StrEnum)


def reject(name: str, value: object, wanted: str) -> NoReturn:
    """Raise `InvalidInput`: argument `name` got `value`, and should have been `wanted`.

    Only plain public values are shown. Whoever passes an array by mistake may have passed rows.
    """
    plain = value is None or isinstance(value, str | bool | numbers.Number | tuple | list)
    shown = repr(value) if plain else f"<{type(value).__name__}>"
    raise InvalidInput(f"Expected {name}={shown} to be {wanted}.")


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
        reject(name, value, wanted)
    try:
        number = float(value)
    except OverflowError:  # an int or a fraction beyond float64
        reject(name, value, wanted)
    if not math.isfinite(number) or not all(holds(number, limit) for limit, _, holds in given):
        reject(name, value, wanted)
    return number


def choice(name: str, value: object, kind: type[Choice]) -> Choice:
    """Return the member of an Enum of strings that `value` is or names."""
    try:
        return kind(value)  # type: ignore[arg-type]  # the Enum itself rejects what it does not know
    except ValueError:
        reject(name, value, f"one of {[str(known) for known in kind]}")


def instance(name: str, value: object, kind: type) -> None:
    """Raise `InvalidInput` unless `value` is of the given type."""
    if not isinstance(value, kind):
        reject(name, value, f"a {kind.__name__}")


def whole(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return `value` as an int if it is an integer (or an integral float) within the bounds."""
    limit = "" if at_most is None else f" and <= {at_most}"
    wanted = f"a whole number >= {at_least}{limit}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        reject(name, value, wanted)
    if not isinstance(value, int) and not math.isfinite(value):
        reject(name, value, wanted)
    number = int(math.floor(value))  # noqa: RUF046 (a numpy float floors to a numpy float)
    if number != value:
        reject(name, value, wanted)
    if number < at_least or (at_most is not None and number > at_most):
        reject(name, value, wanted)
    return number
