"""A regression rehearsed on rows that anybody can draw: what the noise will do to predictions.

Public rows, where there are any, stand in for the private ones; else rows whose variance falls from
axis to axis. Their values follow them along a straight line. (Rows that are spread evenly in eight
directions, as `attention.error_model` has them, would be up to six times too hopeful: predictions
are noisiest in the directions in which rows vary least.) Their sums, scaled to as many rows as are
planned for, are solved with and without noise, by the code that solves releases. All random numbers
come from a public hash: this is a calculation with public numbers, and protects nobody.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet._typing import Floats
from discreet.features.fourier import public_normals
from discreet.features.public_rows import PublicRows
from discreet.readers.least_squares.layout import Moments
from discreet.readers.least_squares.solution import NoisySums, Solution
from discreet.sums.settings import part_sigmas

# Rows that stand in: so many for each feature, and no fewer, for the sums; and for queries.
_ROWS_PER_FEATURE, _LEAST_ROWS, _QUERIES = 2, 1_000, 400

# So many numbers of a value are predicted: each is as noisy as the others.
_MOST_NUMBERS = 4

# Where features are few, one draw of the noise tells little: all draws have so many of them.
_FEATURES_DRAWN, _MOST_DRAWS = 1_024, 64

# Rows that are needed are found within this factor, in so many steps at most, none of them by more
# than this factor (log), and clearness is taken to grow with rows at least this fast.
_NEAR, _STEPS, _FURTHEST, _LEAST_SLOPE = 1.1, 5, 5.0, 0.2


@dataclass(frozen=True)
class Outcome:
    """What predictions are like with so many rows; root mean squares, in the units of values.

    Attributes:
        signal: how much predictions without noise differ from query to query.
        of_sums: how far the noise of the sums moves them.
        of_moments: how far that of the second moments does.
        stderr: how far both do.
    """

    signal: float
    of_sums: float
    of_moments: float
    stderr: float

    @property
    def signal_to_error(self) -> float:
        """Signal over standard error."""
        return self.signal / max(self.stderr, np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Means over rows that stand in for the private ones, and the noise that sums will have.

    Attributes:
        layout: of a regression with one head for each draw of the noise.
        sigma: of the noise on the sums, in lattice units.
        totals: the mean of φ ⊗ [v; τ], in lattice units, shape (d_v + 1, r).
        moments: the mean of φ ⊗ φ, likewise, shape (r, r).
        queries: features of other rows of the kind, shape (m, r).
    """

    layout: Moments
    sigma: float
    totals: Floats
    moments: Floats
    queries: Floats

    @classmethod
    def of(
        cls, layout: Moments, *, sigma: float, signal: float, public_rows: PublicRows | None
    ) -> "Rehearsal":
        """Return the rehearsal of a regression.

        Args:
            layout: its public settings.
            sigma: of the noise on its sums, in lattice units.
            signal: how much each number of a value follows the key, a standard deviation.
            public_rows: rows like the private ones, if there are any.
        """
        count = layout.kernel.features
        numbers = min(layout.value_dim, _MOST_NUMBERS)
        rows = max(_ROWS_PER_FEATURE * count, _LEAST_ROWS)
        keys = _keys(layout, rows + _QUERIES, public_rows)
        values = _values(keys, numbers, signal)
        mapped = layout.kernel.key_features(keys).features
        shown, asked = mapped[:rows], mapped[rows:]
        weighed = np.column_stack([values[:rows], np.full(rows, layout.real_tau)])
        squared = layout.coarse(shown)
        draws = min(math.ceil(_FEATURES_DRAWN / count), _MOST_DRAWS)
        return cls(
            layout=replace(layout, heads=(draws,), value_dim=numbers),
            sigma=sigma,
            totals=weighed.T @ shown / (rows * layout.kernel.unit * layout.real_unit),
            moments=squared.T @ squared / rows,
            queries=asked / layout.kernel.unit,
        )

    def outcome(self, rows: float) -> Outcome:
        """Return what predictions are like with so many rows.

        Noise of the sums is known exactly: σ·‖x‖ with x = (G₊ + λ)⁻¹·φ. That of the second moments
        is drawn.
        """
        quiet = Solution.of(self._sums(rows, noise=False))
        noisy = Solution.of(self._sums(rows, noise=True))
        pulled = self.queries @ noisy.inverse
        of_sums = _size(np.linalg.norm(pulled, axis=-1)[..., None] * noisy.centred_sigma)
        of_moments = _size(self.queries @ (noisy.weights - quiet.weights))
        predicted = self.queries @ quiet.weights
        signal = _size(predicted - predicted.mean(axis=1, keepdims=True))
        return Outcome(signal, of_sums, of_moments, math.hypot(of_sums, of_moments))

    def rows_for(
        self, ratio: float, start: float, outcome: Outcome, *, most: float
    ) -> float | None:
        """Return about how many rows make signal over standard error as large as `ratio`.

        Args:
            ratio: the one that is wanted.
            start: a number of rows to begin with.
            outcome: what predictions are like with that.
            most: None is returned if it takes more.
        """
        rows, clear = start, outcome.signal_to_error
        slope = 1.0  # of log clearness over log rows; then that of the last two
        for _ in range(_STEPS):
            if abs(math.log(ratio / clear)) < slope * math.log(_NEAR):
                break
            step = min(max(math.log(ratio / clear) / slope, -_FURTHEST), _FURTHEST)
            last, before = rows, clear
            rows = min(max(rows * math.exp(step), 1.0), 2 * most)
            clear = self.outcome(rows).signal_to_error
            if rows != last:
                slope = math.log(clear / before) / math.log(rows / last)
                slope = min(max(slope, _LEAST_SLOPE), 2.0)
        return rows if rows <= most else None

    def _sums(self, rows: float, *, noise: bool) -> NoisySums:
        """Return what so many rows add up to, with noise on the second moments or without."""
        layout = self.layout if noise else replace(self.layout, heads=())
        heads = layout.head_count
        others: tuple[Floats, ...] = ()
        if layout.share:
            _, *sigmas = part_sigmas(layout, self.sigma)
            exact = rows * np.diagonal(self.moments), rows * self._upper
            others = tuple(
                part + sigma * more if noise else part[None]
                for part, sigma, more in zip(exact, sigmas, self._normals, strict=True)
            )
        state = np.broadcast_to(rows * self.totals, (heads, *self.totals.shape))
        return NoisySums(layout, state, others, self.sigma, None, max(round(rows), 1))

    @cached_property
    def _upper(self) -> Floats:
        return self.moments[np.triu_indices(len(self.moments), 1)]

    @cached_property
    def _normals(self) -> tuple[Floats, Floats]:
        """Noise of variance one, for the diagonal and for what is above it, in each draw."""
        draws = self.layout.head_count
        sizes = (len(self.moments), len(self._upper))
        diagonal, upper = (
            public_normals(f"discreet rehearsal noise {part}", draws * size).reshape(draws, size)
            for part, size in enumerate(sizes)
        )
        return diagonal, upper


def _keys(layout: Moments, count: int, public_rows: PublicRows | None) -> Floats:
    """Return rows that stand in for the private ones: public ones, or such as are common.

    Those are as long as can be, around zero, and vary along axis i with a variance of 1/i: much in
    a few directions, and a little in all others.
    """
    if public_rows is not None:
        return np.asarray(public_rows.mixed[np.arange(count) % len(public_rows.mixed)])
    dim = layout.kernel.dim
    keys = public_normals("discreet rehearsal rows", count * dim).reshape(count, dim)
    keys /= np.sqrt(np.arange(1, dim + 1))
    keys *= layout.kernel.key_norm / np.linalg.norm(keys, axis=1, keepdims=True)
    return keys


def _values(keys: Floats, numbers: int, signal: float) -> Floats:
    """Return values on straight lines, which follow most what keys vary by most."""
    apart = keys - keys.mean(axis=0)
    drawn = public_normals("discreet rehearsal lines", len(keys) * numbers)
    values = apart @ (apart.T @ drawn.reshape(-1, numbers))
    values *= signal / np.maximum(values.std(axis=0), np.finfo(float).tiny)
    return np.asarray(values)


def _size(numbers: Floats) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(numbers))))
