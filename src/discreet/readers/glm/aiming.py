"""Where targets are: found with a share of the budget, for ranges that are wider than they need be.

Rows are counted in 16 cells of the public range, and then in 16 cells of the part of it that is not
empty, as far as noise lets one see. From the second counts: the 5% and the 95% quantile. Targets
are then learnt relative to the middle of both, in units of 0.9 of their distance; those further off
count as the nearer end. `docs/privacy.md`, "Numbers in rounds".
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet._typing import Floats
from discreet.readers.glm.layout import GlmRounds
from discreet.readers.rounds.counts import Counts, as_cells, count
from discreet.sums.door import Door
from discreet.sums.source import RowSource

# Of the squared budget, for both passes together: more where rows are few, up to a limit.
_LEAST_SHARE, _MOST_SHARE, _FEW_ROWS = 0.03, 0.1, 600.0
PASSES = 2

_CELLS = 16

_LOW, _HIGH, _REACH = 0.05, 0.95, 0.9

# A part of the range is believed to hold nearly all rows if the counts of its cells, less so many
# standard deviations of their noise, are so much of all rows. Where noise is small (all rows are so
# many standard deviations of one count) that is more: the part must not lack a tail.
_SURE, _NEARLY_ALL, _MOST, _SMALL = 1.5, 0.97, 0.7, 10.0

# Parts of the range are no narrower than this, and no reach is shorter: bounds in ±1.
_NARROWEST = 2.0**-7

Ends = tuple[float, float]


def share_to_aim(*, rows: int | None, multiplier: float) -> float:
    """Return the share of the squared budget that finding out where targets are takes.

    Args:
        rows: a public number of rows, if there is one.
        multiplier: σ of the whole budget, in units of what one row can change.
    """
    wanted = _LEAST_SHARE if rows is None else _FEW_ROWS * (multiplier / rows) ** 2
    return min(max(wanted, _LEAST_SHARE), _MOST_SHARE)


def aimed(rows: RowSource, door: Door[Any], layout: GlmRounds) -> GlmRounds:
    """Return the layout with centre and reach of each output.

    Args:
        rows: private; handed to the door.
        door: which adds up, and lets sums out with noise.
        layout: of the rounds; as it is if no share is set apart for this.
    """
    if not layout.aiming:
        return layout
    ends: list[Ends] = [(-1.0, 1.0)] * layout.outputs
    for pass_ in range(PASSES):
        counts, noise = _counted(rows, door, ends, share=layout.aiming / PASSES)
        last = pass_ == PASSES - 1
        ends = [
            _narrowed(each, found, noise, hint=door.settings.rows_hint, quantiles=last)
            for each, found in zip(ends, counts, strict=True)
        ]
    centre = tuple((low + high) / 2 for low, high in ends)
    reach = tuple(min(max((high - low) / 2, _NARROWEST), 1.0) for low, high in ends)
    return replace(layout, centre=centre, reach=reach)


def _counted(
    rows: RowSource, door: Door[Any], ends: Sequence[Ends], *, share: float
) -> tuple[Floats, float]:
    """Return noisy counts of each output's cells, shape (outputs, cells), and their deviation."""
    outputs = len(ends)
    low = np.array([each[0] for each in ends])
    width = np.array([each[1] - each[0] for each in ends])

    def mark(keys: Floats, values: Floats) -> Floats:
        del keys
        # Row by row, to the bit: a difference, a quotient and a product of single numbers.
        places = np.floor((np.clip(values, -1.0, 1.0) - low) / width * _CELLS)
        # Beyond the ends there is no cell; but the upper end of the range itself is in the last.
        last = (places == _CELLS) & (values >= 1.0)
        inside = (places >= 0) & ((places < _CELLS) | last)
        cells = np.minimum(places, _CELLS - 1) + np.arange(outputs) * _CELLS
        return as_cells(np.where(inside, cells, -1.0).astype(np.int64))

    counts, noise = count(rows, door, mark, _counts(outputs), share=share)
    return counts.reshape(outputs, _CELLS), noise


def counts_of(layout: GlmRounds) -> Counts:
    """Return what is counted in one pass.

    Args:
        layout: of the rounds.
    """
    return _counts(layout.outputs)


def _counts(outputs: int) -> Counts:
    return Counts(cells=outputs * _CELLS, marks=outputs)


def _narrowed(
    ends: Ends, counts: Floats, noise: float, *, hint: int | None, quantiles: bool
) -> Ends:
    """Return the part of a range that holds nearly all rows: all of it, if noise hides that.

    Args:
        ends: of the range.
        counts: of its cells, shape (cells,).
        noise: their standard deviation.
        hint: a public number of rows, if there is one.
        quantiles: whether to return a range around the 5% and the 95% quantile.
    """
    low, high = ends
    step = (high - low) / _CELLS
    total = _total(counts, noise, hint)
    small = total > _SMALL * noise
    first, last = _narrowest(counts, noise, (_NEARLY_ALL if small else _MOST) * total)
    if small and quantiles:
        kept = np.maximum(counts[first:last], 0.0)
        below = np.concatenate([[0.0], np.cumsum(kept)])
        shares = [_LOW * below[-1], _HIGH * below[-1]]
        bottom, top = np.interp(shares, below, np.arange(first, last + 1))
        middle, reach = (bottom + top) / 2, _REACH * (top - bottom)
        return _wide_enough(low + (middle - reach) * step, low + (middle + reach) * step)
    if not small:  # what was seen may lack its edges
        first, last = max(first - 1, 0), min(last + 1, _CELLS)
    return _wide_enough(low + first * step, low + last * step)


def _total(counts: Floats, noise: float, hint: int | None) -> float:
    """Return about how many rows there are: by all counts together, and by the hint."""
    counted, deviation = float(counts.sum()), noise * math.sqrt(len(counts))
    if hint is None:
        return max(counted, deviation)
    of_hint, of_count = 1 / (0.5 * hint) ** 2, 1 / deviation**2
    return max((hint * of_hint + counted * of_count) / (of_hint + of_count), 1.0)


def _narrowest(counts: Floats, noise: float, wanted: float) -> tuple[int, int]:
    """Return the fewest cells in a row that surely hold so many rows: first, and one past the last.

    Of several as narrow, those that hold the most; all of them, if none do.
    """
    below = np.concatenate([[0.0], np.cumsum(counts)])
    for width in range(1, len(counts)):
        held = below[width:] - below[:-width]
        best = int(np.argmax(held))
        if held[best] - _SURE * noise * math.sqrt(width) >= wanted:
            return best, best + width
    return 0, len(counts)


def _wide_enough(low: float, high: float) -> Ends:
    """Return a range within ±1 that is not too narrow."""
    middle = min(max((low + high) / 2, -1.0), 1.0)
    half = max((high - low) / 2, _NARROWEST)
    return middle - half, middle + half
