"""What a caller did not say, and what it gives away to take it from the data."""

from enum import Enum

from discreet._warn import warn
from discreet.errors import PrivacyLeakWarning


class Leak(Enum):
    """An argument that is missing: what is taken instead, and what to do about it."""

    BOUNDS = (
        "bounds",
        "the smallest and the largest number of each column, which are numbers of single rows",
        "bounds=(low, high), or norm= for embeddings",
    )
    CLASSES = (
        "classes",
        "the list of labels that occur, even once",
        "classes=[...]",
    )
    TARGET_BOUNDS = (
        "target_bounds",
        "the smallest and the largest target, which are those of single rows",
        "target_bounds=(low, high)",
    )
    ROWS_HINT = (
        "rows_hint",
        "the number of rows, rounded to one digit",
        "rows_hint=, a public figure",
    )

    def __init__(self, argument: str, taken: str, remedy: str) -> None:
        self.argument = argument
        self.taken = taken
        self.remedy = remedy


def warn_of(leaks: list[Leak]) -> None:
    """Warn once of all that was taken from the data, if anything was."""
    if not leaks:
        return
    said = "; ".join(f"{leak.taken} (give {leak.remedy})" for leak in leaks)
    warn(
        f"Taken from the private data, and not covered by the guarantee: {said}. They become "
        "part of the model. Choose them without looking at the data.",
        PrivacyLeakWarning,
    )


def one_digit(rows: int) -> int:
    """Return a number of rows, rounded to one significant digit; at least 1."""
    power = int(10 ** (len(str(rows)) - 1))
    return max((rows + power // 2) // power * power, 1)
