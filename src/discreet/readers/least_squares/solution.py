"""From noisy sums to coefficients, and to their errors: post-processing, so it costs nothing.

W = (G₊ + λ)⁻¹·S, where G₊ is the noisy G without its negative eigenvalues: the true G has none.
Where there are public rows, and the noisy sums say that the private rows are like them, G is mixed
with the second moments of the public rows, as far as the noise makes that worth while.

How far the noise on second moments has moved predictions is seen by adding as much noise again
(`Doubled`). G was released with noise N, of which nobody knows more than how large it is. Take Z of
that size, from a public hash. N + Z and N - Z are independent of each other, each with twice the
variance of N; so the solutions of G + Z and of G - Z are independent, too.

- *Variance*: half of the squared difference of their predictions is the variance of one of them. A
  prediction with half as much noise has half of it.
- *Bias*: noise that is clipped and inverted does not cancel out. The solutions with twice the noise
  differ from the released one about as much as that differs from the one without noise.

Nothing is linearised, and nobody has to know which directions are signal and which are noise.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet._typing import Floats, Integers
from discreet.features.fourier import public_normals
from discreet.noise import RoundedGaussian
from discreet.readers.attention.reader import WITHIN
from discreet.readers.least_squares.layout import Moments
from discreet.sums.release import Released
from discreet.sums.settings import part_sigmas

# Beyond so many features λ does not grow: eigenvalues of the signal do not, either.
_MOST_ROOT = 32.0

# Second moments of public rows count as much as the noisy ones at so many rows for each unit of
# noise, and not at all where the mean of rows differs from theirs by more than this (squared).
_ROWS_FOR_NOISE, _UNLIKE = 4_600.0, 0.1

# How many times less than values differ the noise should be, where there are no rows.
_QUIET = 2.0

# λ does not fall below this share of itself where G is mostly public: S has noise, too.
_LEAST_RIDGE = 0.35


@dataclass(frozen=True, eq=False)
class NoisySums:
    """What a solution is found from: of a release, or rehearsed (`rehearsal`).

    Attributes:
        layout: the public settings.
        state: noisy sums, in lattice units, shape (heads, d_v + 1, r).
        others: noisy second moments, if any: diagonal, and what is above it.
        sigma: of the noise on the sums, in lattice units.
        rows: their number, where it is public.
        rows_hint: a public figure, if there is one.
    """

    layout: Moments
    state: NDArray[Any]
    others: tuple[NDArray[Any], ...]
    sigma: float
    rows: int | None
    rows_hint: int | None


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients, and what is needed to say how noisy a prediction is. In real units.

    Attributes:
        weights: W, shape (heads, r, d_v).
        mean: what predictions are shrunk towards, shape (heads, 1, d_v): they are φ·W + mean.
        inverse: (G₊ + λ)⁻¹, shape (heads, r, r).
        ridge: λ of each feature, shape (heads, r).
        own: how much of G is from the private rows, shape (heads,); the rest is public.
        sums_sigma: standard deviation of the noise on an entry of S.
        centred_sigma: of that on an entry of Σ φ⊗(v - mean), shape (heads, 1, d_v).
        moments_sigma: of the noise on a diagonal entry of G, shape (heads,); zero if G is public.
    """

    weights: Floats
    mean: Floats
    inverse: Floats
    ridge: Floats
    own: Floats
    sums_sigma: float
    centred_sigma: Floats
    moments_sigma: Floats

    @classmethod
    def of(cls, released: Released[Moments] | NoisySums) -> "Solution":
        """Return the solution of a release, or of a rehearsed one.

        Args:
            released: noisy sums, or rehearsed ones.
        """
        layout = released.layout
        sigmas = part_sigmas(layout, released.sigma)
        deviations = [math.sqrt(RoundedGaussian(sigma=sigma).variance) for sigma in sigmas]
        sums_sigma = deviations[0] * layout.real_unit
        sums = np.asarray(released.state.swapaxes(1, 2) * layout.real_unit, dtype=np.float64)
        noise = (
            deviations[1] / layout.moment_unit**2
            if layout.share
            else sums_sigma / layout.value_norm
        )
        totals = sums[..., -1] / layout.real_tau
        rows = _rows(released, totals)
        own = _own_part(layout, totals, rows, sums_sigma, noise)
        mean = _mean(layout, sums[..., :-1], totals, sums_sigma)
        centred = sums[..., :-1] - totals[..., None] * mean
        moments = np.zeros((layout.head_count, layout.kernel.features, layout.kernel.features))
        if layout.share:
            moments += (
                own[:, None, None] * layout.matrices(*released.others) / layout.moment_unit**2
            )
        if not np.all(own == 1):
            moments += ((1 - own) * rows)[:, None, None] * _public_moment(layout)
        ridge = np.maximum(own, _LEAST_RIDGE)[:, None] * _ridge(layout, noise)
        ridge = _quieter(layout, ridge, moments, centred, sums_sigma)
        inverse = _inverse(moments, ridge)
        return cls(
            weights=inverse @ centred,
            mean=mean,
            inverse=inverse,
            ridge=ridge,
            own=own,
            sums_sigma=sums_sigma,
            centred_sigma=sums_sigma * np.sqrt(1 + (mean / layout.real_tau) ** 2),
            moments_sigma=own * noise if layout.share else 0 * own,
        )


