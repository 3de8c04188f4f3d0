"""From noisy sums to coefficients: one eigenvalue problem. Post-processing, so it costs nothing.

W = (G₊ + λ)⁻¹·S, where G₊ is the noisy G without its negative eigenvalues: the true G has none.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet._typing import Floats
from discreet.memory.release import Released
from discreet.memory.settings import part_sigmas
from discreet.noise import RoundedGaussian
from discreet.regression.layout import Moments

# λ in units of σ_G·√r. The noise alone has eigenvalues up to √2·σ_G·√r; what is as small as that is
# noise, and what is shrunk more than needed costs little. Not tuned on anybody's data.
_RIDGE = 0.5


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients, and what is needed to say how noisy a prediction is. In real units.

    Attributes:
        weights: W, shape (heads, r, d_v).
        inverse: (G₊ + λ)⁻¹, shape (heads, r, r).
        ridge: λ.
        sums_sigma: standard deviation of the noise on an entry of S.
        moments_sigma: of the noise on a diagonal entry of G; zero if G is public.
    """

    weights: Floats
    inverse: Floats
    ridge: float
    sums_sigma: float
    moments_sigma: float

    @cached_property
    def _noise_power(self) -> Floats:
        """tr((G₊ + λ)⁻²), shape (heads, 1, 1)."""
        return np.asarray(np.sum(self.inverse**2, axis=(1, 2), keepdims=True))

    @cached_property
    def true_part(self) -> Floats:
        """How much of ‖w‖² is not noise, for each column, shape (heads, 1, d_v).

        The noise of S adds σ_S²·tr((G₊ + λ)⁻²) to it, and that of G a factor, of which the root is
        taken out: directions without any signal are clipped or shrunk, and add less.
        """
        squared = np.sum(self.weights**2, axis=1, keepdims=True)
        own = np.maximum(squared - self.sums_sigma**2 * self._noise_power, 0.0)
        factor = np.sqrt(1 + self.moments_sigma**2 * self._noise_power / 2)
        return np.asarray(own / np.maximum(squared, np.finfo(float).tiny) / factor)

    @property
    def true_lengths(self) -> Floats:
        """‖w‖² without its noise, shape (heads, 1, d_v)."""
        return np.asarray(np.sum(self.weights**2, axis=1, keepdims=True) * self.true_part)

    @classmethod
    def of(cls, released: Released[Moments]) -> "Solution":
        """Return the solution of a release."""
        layout = released.layout
        unit, count = layout.kernel.unit, layout.kernel.features
        deviations = [
            math.sqrt(RoundedGaussian(sigma=sigma).variance)
            for sigma in part_sigmas(layout, released.sigma)
        ]
        real = np.asarray(released.state.swapaxes(1, 2) * layout.real_unit, dtype=np.float64)
        if layout.moment is None:
            diagonal, upper = released.others
            moments = layout.matrices(diagonal, upper) / unit**2
            moments_sigma = deviations[1] / unit**2
            ridge = _RIDGE * moments_sigma * math.sqrt(count)
        else:
            rows = _rows(released, real[..., -1] / layout.real_tau)
            moments, moments_sigma = rows[:, None, None] * layout.moment[:-1, :-1], 0.0
            ridge = _RIDGE * deviations[0] * layout.real_unit / layout.value_norm * math.sqrt(count)
        values, vectors = np.linalg.eigh(moments)
        shrunk = vectors / (np.maximum(values, 0.0) + ridge)[:, None, :]
        inverse = shrunk @ vectors.swapaxes(1, 2)
        return cls(
            weights=inverse @ real[..., :-1],
            inverse=inverse,
            ridge=ridge,
            sums_sigma=deviations[0] * layout.real_unit,
            moments_sigma=moments_sigma,
        )


def _rows(released: Released[Moments], totals: Floats) -> Floats:
    """Return about how many rows there were in each head, shape (heads,), where G is public.

    If rows are like the public ones, Σ φ is their number times the public mean. Not further from
    the public figure that was given than by a factor of two.

    Args:
        released: with a public moment.
        totals: the noisy Σ φ, shape (heads, r).
    """
    layout = released.layout
    if released.rows is not None or layout.moment is None:
        return np.full(len(totals), float(max(released.rows or 1, 1)))
    mean = layout.moment[-1, :-1]
    estimate = totals @ mean / max(float(mean @ mean), np.finfo(float).tiny)
    hint = released.rows_hint
    least, most = (1.0, math.inf) if hint is None else (hint / 2, hint * 2.0)
    return np.asarray(np.clip(estimate, least, most))
