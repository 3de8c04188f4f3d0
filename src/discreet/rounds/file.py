"""The file of a classifier."""

import os

from discreet.memory import container
from discreet.memory.container import Format
from discreet.memory.release import Released
from discreet.rounds.card import card_of
from discreet.rounds.layout import Rounds

SOFTMAX_REGRESSION = Format("discreet-softmax-regression", Rounds.restore, card_of)


def save(released: Released[Rounds], path: str | os.PathLike[str]) -> None:
    """Write a release to a file: whole, or not at all."""
    container.save(released, path, SOFTMAX_REGRESSION)


def load(path: str | os.PathLike[str]) -> Released[Rounds]:
    """Read a release, or raise `CorruptRelease` if the file is not one, or was altered."""
    return container.load(path, SOFTMAX_REGRESSION)
