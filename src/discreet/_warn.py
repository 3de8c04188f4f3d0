"""Warnings that point at the line of whoever called the library, and notes on exceptions."""

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


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
