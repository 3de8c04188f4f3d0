"""Parts that the files of several structures have, each checked as it is read."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.accounting import Mechanism
from discreet.errors import CorruptRelease
from discreet.paper.box import Box
from discreet.paper.design import FORESTS, Estimator
from discreet.paper.forest import Forest, all_depths, node_count
from discreet.paper.node import REPLACED_ROW, Change, NodeNoise, law_of
from discreet.paper.structure import Accounting, checked_c

Settings = Mapping[str, Any]
Tensors = Mapping[str, NDArray[Any]]

# Beyond any machine, and far from where shapes leave 64 bits.
MOST_LEVELS = 48
_MOST_ROWS = 2**MOST_LEVELS


def described_noise(noise: NodeNoise | None) -> dict[str, object] | None:
    """Return a node's noise as plain JSON types, from which `restored_noise` makes it again."""
    return None if noise is None else {"unit": noise.unit, "mechanism": noise.mechanism.to_dict()}


def restored_noise(described: Settings, change: Change = REPLACED_ROW) -> NodeNoise:
    """Return a node's noise, if it is for what a replaced row can change."""
    mechanism = Mechanism.from_dict(described["mechanism"])
    unit = _validate.whole("unit", described["unit"], at_least=1, at_most=2**62)
    if mechanism.to_dict()["sensitivity"] != change.sensitivity(unit):
        raise CorruptRelease("Expected the noise to be for what a replaced row can change.")
    return NodeNoise(law_of(mechanism), mechanism, unit)


def restored_forest(
    settings: Settings, tensors: Tensors, *, levels: int, shape: tuple[int, int, int, int]
) -> Forest:
    """Return the trees, if their nodes have the shape that the settings say.

    Args:
        settings: with the estimator and the depths.
        tensors: with the nodes.
        levels: L.
        shape: coordinates, copies, columns and moments.
    """
    how = _validate.choice("estimator", settings["estimator"], Estimator)
    depths = tuple(
        _validate.whole("depth", each, at_least=1, at_most=levels) for each in settings["depths"]
    )
    if depths != tuple(sorted(set(depths))) or depths[-1] != levels:
        raise CorruptRelease("Expected the levels of a tree to be in order, down to the leaves.")
    if how is Estimator.PAPER and depths != all_depths(levels):
        raise CorruptRelease("Expected all levels of the paper's tree.")
    coordinates, *lanes = shape
    nodes = checked_tensor(tensors, "nodes", (coordinates, node_count(depths), *lanes), np.int64)
    return FORESTS[how](nodes, levels, depths)


def checked_tensor(
    tensors: Tensors, name: str, shape: tuple[int, ...], dtype: type[np.generic]
) -> NDArray[Any]:
    """Return a tensor that cannot be written to, if it is what it should be."""
    found = tensors[name]
    if found.shape != shape or found.dtype != dtype or not np.all(np.isfinite(found)):
        raise CorruptRelease("Expected the state to have the shape that its settings say.")
    found.flags.writeable = False
    return found


def count_of(settings: Settings, name: str, most: int = _MOST_ROWS) -> int:
    """Return a whole number from one on."""
    return _validate.whole(name, settings[name], at_least=1, at_most=most)


def accounting_of(settings: Settings) -> Accounting:
    """Return how the noise was set."""
    return _validate.choice("accounting", settings["accounting"], Accounting)


def constant_of(settings: Settings) -> float | None:
    """Return the paper's c; with tight accounting there is none."""
    if (settings["c"] is None) != (accounting_of(settings) is Accounting.TIGHT):
        raise CorruptRelease("Expected a c for the paper's accounting, and none for the tight one.")
    return None if settings["c"] is None else checked_c(settings["c"])


def box_of(settings: Settings) -> Box:
    """Return where points lie."""
    return Box(settings["lower"], settings["upper"])