def _mean(layout: Moments, sums: Floats, totals: Floats, sigma: float) -> Floats:
    """Return the mean of all values, about, shape (heads, 1, d_v); zero where nothing is centred.

    Σ φ⊗v·T/‖T‖², T = Σ φ: what all rows have in common points along T. The noise in ‖T‖² is taken
    out, as far as half of it.
    """
    if not layout.centred:
        return np.zeros((len(sums), 1, sums.shape[-1]))
    squared = np.sum(totals * totals, axis=1)
    noise = totals.shape[1] * (sigma / layout.real_tau) ** 2
    true = np.maximum(np.maximum(squared - noise, squared / 2), np.finfo(float).tiny)
    mean = np.einsum("hrc,hr->hc", sums, totals) / true[:, None]
    return np.asarray(np.clip(mean, -layout.value_norm, layout.value_norm)[:, None])


def _ridge(layout: Moments, noise: float) -> Floats:
    """Return λ of each feature, shape (r,): the layout's ridge, in units of σ·√(block's size)."""
    roots = [min(math.sqrt(size), _MOST_ROOT) for size in layout.kernel.block_sizes]
    return np.asarray(layout.ridge * noise * np.repeat(roots, layout.kernel.block_sizes))


def _quieter(layout: Moments, ridge: Floats, moments: Floats, sums: Floats, sigma: float) -> Floats:
    """Return λ of each feature, larger in later blocks where values differ by little.

    What the noise of S does to a prediction through a block without rows, σ_S·‖φ‖/λ, should be a
    fraction of what the first block (the lines) makes of the values: bounds on values may be many
    times wider than values differ. The first block has rows in all directions, and needs no more.

    Args:
        layout: with the sizes of blocks.
        ridge: shape (heads, r).
        moments: G, shape (heads, r, r).
        sums: S, centred, shape (heads, r, d_v).
        sigma: of the noise on an entry of S.
    """
    first, *others = layout.kernel.block_sizes
    if not others or not layout.centred:
        return ridge
    lines = moments[:, :first, :first]
    weights = _inverse(lines, ridge[:, :first]) @ sums[:, :first]
    explained = np.einsum("hrc,hrs,hsc->h", weights, lines, weights) / sums.shape[-1]
    rows = np.maximum(np.trace(lines, axis1=1, axis2=2), 1.0)
    spread = np.sqrt(np.maximum(explained / rows, (sigma / rows) ** 2))
    quiet = np.maximum(ridge, (_QUIET * sigma / spread)[:, None])
    return np.concatenate([ridge[:, :first], quiet[:, first:]], axis=1)


def _inverse(moments: Floats, ridge: Floats) -> Floats:
    """Return (G₊ + λ)⁻¹, G₊ without the negative eigenvalues of G."""
    values, vectors = np.linalg.eigh(moments)
    if np.all(ridge == ridge[:, :1]):
        shrunk = vectors / (np.maximum(values, 0.0) + ridge[:, :1])[:, None, :]
        return np.asarray(shrunk @ vectors.swapaxes(1, 2))
    clipped = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2)
    return np.linalg.inv(clipped + ridge[:, None, :] * np.eye(ridge.shape[1]))


def _rows(released: Released[Moments] | NoisySums, totals: Floats) -> Floats:
    """Return about how many rows there were in each head, shape (heads,).

    The public figure, if there is one and no public moment to do better with. If rows are like the
    public ones, Σ φ is their number times the public mean; not further from the public figure than
    by a factor of two.

    Args:
        released: the noisy sums.
        totals: the noisy Σ φ, shape (heads, r).
    """
    moment, hint = released.layout.moment, released.rows_hint
    if released.rows is not None or moment is None:
        return np.full(len(totals), float(max(released.rows or hint or 1, 1)))
    mean = moment[-1, :-1]
    estimate = totals @ mean / max(float(mean @ mean), np.finfo(float).tiny)
    least, most = (1.0, math.inf) if hint is None else (hint / 2, hint * 2.0)
    return np.asarray(np.clip(estimate, least, most))


def _public_moment(layout: Moments) -> Floats:
    """Return the mean of φ ⊗ φ over public rows; without any, that of φ that point everywhere."""
    if layout.moment is not None:
        return layout.moment[:-1, :-1]
    count = layout.kernel.features
    return np.eye(count) / count


def _own_part(
    layout: Moments, totals: Floats, rows: Floats, sums_sigma: float, noise: float
) -> Floats:
    """Return how much the noisy second moments count, beside those of public rows, shape (heads,).

    Args:
        layout: with or without a public moment.
        totals: the noisy Σ φ, shape (heads, r).
        rows: about how many, shape (heads,).
        sums_sigma: of the noise on an entry of S.
        noise: of that on a diagonal entry of G.
    """
    if not layout.share:
        return np.zeros(len(totals))
    if layout.moment is None:
        return np.ones(len(totals))
    mean = layout.moment[-1, :-1]
    apart = np.sum((totals / rows[:, None] - mean) ** 2, axis=1)
    by_noise = totals.shape[1] * (sums_sigma / layout.real_tau / rows) ** 2
    unlike = (apart - by_noise) / max(float(mean @ mean), np.finfo(float).tiny)
    return np.where(unlike > _UNLIKE, 1.0, rows / (rows + _ROWS_FOR_NOISE * noise))


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
