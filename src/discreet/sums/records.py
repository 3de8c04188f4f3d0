"""Bounds on what a record of many rows contributes, over all heads and layers at once.

A record contributes M = Σ_i w_i ⊗ a_i. If its norm, in units of each head's C, exceeds the cap, the
whole record is scaled down by one factor. Short records are scaled row by row (their norm comes
from two Gram matrices: ‖M‖² = Σ_ij ⟨a_i, a_j⟩·⟨w_i, w_j⟩) and checked again after rounding. Long
records are added up first, and the scaled sum is rounded towards zero, so that it need not be
checked again. Either way the result depends on that record's rows alone, to the bit, and not on
their order.

Where second moments Σ_i a_i ⊗ a_i are added up, too, a factor f for both is √f for every w_i and
a_i of a short record, and the squared norm has Σ_ij ⟨a_i, a_j⟩² besides.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput
from discreet.sums.layout import RowLayout
from discreet.sums.moments import SecondMoments
from discreet.sums.settings import Settings

# ⟨a, a'⟩ ≤ 2^32 times a limb of 16 bits, added up 2^14 times, fits int64.
_LIMB_BITS = 16
_MOST_PAIRS = 2**14

# More than the relative error of a sum of squares in float64.
_ROUNDING = 1 + 2.0**-30


def by_size(of_row: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield each size of record with the row numbers of its records, shape (records, size).

    Args:
        of_row: the number of each row's record, shape (n,).
    """
    order = np.argsort(of_row, kind="stable")
    _, starts, counts = np.unique(of_row[order], return_index=True, return_counts=True)
    for size in np.unique(counts):
        first = starts[counts == size]
        yield int(size), order[first[:, None] + np.arange(size)]


