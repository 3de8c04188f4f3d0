"""From what rounds release to coefficients: steps whose length follows from the noise. Public.

Nothing here sees a row. `descend` asks the door for one noisy sum after the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet._typing import Floats, Integers
from discreet.noise import DiscreteLaplace, RoundedGaussian
from discreet.readers.rounds.layout import MOMENT_BITS, RoundLayout, RoundsLayout, Weights
from discreet.sums.door import Door
from discreet.sums.moments import drawable
from discreet.sums.settings import Settings
from discreet.sums.source import RowSource

# T: from 10 to 48 it hardly matters, and each is a pass over all rows.
ROUNDS = 16

# Of the squared budget, for second moments: they only have to tell which directions are long.
MOMENTS = 0.03

# Second moments are a square of these, and their eigenvectors take the cube in time.
MOST_FEATURES = 8192

# How much of the last direction is kept.
MOMENTUM = 0.5


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long steps are, for one kind of loss.

    Attributes:
        noise: κ, the noise that may reach a score.
        longest: λ, in units of one over the step: beyond it a step would overshoot.
        few: steps are longer where features are fewer than this, by the eighth root: with fewer
            directions to be lost in, a longer way is worth its noise. 0 if they are not.
        edge: steps are at most this long, in units of one over the largest second moment that
            noise may hide: longer ones would overshoot along directions that nobody sees.
    """

    noise: float
    longest: float
    few: int = 0
    edge: float = math.inf


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Directions in which features vary much, and how much shorter a step is along each.

    Attributes:
        directions: orthonormal, shape (r, k).
        missing: what is left out of a step along each, from 0 to 1, shape (k,).
    """

    directions: Floats
    missing: Floats

    @classmethod
    def of(cls, moments: Floats, noise: float, most: float) -> "Preconditioner":
        """Return the directions whose second moment is above the noise's edge, and above `most`.

        Args:
            moments: noisy Σ φ ⊗ φ, shape (r, r).
            noise: standard deviation of a diagonal entry; what is above it has √½ of that.
            most: the second moment at which steps begin to be shorter.
        """
        values, vectors = np.linalg.eigh(moments)
        large = values > max(edge_of(noise, len(moments)), most)
        return cls(vectors[:, large], 1 - most / values[large])

    def __call__(self, gradient: Floats) -> Floats:
        """Return a gradient (r, C) that is shorter along these directions."""
        along = self.directions.T @ gradient
        return gradient - self.directions @ (self.missing[:, None] * along)


def edge_of(noise: float, count: int) -> float:
    """Return the largest eigenvalue that noise alone gives to second moments.

    Args:
        noise: standard deviation of a diagonal entry.
        count: of features.
    """
    return noise * math.sqrt(2 * count)


@dataclass(frozen=True, eq=False)
class Descent:
    """Where W is, and where it is heading: from what rounds release, so it costs nothing. Public.

    The length of steps follows from the noise that may reach a score, which is fixed in advance:
    steps of κ/(s·√T), where s is the noise of one round, leave noise of κ after T rounds, whatever
    the rows are. Where rows are many and alike, such steps would be too long: the preconditioner
    shortens them along directions in which features have a second moment of more than λ. Second
    moments that their own noise may have made are taken for small.

    Attributes:
        weights: W, shape (r, C).
        momentum: a mean of the gradients so far, shape (r, C).
        step: how long one step is, for a gradient of one.
        longest: λ: steps are shorter along directions with more than this second moment.
    """

    weights: Floats
    momentum: Floats
    step: float
    longest: float

    @classmethod
    def start(
        cls, shape: tuple[int, int], *, rounds: int, noise: float, pace: Pace, edge: float = 0.0
    ) -> "Descent":
        """Return W = 0, before the first of some rounds.

        Args:
            shape: (r, C).
            rounds: T.
            noise: s, the standard deviation of an entry of each round's sums.
            pace: how long steps are.
            edge: the largest second moment that noise may hide.
        """
        zero = np.zeros(shape)
        few = max(pace.few / shape[0], 1.0) ** 0.125
        step = pace.noise * few / (noise * math.sqrt(rounds))
        if edge:
            step = min(step, pace.edge / edge)
        return cls(zero, zero, step, pace.longest / step)

    def next(self, gradient: Floats) -> "Descent":
        """Return where W goes, given a round's noisy sums, preconditioned: shape (r, C).

        Args:
            gradient: shape (r, C).
        """
        momentum = MOMENTUM * self.momentum + (1 - MOMENTUM) * gradient
        return replace(self, weights=self.weights - self.step * momentum, momentum=momentum)


@dataclass(frozen=True, eq=False)
class Descended:
    """What rounds came to. Public.

    Attributes:
        weights: W after the last round, shape (r, C).
        moments: noisy Σ φ ⊗ φ, shape (r, r).
        moment_noise: standard deviation of a diagonal entry; what is above it has √½ of that.
    """

    weights: Floats
    moments: Floats
    moment_noise: float

    @property
    def kept(self) -> Integers:
        """Second moments as a release keeps them, shape (1, r·(r + 1)/2)."""
        upper = self.moments[np.triu_indices(len(self.moments))]
        return whole(np.ldexp(upper[None], MOMENT_BITS))


# Given the first round's noisy sums (r, C), second moments (r, r) and their noise: W to start from
# (r, C), and what is left of the sums as a first gradient.
Start = Callable[[Floats, Floats, float], tuple[Floats, Floats]]


def from_zero(sums: Floats, moments: Floats, noise: float) -> tuple[Floats, Floats]:
    """Return W = 0, and the sums themselves for the first step.

    Args:
        sums: noisy Σ φ ⊗ q at W = 0.
        moments: not needed.
        noise: not needed.
    """
    del moments, noise
    return np.zeros_like(sums), sums


def noise_of_round(settings: Settings[Any], layout: RoundsLayout) -> float:
    """Return the standard deviation of the noise of a round, before rounding, in lattice units.

    (The first may have less, where rows are replaced: at W = 0 their sums and second moments cannot
    both move as far as they can.)

    Args:
        settings: of the whole release.
        layout: of its rounds.
    """
    return settings.sigma(layout) / math.sqrt(layout.of_round)


def first_round(settings: Settings[Any], layout: RoundsLayout) -> RoundLayout:
    """Return the layout of the first round, in which W is zero.

    Args:
        settings: of the whole release.
        layout: of its rounds.
    """
    return drawable(
        layout.first(), settings.privacy, settings.unit, settings.group_rows, layout.of_first
    )


def check_rounds(settings: Settings[Any], layout: RoundsLayout) -> None:
    """Raise `InvalidInput` if noise of a round cannot be drawn: before a row is read.

    Args:
        settings: of the whole release.
        layout: of its rounds.
    """
    settings.part(first_round(settings, layout), layout.of_first)
    zero = Weights.of(np.zeros((layout.kernel.features, layout.columns)))
    settings.part(layout.at(zero), layout.of_round)


def descend(
    rows: RowSource,
    door: Door[Any],
    layout: RoundsLayout,
    *,
    pace: Pace,
    start: Start = from_zero,
) -> Descended:
    """Return where W is after all rounds. From what the door lets out, and public numbers.

    Args:
        rows: private; handed to the door.
        door: which adds up, and lets sums out with noise.
        layout: of the rounds.
        pace: how long steps are.
        start: where to begin, given what the first round says.
    """
    settings = door.settings
    first = first_round(settings, layout)
    sums, *moments = door.sum(first, rows, share=layout.of_first)
    unit = first.moment_unit**2
    _, law, _ = settings.part(first, layout.of_first).laws(first)
    deviation = math.sqrt(law.variance) / unit
    [matrix] = first.matrices(*moments) / unit
    descent = Descent.start(
        (layout.kernel.features, layout.columns),
        rounds=layout.rounds,
        noise=noise_of_round(settings, layout) * layout.real_unit,
        pace=pace,
        edge=edge_of(deviation, len(matrix)),
    )
    precondition = Preconditioner.of(matrix, deviation, descent.longest)
    begin, gradient = start(_gradient(layout, sums), matrix, deviation)
    descent = replace(descent, weights=begin).next(precondition(gradient))
    for _ in range(1, layout.rounds):
        this = layout.at(Weights.of(descent.weights))
        [sums] = door.sum(this, rows, share=layout.of_round)
        descent = descent.next(precondition(_gradient(layout, sums)))
    return Descended(descent.weights, matrix, deviation)


def rows_counted(moment: float, noise: float, unit: float, hint: int | None) -> float:
    """Return about how many rows there are: by the constant's second moment, and by the hint.

    Args:
        moment: noisy Σ φ₀².
        noise: its standard deviation.
        unit: φ₀².
        hint: a public number of rows, if there is one; taken to be right within a half.
    """
    counted, deviation = moment / unit, noise / unit
    if hint is None:
        return max(counted, deviation)
    of_hint, of_count = 1 / (0.5 * hint) ** 2, 1 / deviation**2
    return max((hint * of_hint + counted * of_count) / (of_hint + of_count), 1.0)


def _gradient(layout: RoundsLayout, noisy: Integers) -> Floats:
    """Return Σ φ ⊗ q in real units, shape (r, C)."""
    return np.asarray(noisy[0].T * layout.real_unit)


def deviation(law: RoundedGaussian | DiscreteLaplace) -> float:
    """Return the standard deviation of a law.

    Args:
        law: of noise.
    """
    return math.sqrt(law.variance)


def whole(numbers: Floats) -> Integers:
    """Return whole numbers, as a file keeps them.

    Args:
        numbers: any shape.
    """
    return np.rint(numbers).astype(np.int64, order="C")
