"""What a builder states of a release: whose rows, who built it, what for, whom to ask, and when.

It travels with the release, in its file, on its card and on its pages, and is marked as what it is:
stated by the builder. No file can prove it. It is public, and never comes from the rows.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any, Self

from discreet import _validate
from discreet.errors import InvalidInput

# How the lines of a card begin that are the builder's word; and what follows for each of the five.
STATED = "stated by the builder"
PREFIX = "stated: "

# The most characters of one text.
LONGEST = 300

# The most bytes that all of it takes in a file. It is there twice (in the settings, and on the
# card) as JSON within JSON, where a character of UTF-8 takes at most four.
LARGEST = 2 * 5 * (4 * LONGEST + 64)


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What a builder states of a release. Public; nothing of it can be proved by a file.

    Every text is one line of at most 300 characters.

    Attributes:
        data: which rows it was made of: "visits to the clinic, 2019 to 2024".
        builder: who built it.
        purpose: what it is for.
        contact: whom to ask.
        date: when it was built, as "2026-03-01", or a `datetime.date`.
    """

    data: str | None = None
    builder: str | None = None
    purpose: str | None = None
    contact: str | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            if value is not None:
                checked = _day(value) if name == "date" else _line(name, value)
                object.__setattr__(self, name, checked)

    @classmethod
    def of(cls, given: object) -> Self | None:
        """Return what was stated, checked; None if nothing was.

        Args:
            given: a `Stated`, or a mapping with some of its names; None for nothing.

        Raises:
            InvalidInput: a name is not one of the five, or a text is not what it should be.
        """
        if isinstance(given, Mapping):
            check_names(given)
            given = cls(**given)
        if given is None:
            return None
        if not isinstance(given, cls):
            _validate.reject_argument("stated", given, f"a mapping with some of {_KNOWN}")
        return given if given.to_dict() else None

    @classmethod
    def read(cls, path: str | Path) -> Self | None:
        """Return what a TOML file states; None if nothing.

        Args:
            path: of the file, with a line like `purpose = "planning of wards"` for each.

        Raises:
            InvalidInput: it cannot be read, is no TOML, or states something else.
        """
        try:
            given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            raise InvalidInput(
                f"Expected {path} to be a TOML file with some of {_KNOWN}, each a text in quotes."
            ) from None
        return cls.of(given)

    def to_dict(self) -> dict[str, str]:
        """Return what was stated, by name."""
        said = {name: getattr(self, name) for name in NAMES}
        return {name: text for name, text in said.items() if text is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what was not stated."""
        return tuple([name for name in NAMES if getattr(self, name) is None])


# What can be stated, in the order in which it is shown.
NAMES = tuple([each.name for each in fields(Stated)])
_KNOWN = ", ".join(NAMES)


def check_names(given: Mapping[Any, object]) -> None:
    """Raise `InvalidInput` if a name is not one of those that can be stated.

    Args:
        given: by name.
    """
    for name in given:
        if name not in NAMES:
            _validate.reject_argument("stated", name, f"one of {_KNOWN}")


def facts(stated: Stated | None) -> dict[str, object]:
    """Return what a card, and the settings in a file, have of it: nothing, if nothing was stated.

    Args:
        stated: by the builder.
    """
    return {} if stated is None else {"stated": stated.to_dict()}


def lines(stated: Stated | None) -> list[tuple[str, str]]:
    """Return the lines of a card that say what was stated; none if nothing was.

    Args:
        stated: by the builder.
    """
    if stated is None:
        return []
    said = stated.to_dict()
    where = "the next line" if len(said) == 1 else f"the next {len(said)} lines"
    missing = f"; not stated: {', '.join(stated.missing)}" if stated.missing else ""
    return [
        (STATED, f"{where}, and nothing in this file proves it{missing}"),
        *((f"{PREFIX}{name}", text) for name, text in said.items()),
    ]


def _line(name: str, value: object) -> str:
    """Return a text if it is one line, and short."""
    if (
        not isinstance(value, str)
        or not value.strip()
        or not value.isprintable()
        or len(value) > LONGEST
    ):
        wanted = f"one line of at most {LONGEST} printable characters"
        _validate.reject_argument(f"stated[{name!r}]", value, wanted)
    return value


def _day(value: object) -> str:
    """Return a date as ISO 8601 has it, year, month and day."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str) or not _is_day(value):
        _validate.reject_argument("stated['date']", value, "a date such as 2026-03-01")
    return value


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
