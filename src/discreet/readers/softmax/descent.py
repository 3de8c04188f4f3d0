"""From what rounds release to the next W: public, so it costs nothing.

The length of steps follows from the noise that may reach a logit, which is fixed in advance: steps
of κ/(s·√T), where s is the noise of one round, leave noise of κ after T rounds, whatever the rows
are. Where rows are many and alike, such steps would be too long: the preconditioner shortens them
along directions in which features have a second moment of more than λ. Second moments that their
own noise may have made are taken for small.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet._typing import Floats

# κ: half as much, or twice, costs little. More of it where features are few, below 256: with fewer
# directions to be lost in, a longer way is worth its noise.
_NOISE_OF_LOGITS, _MANY_FEATURES = 1.3, 256

# How much of the last direction is kept.
_MOMENTUM = 0.5

# λ, in units of one over the step: beyond it a step would overshoot.
_LONGEST = 32.0


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
        edge = noise * math.sqrt(2 * len(moments))
        large = values > max(edge, most)
        return cls(vectors[:, large], 1 - most / values[large])

    def __call__(self, gradient: Floats) -> Floats:
        """Return a gradient (r, C) that is shorter along these directions."""
        along = self.directions.T @ gradient
        return gradient - self.directions @ (self.missing[:, None] * along)


@dataclass(frozen=True, eq=False)
class Descent:
    """Where W is, and where it is heading. Public.

    Attributes:
        weights: W, shape (r, C).
        momentum: a mean of the gradients so far, shape (r, C).
        step: how long one step is, for a gradient of one.
    """

    weights: Floats
    momentum: Floats
    step: float

    @classmethod
    def start(cls, shape: tuple[int, int], *, rounds: int, noise: float) -> "Descent":
        """Return W = 0, before the first of some rounds.

        Args:
            shape: (r, C).
            rounds: T.
            noise: s, the standard deviation of an entry of each round's sums.
        """
        zero = np.zeros(shape)
        few = max(_MANY_FEATURES / shape[0], 1.0) ** 0.125
        return cls(zero, zero, _NOISE_OF_LOGITS * few / (noise * math.sqrt(rounds)))

    @property
    def longest(self) -> float:
        """λ: steps are shorter along directions with more than this second moment."""
        return _LONGEST / self.step

    def next(self, gradient: Floats) -> "Descent":
        """Return where W goes, given a round's noisy sums, preconditioned: shape (r, C)."""
        momentum = _MOMENTUM * self.momentum + (1 - _MOMENTUM) * gradient
        return Descent(self.weights - self.step * momentum, momentum, self.step)
