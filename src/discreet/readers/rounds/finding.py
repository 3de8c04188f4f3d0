"""Edges and categories of columns that nobody gave: found with a share of the budget.

One small release before the first round. Of a column of numbers, rows are counted by sign and
octave; cells that noise can hide are dropped, and the others cut into bins with about as many rows
each. Of a column of categories, rows are counted by place, and places that stand out of the noise
are kept. What is found is post-processing of those counts, and public from then on.
`docs/privacy.md`, "Ranges that are found".
"""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet._keys import MISSING, PLACES
from discreet._typing import Floats, Integers
from discreet.features.base import SymmetricMap
from discreet.features.columns import (
    BINS,
    MOST_FOUND,
    Bins,
    Categories,
    Column,
    TableColumns,
    Unknown,
)
from discreet.readers.rounds.counts import Counts, as_cells, count
from discreet.readers.rounds.layout import RoundsLayout
from discreet.sums.door import Door
from discreet.sums.settings import Settings
from discreet.sums.source import RowSource

AnyRounds = TypeVar("AnyRounds", bound=RoundsLayout)

# Of the squared budget, where anything has to be found: more where rows are few, up to a limit.
# A cell with a quarter of the rows is to be as clear of the noise as cells have to be.
_LEAST_SHARE, _MOST_SHARE, _QUARTER = 0.05, 0.2, 4.0

# Octaves of magnitudes: from 2^-12 to 2^40, either sign, and one cell for what is smaller.
_LEAST, _MOST = -12, 40
_OCTAVES = _MOST - _LEAST
_CELLS = 2 * _OCTAVES + 1

# Cells with fewer rows than so many standard deviations of the noise are taken for empty.
_CLEAR, _CLEAR_PLACE = 2.5, 2.0

# A bin holds at least so many standard deviations of the noise.
_BIN = 4.0

# And there are at least so many.
_FEWEST = 8


def share_to_find(kernel: SymmetricMap, *, rows: int | None, multiplier: float) -> float:
    """Return the share of the squared budget that finding columns takes; 0 if all are known.

    Args:
        kernel: a map of any kind.
        rows: a public number of rows, if there is one.
        multiplier: σ of the whole budget, in units of what one row can change.
    """
    if not isinstance(kernel, TableColumns) or kernel.known:
        return 0.0
    if rows is None:
        return _LEAST_SHARE
    unknown = sum(isinstance(each, Unknown) for each in kernel.columns)
    wanted = unknown * (_QUARTER * _CLEAR * multiplier / rows) ** 2
    return min(max(wanted, _LEAST_SHARE), _MOST_SHARE)


def check_finding(settings: Settings[Any], layout: RoundsLayout) -> None:
    """Raise `InvalidInput` if noise of what is counted cannot be drawn: before a row is read.

    Args:
        settings: of the whole release.
        layout: of its rounds.
    """
    if layout.finding and isinstance(layout.kernel, TableColumns):
        settings.part(_counts(layout.kernel), layout.finding)


def with_found(rows: RowSource, door: Door[Any], layout: AnyRounds) -> AnyRounds:
    """Return the layout with all columns known: those that were not have been found.

    Args:
        rows: private; handed to the door.
        door: which adds up, and lets sums out with noise.
        layout: of the rounds; as it is if nothing is unknown.
    """
    kernel = layout.kernel
    if not isinstance(kernel, TableColumns) or kernel.known:
        return layout
    unknown, numeric, starts = _unknown(kernel)

    def mark(keys: Floats, values: Floats) -> Floats:
        del values
        return as_cells(_cells(keys[:, unknown], numeric, starts[:-1]))

    counts, noise = count(rows, door, mark, _counts(kernel), share=layout.finding)
    columns: list[Column] = list(kernel.columns)
    for at, is_number, first, last in zip(unknown, numeric, starts, starts[1:], strict=False):
        found = _bins if is_number else _categories
        columns[at] = found(counts[first:last], noise)
    return replace(layout, kernel=kernel.with_found(columns))