def gram_rows(settings: Settings[RowLayout]) -> int:
    """Return how many rows a record may have for its Gram matrices to be added up exactly.

    Args:
        settings: the public settings.

    Raises:
        InvalidInput: there are too many heads.
    """
    if settings.head_count > _MOST_PAIRS:
        raise InvalidInput(
            f"Expected at most {_MOST_PAIRS:,} heads with records, got {settings.head_count:,}: "
            "their inner products could not be added up exactly."
        )
    return math.isqrt(_MOST_PAIRS // settings.head_count)


def scale_down(
    settings: Settings[RowLayout], grams: Sequence[Integers], weighed: Sequence[Floats], size: int
) -> list[Floats]:
    """Return the weighed values of short records, scaled so that no record exceeds the cap.

    Args:
        settings: the public settings.
        grams: of the features of each layer (`gram`).
        weighed: values of each layer, shape (heads, records·size, d_v + 1).
        size: rows of each record.
    """
    originals = [_by_record(each, size) for each in weighed]
    scaled = [each.copy() for each in originals]
    factors = np.ones(originals[0].shape[1])
    over = np.arange(len(factors))
    while len(over):
        squared = (
            sum(
                _squared_norms(inner[:, over], each[:, over]) / layout.row_bound**2
                for inner, each, layout in zip(grams, scaled, settings.layouts, strict=True)
            )
            + 2.0**-48 * settings.head_count * size**2
        )
        excess = np.sqrt(np.asarray(squared) / settings.squared_cap)
        # Rounding may lengthen a record that was just scaled: a little more each time.
        factors[over] /= np.where(excess > 1, excess * (1 + 2.0**-12), 1.0)
        over = over[excess > 1]
        for total, each in zip(scaled, originals, strict=True):
            total[:, over] = np.rint(each[:, over] * factors[over, None, None])
    return [each.reshape(len(each), -1, each.shape[-1]) for each in scaled]


def scale_down_both(
    settings: Settings[RowLayout], features: Floats, weighed: Floats, size: int
) -> tuple[Floats, Floats]:
    """Return features and weighed values of short records with second moments, none over the cap.

    Args:
        settings: the public settings, of one layer.
        features: integers, shape (heads, records·size, r).
        weighed: integers, shape (heads, records·size, d_v + 1).
        size: rows of each record.
    """
    [layout] = settings.layouts
    if not isinstance(layout, SecondMoments):
        raise TypeError("Expected a layout with second moments.")
    moments = layout.part_weights[1] ** 2
    originals = [_by_record(each, size) for each in (features, weighed)]
    scaled = [each.copy() for each in originals]
    factors = np.ones(originals[0].shape[1])
    over = np.arange(len(factors))
    while len(over):
        rows, values = (each[:, over] for each in scaled)
        inner = np.matmul(rows, rows.swapaxes(2, 3)).astype(np.int64)
        cut = layout.coarse(rows)
        inner_cut = np.matmul(cut, cut.swapaxes(2, 3)).astype(np.int64)
        squared = _squared_norms(inner, values) + moments * _squared_grams(inner_cut)
        squared = squared / layout.row_bound**2 + 2.0**-46 * settings.head_count * size**2
        excess = np.sqrt(squared / settings.squared_cap)
        factors[over] /= np.where(excess > 1, excess * (1 + 2.0**-12), 1.0)
        over = over[excess > 1]
        # Rounding never carries a whole number times at most one beyond that number.
        roots = np.sqrt(factors[over])[:, None, None]
        for total, each in zip(scaled, originals, strict=True):
            total[:, over] = np.rint(each[:, over] * roots)
    features, weighed = (each.reshape(len(each), -1, each.shape[-1]) for each in scaled)
    return features, weighed


def shrink_sums(settings: Settings[RowLayout], sums: Sequence[Integers]) -> list[Integers]:
    """Return the sums of one long record, cut towards zero so that they do not exceed the cap.

    Args:
        settings: the public settings.
        sums: one array for each part of each layer, of one record.
    """
    floats = [total.astype(np.float64) for total in sums]
    bounds = [
        layout.row_bound / weight for layout in settings.layouts for weight in layout.part_weights
    ]
    squared = _ROUNDING * sum(
        float(np.sum((total / bound) ** 2)) for total, bound in zip(floats, bounds, strict=True)
    )
    if squared <= settings.squared_cap:
        return list(sums)
    factor = math.sqrt(settings.squared_cap / squared)
    return [np.trunc(total * factor).astype(np.int64) for total in floats]


def _by_record(rows: Floats, size: int) -> Floats:
    """Return rows of shape (heads, records·size, k) as (heads, records, size, k)."""
    return rows.reshape(len(rows), -1, size, rows.shape[-1])


def gram(rows: Floats, size: int) -> Integers:
    """Return the inner products within each record, exactly, shape (heads, records, size, size).

    Args:
        rows: integers stored as float64, shape (heads, records·size, k).
        size: rows of each record.
    """
    grouped = _by_record(rows, size)
    return np.asarray(np.matmul(grouped, grouped.swapaxes(2, 3)), dtype=np.int64)


def _squared_grams(inner_products: Integers) -> Floats:
    """Return Σ_ij ⟨a_i, a_j⟩² of each record over all heads, shape (records,).

    In integers, 16 bits at a time, as in `_squared_norms`.
    """
    high, low = np.divmod(np.abs(inner_products), 2**_LIMB_BITS)
    sums = [np.sum(part, axis=(0, 2, 3)) for part in (high * high, high * low, low * low)]
    return np.asarray(sums[0] * 2.0**32 + sums[1] * 2.0**17 + sums[2] * 1.0)


def _squared_norms(inner_products: Integers, weighed: Floats) -> Floats:
    """Return ‖M‖² of each record over all heads, shape (records,).

    Added up in integers, 16 bits of ⟨w, w'⟩ at a time, so the order of rows does not matter; only
    the last step, from a few exact numbers to one, is in float64.
    """
    inner = np.matmul(weighed, weighed.swapaxes(2, 3)).astype(np.int64)
    # Signs go to the other factor: limbs of a negative number would be large and cancel.
    signed, left = inner_products * np.sign(inner), np.abs(inner)
    total = np.zeros(inner_products.shape[1])
    for limb in range(4):
        digits = left & (2**_LIMB_BITS - 1)
        total += np.sum(signed * digits, axis=(0, 2, 3)) * 2.0 ** (_LIMB_BITS * limb)
        left = left >> _LIMB_BITS
    return total
