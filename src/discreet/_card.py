"""What a release says about itself, for people and for programs. Public numbers only."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """The public facts of one release, as (name, value) pairs in order.

    Two releases whose private rows differ have the same card; what is on it was fixed before any
    row was read. (The number of rows is on it only where it is public.)
    """

    facts: tuple[tuple[str, object], ...]
    sentences: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, object]:
        """Return the facts under their names, ready for JSON."""
        return dict(self.facts)

    def __str__(self) -> str:
        return titled(self.sentences)


def titled(sentences: Sequence[tuple[str, str]]) -> str:
    """Return titles and texts, one a line, with all texts below each other."""
    width = max(len(title) for title, _ in sentences) + 2
    return "\n".join(f"{title:<{width}}{text}" for title, text in sentences)
