"""Counts near public points, and shares of labels there, with exact margins: post-processing only.

Noise is the only error that margins are about: a count is of rows that are *nearest* to a point.
"""

import math
from functools import cached_property
from typing import Any

import numpy as np

from discreet._typing import Floats
from discreet.noise import DiscreteLaplace
from discreet.privacy import Card
from discreet.readers.table.layout import TableLayout
from discreet.sums.forecast import card_of
from discreet.sums.release import Release, Released

# Margins are so wide that they hold this often.
LEVEL = 0.95

# Mass of the noise that may be left out of a law that is written down.
_LEFT_OUT = 1e-12

# A law whose scale is more than twice as many lattice units is written down in larger steps.
_STEPS = 128

# That of a normal law, and of its one side.
_NORMAL, _ONE_SIDED = 1.959963984540054, 1.6448536269514722


def describe(released: Released[TableLayout]) -> Card:
    """Return the card of a release.

    Args:
        released: the noisy counts, with what is public about them.
    """
    layout = released.layout
    law = Law.of(released)
    facts: dict[str, object] = {
        "mechanism": "discrete Laplace noise, added once to counts in cells",
        "noise_scale": released.scales[0] * layout.real_unit,
        "count_margin": law.count_margin,
        "points": layout.kernel.features,
        "classes": list(layout.classes),
        "key_dim": layout.kernel.dim,
    }
    labels = f", by {layout.labels:,} labels" if layout.classes else ""
    parts = " and ".join(
        f"{scale * layout.real_unit:.4g} on {what}"
        for scale, what in zip(released.scales, ("each cell", "each count"), strict=False)
    )
    lines = [
        ("counts", f"rows nearest to each of {layout.kernel.features:,} public points{labels}"),
        ("noise", f"discrete Laplace, drawn once, of scale {parts}: no δ is needed for it"),
        ("counts are within", f"±{law.count_margin:.3g}, {LEVEL:.0%} of the time, noise alone"),
        ("size", f"{released.nbytes:,} bytes, and {layout.kernel.points.nbytes:,} of the points"),
    ]
    return card_of(released, facts, lines)


class Table(Release[TableLayout]):
    """How many rows are nearest to each public point, and which labels they have.

    ε-private as `guarantee` says (δ = 0 if nothing else was released with it), for any number of
    questions, and for giving the whole object away. `docs/privacy.md`, "Counts in cells".

    Args:
        released: the noisy counts, with what is public about them.
    """

    kind = "discreet-table"
    layout = TableLayout
    describe = staticmethod(describe)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels; () if rows have none."""
        return self._released.layout.classes

    @cached_property
    def law(self) -> "Law":
        """The noise of counts and shares."""
        return Law.of(self._released)

    @cached_property
    def counts(self) -> Floats:
        """About how many rows are nearest to each point, shape (T,); ± `count_margin`."""
        layout = self._released.layout
        sums = self._released.state[0].sum(axis=0) * layout.real_unit
        if not layout.counts_points:
            return np.asarray(sums)
        own = self._released.others[0][0, 0] * layout.real_unit
        return np.asarray(layout.combined * sums + (1 - layout.combined) * own)

    @property
    def count_margin(self) -> float:
        """The ± of a count: noise moves 95 of 100 counts by no more."""
        return self.law.count_margin

    @property
    def total(self) -> float:
        """About how many rows there are in all; ± `total_margin`."""
        return float(self.counts.sum())

    @property
    def total_margin(self) -> float:
        """The ± of the total: 1.96 standard deviations of a sum of so many independent counts."""
        return _NORMAL * self.law.count_deviation * math.sqrt(len(self.counts))

    @cached_property
    def cells(self) -> Floats:
        """About how many rows of each label are nearest to each point, shape (T, labels).

        Rows of it add up to `counts`.
        """
        layout = self._released.layout
        noisy = self._released.state[0].T * layout.real_unit
        return np.asarray(noisy + (self.counts - noisy.sum(axis=1))[:, None] / layout.labels)

    @cached_property
    def overall(self) -> Floats:
        """The share of each label among all rows, shape (labels,)."""
        totals = np.maximum(self.cells.sum(axis=0), 0.0)
        rows = totals.sum()
        return np.asarray(totals / rows if rows > 0 else np.full(len(totals), 1 / len(totals)))

    def shares(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the shares of labels among rows near a query, and the ± of each: (m, labels).

        They are between 0 and 1, and add up to one. What they estimate, and what is within the ± of
        them 95 of 100 times, is Σ w·(rows with the label) / Σ w·rows over points: the same without
        noise. All shares are within the ± that noise puts so far from what is found, or nearly so:
        the interval of Fieller (1954) for a ratio, cut to what shares may be. Noise can make a
        share near 0 or 1 miss in one direction only, so there the ± is that of one side (after
        Feldman and Cousins, 1998); and still, labels that no row has are within it up to 98 of 100
        times.

        Args:
            weights: how much each point counts for each query, shape (m, T), at least 0.
        """
        near = weights @ self.cells
        found = near.sum(axis=1, keepdims=True)
        spread = np.sqrt(np.sum(weights**2, axis=1, keepdims=True))
        # Where fewer rows are near than the noise in their number comes to, the rest are taken to
        # be like all rows.
        rows = np.maximum(found, self.law.count_deviation * spread)
        shares = _nearest_shares((near + (rows - found) * self.overall) / rows)
        reach = self.law.quantile(weights) * spread
        low, high = self.law.share_ends(near, found, reach)
        first, last = self.law.share_ends(near, found, reach * _ONE_SIDED / _NORMAL)
        deviations = self.law.share_deviations(shares) * spread / rows
        close = 2 * _ONE_SIDED * deviations
        one_sided = ((first > 0) & (shares < close)) | ((last < 1) & (1 - shares < close))
        low, high = np.where(one_sided, first, low), np.where(one_sided, last, high)
        # What is found may be impossible by more than 1.96 deviations: that is no proof.
        margins = np.maximum.reduce([shares - low, high - shares, deviations])
        return shares, np.minimum(margins, 1.0)


