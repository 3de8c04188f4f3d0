"""The file of a regression."""

import os

from discreet.memory import container
from discreet.memory.container import Format
from discreet.memory.release import Released
from discreet.regression.card import card_of
from discreet.regression.layout import Moments

LEAST_SQUARES = Format("discreet-least-squares", Moments.restore, card_of)


def save(released: Released[Moments], path: str | os.PathLike[str]) -> None:
    """Write a release to a file: whole, or not at all."""
    container.save(released, path, LEAST_SQUARES)


def load(path: str | os.PathLike[str]) -> Released[Moments]:
    """Read a release, or raise `CorruptRelease` if the file is not one, or was altered."""
    return container.load(path, LEAST_SQUARES)
