"""The file of a memory."""

import os

from discreet.memory import container
from discreet.memory.card import card_of
from discreet.memory.container import Format
from discreet.memory.layout import Layout
from discreet.memory.release import Released

MEMORY = Format("discreet-memory", Layout.restore, card_of)


def save(released: Released[Layout], path: str | os.PathLike[str]) -> None:
    """Write a release to a file: whole, or not at all."""
    container.save(released, path, MEMORY)


def load(path: str | os.PathLike[str]) -> Released[Layout]:
    """Read a release, or raise `CorruptRelease` if the file is not one, or was altered."""
    return container.load(path, MEMORY)


def to_bytes(released: Released[Layout]) -> bytes:
    """Return the file of a release. Its length depends on public settings only."""
    return container.to_bytes(released, MEMORY)


def from_bytes(data: bytes) -> Released[Layout]:
    """Return the release that a file holds."""
    return container.from_bytes(data, MEMORY)