class Law:
    """How far noise moves counts and shares.

    Args:
        layout: of the table.
        scales: of the noise of cells and of counts, in rows.
    """

    def __init__(self, layout: TableLayout, scales: tuple[float, ...]) -> None:
        self._layout = layout
        units = layout.units
        self._laws = [DiscreteLaplace(scale=scale * units) for scale in scales]
        self._variances = [law.variance / units**2 for law in self._laws]

    @classmethod
    def of(cls, released: Released[TableLayout]) -> "Law":
        """Return the law of a release.

        Args:
            released: the noisy counts, with what is public about them.
        """
        unit = released.layout.real_unit
        return cls(released.layout, tuple([scale * unit for scale in released.scales]))

    @property
    def count_deviation(self) -> float:
        """The standard deviation of a count."""
        weight, labels = self._layout.combined, self._layout.labels
        variance = weight**2 * labels * self._variances[0]
        if len(self._variances) > 1:
            variance += (1 - weight) ** 2 * self._variances[1]
        return math.sqrt(variance)

    def share_deviations(self, shares: Floats) -> Floats:
        """Return the standard deviation of a share times the number of rows, for one point.

        A cell is off by what it differs from the mean of its row's cells, and by its part of what
        the row is off, of which the share takes its own part off again.

        Args:
            shares: of labels, shape (m, labels).
        """
        labels = self._layout.labels
        within = self._variances[0] * (1 - 1 / labels)
        return np.sqrt(within + self.count_deviation**2 * (shares - 1 / labels) ** 2)

    def share_ends(self, near: Floats, found: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """Return the lowest and the highest share s with |near - s·found| ≤ reach·deviation(s).

        The noise of near - s·found has a known deviation (`share_deviations`), so that this holds
        for the true share as often as it should, however few rows are near. Both are within 0 and
        1; that is all that is known where it is not clear that any rows are near.

        Args:
            near: noisy weighted counts by label, shape (m, labels).
            found: their sums, shape (m, 1).
            reach: how many deviations of one point, shape (m, 1).
        """
        labels = self._layout.labels
        both = (reach * self.count_deviation) ** 2
        within = reach**2 * self._variances[0] * (1 - 1 / labels)
        square = found**2 - both
        clear = (found > 0) & (square > 0)
        square = np.where(clear, square, 1.0)
        middle = near * found - both / labels
        rest = near**2 - within - both / labels**2
        half = np.sqrt(np.maximum(middle**2 - square * rest, 0.0))
        low = np.where(clear, (middle - half) / square, 0.0)
        high = np.where(clear, (middle + half) / square, 1.0)
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)

    def quantile(self, weights: Floats) -> Floats:
        """Return the ± of a weighted sum of cells, in standard deviations, shape (m, 1).

        By its kurtosis (Cornish, Fisher): Laplace noise on one cell has 2.12, that of many 1.96.

        Args:
            weights: of points, shape (m, T).
        """
        law = self._laws[0]
        ratio = math.exp(-1 / law.scale)
        fourth = 2 * ratio * (1 + 4 * ratio + ratio**2) / (1 - ratio) ** 4
        squares = weights**2
        alone = np.sum(squares**2, axis=1) / np.sum(squares, axis=1) ** 2
        excess = fourth / law.variance**2 * alone[:, None]
        return np.asarray(_NORMAL + (_NORMAL**3 - 3 * _NORMAL) * excess / 24)

    @cached_property
    def count_margin(self) -> float:
        """The least ± that noise of a count stays within 95 of 100 times: of its law."""
        weight, labels = self._layout.combined, self._layout.labels
        # Where noise is many lattice units, steps of several are as good: what rows of records are
        # counted in is very fine.
        step = max(math.floor(min(law.scale for law in self._laws) / _STEPS), 1)
        laws = [DiscreteLaplace(scale=law.scale / step) for law in self._laws]
        sums = _of_sum(laws[0], labels)
        values = weight * np.arange(-(len(sums) // 2), len(sums) // 2 + 1)
        unit = step / self._layout.units
        if len(laws) == 1:
            inside = np.cumsum(_folded(sums))
            return float(np.searchsorted(inside, LEVEL)) * unit
        own = _of_sum(laws[1], 1)
        below = np.concatenate([[0.0], np.cumsum(own), [1.0]])
        middle = len(own) // 2

        def holds(margin: float) -> float:
            """Pr[|w·X + (1 - w)·Y| ≤ margin]."""
            high = np.floor((margin - values) / (1 - weight) + 1e-9).astype(np.int64)
            low = np.ceil((-margin - values) / (1 - weight) - 1e-9).astype(np.int64)
            ends = [np.clip(each + middle, 0, len(below) - 1) for each in (high + 1, low)]
            return float(sums @ (below[ends[0]] - below[ends[1]]))

        low, high = 0.0, 1.0
        while holds(high) < LEVEL:
            high *= 2
        while high - low > 1e-6 * high:
            tried = (low + high) / 2
            low, high = (low, tried) if holds(tried) >= LEVEL else (tried, high)
        return high * unit


def _nearest_shares(estimates: Floats) -> Floats:
    """Return the nearest shares, at least 0 and adding up to one: (m, labels).

    What noise adds to labels that are rare is taken from all alike, and not in proportion to what
    they have: otherwise the largest share would pay for most of it.

    Args:
        estimates: of shares, with noise: they may be below 0, shape (m, labels).
    """
    ordered = -np.sort(-estimates, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, estimates.shape[1] + 1)
    kept = np.count_nonzero(ordered > excess, axis=1)
    return np.maximum(estimates - excess[np.arange(len(kept)), kept - 1, None], 0.0)


def _of_sum(law: DiscreteLaplace, count: int) -> Floats:
    """Return the law of a sum of so many draws, on whole numbers around zero."""
    reach = math.ceil(-law.scale * math.log(_LEFT_OUT))
    one = law.pmf(np.arange(-reach, reach + 1))
    if count == 1:
        return one
    # So many standard deviations, and what one draw may add: beyond, there is as little again.
    far = reach + math.ceil(14 * math.sqrt(count * law.variance))
    size = 2 * min(count * reach, far) + 1
    circle = np.zeros(size)
    circle[np.arange(-reach, reach + 1)] = one
    powers = np.fft.rfft(circle) ** count
    return np.maximum(np.fft.fftshift(np.fft.irfft(powers, size)), 0.0)


def _folded(masses: Floats) -> Floats:
    """Return the law of |Z|, given that of Z around zero."""
    middle = len(masses) // 2
    above = masses[middle:].copy()
    above[1:] += masses[:middle][::-1]
    return above
