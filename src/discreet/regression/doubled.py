"""How far the noise on second moments has moved predictions: seen by adding as much of it again.

G was released with noise N, of which nobody knows more than how large it is. Take Z of that size,
from a public hash. N + Z and N - Z are independent of each other, each with twice the variance of
N; so are the solutions of G + Z and of G - Z.

- *By chance*: half of the squared difference of their predictions is the variance of one of them. A
  prediction with half as much noise has half of it.
- *On average*: noise that is clipped and inverted does not cancel out. Solutions with more of it
  are off from the released one as that is off from the one without noise, about.

Nothing is linearised, and no direction has to be known for signal or noise. Post-processing.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from discreet._typing import Floats, Integers
from discreet.kernels.frequencies import public_normals
from discreet.memory.reader import WITHIN
from discreet.memory.release import Released
from discreet.memory.settings import part_sigmas
from discreet.regression.layout import Moments
from discreet.regression.solution import Solution

# Each is two solutions. Student's quantile over the normal one: few pairs know a spread roughly.
_PAIRS = 8
_WIDENING = float(special.stdtrit(_PAIRS, 0.975)) / WITHIN

# From what a bias grows by to the bias itself: with twice the variance it is √2 times as large if
# it goes with the noise (where that is clipped), and twice if it goes with its square (where it is
# inverted): so between √2 + 1 times and once. The geometric mean of both.
_FROM_DOUBLED = math.sqrt(math.sqrt(2) + 1)


@dataclass(frozen=True, eq=False)
class Doubled:
    """What predictions with twice the noise on second moments tell about the released ones.

    The variance of a prediction φ·W is the mean of (φ·apart)² over pairs, and its bias is φ·bias.

    Attributes:
        apart: half the difference of two solutions, times what few pairs need: shape
            (heads, r, pairs, d_v).
        bias: the mean of all of them less the released one, and more: shape (heads, r, d_v).
    """

    apart: Floats
    bias: Floats

    @classmethod
    def of(cls, released: Released[Moments], solution: Solution) -> "Doubled":
        """Return it for a release and its solution; all zero if there are no noisy moments."""
        apart, means = [], []
        for pair in range(_PAIRS if released.layout.share else 0):
            more = _as_much_again(released, pair)
            plus, minus = (_solved(released, more, sign) for sign in (1, -1))
            apart.append((plus - minus) / 2)
            means.append((plus + minus) / 2)
        if not apart:
            return cls(np.zeros_like(solution.weights)[:, :, None], 0 * solution.weights)
        return cls(
            _WIDENING * np.stack(apart, axis=2),
            _FROM_DOUBLED * (np.mean(means, axis=0) - solution.weights),
        )


def _as_much_again(released: Released[Moments], pair: int) -> list[Integers]:
    """Return Z, for the diagonal and for what is above it."""
    _, *sigmas = part_sigmas(released.layout, released.sigma)
    made = []
    for part, (noisy, sigma) in enumerate(zip(released.others, sigmas, strict=True)):
        normal = public_normals(f"discreet doubled noise {pair} {part}", noisy.size)
        made.append(np.rint(normal * sigma).astype(np.int64).reshape(noisy.shape))
    return made


def _solved(released: Released[Moments], more: list[Integers], sign: int) -> Floats:
    """Return W with more noise."""
    others = tuple(part + sign * each for part, each in zip(released.others, more, strict=True))
    return Solution.of(replace(released, others=others)).weights
