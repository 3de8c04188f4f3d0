"""Lists and ranges that are typed as one option: classes, and ends of columns."""

import csv
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.provenance import NAMES, Stated

# No array holds a larger whole number.
_LARGEST = 2**63 - 1


def parse_classes(text: str, *, numbers: bool) -> list[str] | list[float]:
    """Return the classes in a list like a,b,c; one with a comma in it stands in double quotes.

    Args:
        text: as it was typed.
        numbers: whether labels are numbers.
    """
    try:
        [names] = csv.reader([text])
    except (csv.Error, ValueError):  # a line break, or nothing
        raise InvalidInput("Expected --classes to be a list like a,b,c.") from None
    return [_number(name) for name in names] if numbers else [name.strip() for name in names]


def parse_count_or_classes(text: str) -> int | list[str]:
    """Return how many classes there are, or the list of them."""
    names = [str(name) for name in parse_classes(text, numbers=False)]
    if len(names) != 1:
        return names
    try:
        return int(names[0])
    except ValueError:
        raise InvalidInput("Expected --classes to be a number, or a list like a,b,c.") from None


def _number(name: str) -> float:
    """Return a class that is a number: a whole one if it is written like one."""
    for kind in (int, float):
        try:
            number = kind(name)
        except ValueError:
            continue
        if abs(number) <= _LARGEST:  # which NaN is not, either
            return number
    raise InvalidInput("Expected --classes to be finite numbers, as labels are.")


def parse_bounds(text: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return lower and upper ends, typed as LOW,HIGH or one such pair for each column."""
    try:
        pairs = [[float(end) for end in pair.split(",")] for pair in text.split(":")]
        low, high = np.array(pairs).T
    except ValueError:
        raise InvalidInput(
            f"Expected --bounds {text!r} to be LOW,HIGH; or, for several columns, "
            "LOW,HIGH:LOW,HIGH:...",
        ) from None
    return (low[0], high[0]) if len(pairs) == 1 else (low, high)


def parse_range(option: str, text: str) -> tuple[float, float]:
    """Return the two ends of a range that is typed as LOW,HIGH.

    Args:
        option: that it was typed for.
        text: as it was typed.
    """
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = math.nan
    if not (low < high and math.isfinite(high - low)):
        raise InvalidInput(f"Expected {option} {text!r} to be LOW,HIGH: numbers, the lower first.")
    return low, high


def parse_stated(typed: Sequence[str] | None) -> Stated | None:
    """Return what was stated, typed as NAME=TEXT or as a TOML file; None if nothing was.

    Args:
        typed: one entry for each time that the option was given. What is typed as NAME=TEXT stands
            in place of what a file says.
    """
    read: dict[str, str] = {}
    said: dict[str, str] = {}
    for each in typed or ():
        name, sign, text = each.partition("=")
        if sign and name.strip() in NAMES:
            if name.strip() in said:
                raise InvalidInput(f"Expected --stated {name.strip()} once.")
            said[name.strip()] = text.strip()
        elif each.lower().endswith(".toml"):
            found = Stated.read(each)
            read |= {} if found is None else found.to_dict()
        else:
            raise InvalidInput(
                f"Expected --stated {each!r} to be NAME=TEXT, with a name out of "
                f"{', '.join(NAMES)}; or a .toml file with these."
            )
    return Stated.of(read | said)
