"""What a release says about itself, for people and for programs. Public numbers only."""

from collections.abc import Sequence
from dataclasses import dataclass

# The title of the line that names what was taken from the rows.
TAKEN = "taken from the data"


@dataclass(frozen=True)
class Card:
    """The public facts of one release, as (name, value) pairs in order.

    What is on it follows from settings and from the noisy sums: neither costs privacy. (The number
    of rows is on it only where it is public.) What was taken from the rows all the same is named on
    it (`TAKEN`).
    """

    facts: tuple[tuple[str, object], ...]
    sentences: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, object]:
        """Return the facts under their names, ready for JSON."""
        return dict(self.facts)

    def __str__(self) -> str:
        return titled(self.sentences)


def taken(leaks: Sequence[str]) -> list[tuple[str, str]]:
    """Return the line of a card that names what was taken from the rows, if anything was."""
    return [(TAKEN, f"{', '.join(leaks)}: not covered by the guarantee")] if leaks else []


def titled(sentences: Sequence[tuple[str, str]]) -> str:
    """Return titles and texts, one a line, with all texts below each other."""
    width = max(len(title) for title, _ in sentences) + 2
    return "\n".join(f"{title:<{width}}{text}" for title, text in sentences)
