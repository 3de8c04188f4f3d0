"""Names within a file: which of its arrays is meant, and how a message lists them."""

from collections.abc import Iterable
from pathlib import Path

from discreet.errors import InvalidInput


def choose(path: Path, name: str | None, role: str, names: Iterable[str]) -> str:
    """Return the array to read: the one that was named, or named like its role, or the only."""
    known = list(names)
    hint = f" (write {path.name}:NAME)" if name is None else ""
    if name is None:
        name = known[0] if len(known) == 1 else role
    if name not in known:
        raise InvalidInput(
            f"Expected {path} to hold an array {name!r}; it has: {listed(known)}{hint}."
        )
    return name


def listed(names: Iterable[str]) -> str:
    """Return some names, for a message."""
    known = sorted(names)
    return ", ".join(known[:12]) + (", ..." if len(known) > 12 else "") or "none"