def _unknown(kernel: TableColumns) -> tuple[list[int], NDArray[np.bool_], Integers]:
    """Return which columns are unknown, which of them hold numbers, and where their cells begin."""
    unknown = {at: each for at, each in enumerate(kernel.columns) if isinstance(each, Unknown)}
    numeric = np.array([each.numbers for each in unknown.values()])
    starts = np.concatenate([[0], np.cumsum(np.where(numeric, _CELLS, PLACES))])
    return list(unknown), numeric, starts


def _counts(kernel: TableColumns) -> Counts:
    """Return what is counted: a row marks one cell of each unknown column, at the most."""
    unknown, _, starts = _unknown(kernel)
    return Counts(cells=int(starts[-1]), marks=len(unknown))


def _cells(keys: Floats, numeric: NDArray[np.bool_], starts: Integers) -> Integers:
    """Return the cell of each key, shape (m, unknown columns); -1 for none."""
    missing = keys == MISSING
    places = np.where((keys >= 0) & (keys < PLACES), keys, -1.0).astype(np.int64)
    cells = np.where(numeric, octaves(keys), places)
    return np.where(missing | (cells < 0), -1, cells + starts)


def octaves(numbers: Floats) -> Integers:
    """Return the cell of each number, from the most negative octave to the most positive one.

    Exact: the exponent of a number is part of it.

    Args:
        numbers: finite, any shape.
    """
    _, exponents = np.frexp(numbers)
    exponents = np.where(numbers == 0, _LEAST, exponents)
    above = np.clip(exponents - 1 - _LEAST, -1, _OCTAVES - 1) + 1  # 0 below the least octave
    return np.asarray(_OCTAVES + np.where(numbers < 0, -above, above), dtype=np.int64)


def _boundaries() -> Floats:
    """The ends of all cells, rising, shape (cells + 1,)."""
    powers = 2.0 ** np.arange(_LEAST, _MOST + 1)
    return np.concatenate([-powers[::-1], powers])


def _bins(counts: Floats, noise: float) -> Bins:
    """Return bins with about as many rows each, of cells that stand out of the noise."""
    clear = np.where(counts > _CLEAR * noise, counts, 0.0)
    if not np.any(clear):  # the largest is the best guess that there is, and what is beside it
        top = int(np.argmax(counts))
        near = slice(max(top - 1, 0), top + 2)
        clear[near] = np.maximum(counts[near], 0.0)
        clear[top] = max(counts[top], noise)
    bins = int(min(max(clear.sum() // (_BIN * noise), _FEWEST), BINS))
    ends = _boundaries()
    # The middle cell is one point, zero, and a bin of its own: the others share what is left.
    zeros, clear[_OCTAVES] = clear[_OCTAVES], 0.0
    first = _OCTAVES if np.any(clear[:_OCTAVES]) else _OCTAVES + 1
    around = ends[first : _OCTAVES + 2] if zeros else ends[:0]
    below = np.concatenate([[0.0], np.cumsum(clear)])
    rest = max(bins - len(around), 1)
    edges = _interpolated(below[-1] * np.arange(1, rest) / rest, below, ends)
    return Bins(tuple(np.unique([*around, *edges]).tolist()[: BINS - 1]), found=True)


def _interpolated(wanted: Floats, below: Floats, ends: Floats) -> Floats:
    """Return where so many rows are below, cells being spread evenly."""
    cell = np.clip(np.searchsorted(below, wanted, side="left") - 1, 0, len(ends) - 2)
    inside = (wanted - below[cell]) / np.maximum(below[cell + 1] - below[cell], 1e-300)
    return np.asarray(ends[cell] + (ends[cell + 1] - ends[cell]) * np.clip(inside, 0.0, 1.0))


def _categories(counts: Floats, noise: float) -> Categories:
    """Return the places that stand out of the noise, the most frequent of them."""
    largest = np.argsort(-counts, kind="stable")[:MOST_FOUND]
    kept = np.sort(largest[counts[largest] > _CLEAR_PLACE * noise])
    return Categories(tuple(kept.tolist()), found=True)
