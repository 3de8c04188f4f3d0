"""Composition of privacy loss distributions, safe at large counts and small δ.

A mechanism's privacy loss is rounded to a grid by dp-accounting's connect-the-dots (Doroshenko et
al., PETS 2022: the least pair on the grid that still dominates), losses add under composition, and
their law is a convolution, done by FFT. A plain FFT has an *absolute* error of some 1e-16 times
the count in every entry, which at δ = 1e-12 and a hundred thousand mechanisms is larger than the
answer: it can report an ε that is too small. So the losses are tilted first, by weights e^(θ·loss)
that move the law to where the answer lies; errors are then relative to the answer, and a bound on
them is charged to δ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dp_accounting.pld import pld_pmf
from numpy.typing import NDArray
from scipy import fft, optimize, signal, special

from discreet._typing import Floats
from discreet.accounting.events import Mechanism

# How many grid steps make one typical loss. A mixture needs more, because its losses fall between
# the grid points; a single kind has its extreme losses, which matter most, on the grid.
_STEPS, _MOST_STEPS, _VARIANCE_PARTS = 64, 4096, 2**17
_COARSEST_STEP = 0.005

# Mass of the tilted law that may lie outside the window of the convolution.
_OUTSIDE = 1e-16

# Grid points of all kinds of mechanisms together. They take some hundred bytes each, and the
# largest convolution that fits some ten seconds.
_MOST_POINTS = 2**24

# Masses, and K, are good to this part of each mechanism, and all that follows to _SUMS_ERROR.
_MASS_ERROR, _SUMS_ERROR = 1e-13, 1e-9


@dataclass(frozen=True)
class _Loss:
    """The loss of one mechanism, `count` times: masses on (lowest + i)·step, and at infinity."""

    masses: Floats
    lowest: int
    infinite: float
    count: int
    step: float

    @property
    def losses(self) -> Floats:
        return grid_points(self.lowest, len(self.masses), self.step)

    def log_moment(self, tilt: float) -> float:
        """Return ln E[e^(tilt·loss); loss finite] of all `count` together."""
        return self.count * float(special.logsumexp(tilt * self.losses, b=self.masses))

    def tilted(self, tilt: float) -> Floats:
        """Return the masses weighted by e^(tilt·loss) and normalised."""
        exponents = tilt * self.losses
        weighted = self.masses * np.exp(exponents - exponents.max())
        return np.asarray(weighted / weighted.sum())

    def tilted_mean(self, tilt: float) -> float:
        """Return the mean of all `count` losses together under the tilted law."""
        return self.count * float(self.tilted(tilt) @ self.losses)


def grid_points(lowest: int, count: int, step: float) -> Floats:
    """Return `count` multiples of `step`, from lowest·step on."""
    return np.asarray((lowest + np.arange(count)) * step, dtype=np.float64)


def epsilon_on_grid(mechanisms: Sequence[tuple[Mechanism, int]], delta: float) -> float:
    """Return ε by the convolution, infinite if it would be too large or not precise enough."""
    step = _grid_step(mechanisms)
    charged = _SUMS_ERROR + _MASS_ERROR * sum(count for _, count in mechanisms)
    reach = sum(2 * _top(mechanism, step) + 1 for mechanism, _ in mechanisms)
    if charged > 0.5 or reach > _MOST_POINTS:
        return math.inf
    parts = [_discretise(mechanism, count, step) for mechanism, count in mechanisms]
    infinite = -math.expm1(sum(part.count * math.log1p(-part.infinite) for part in parts))
    if infinite >= delta:
        return math.inf
    tilt = _best_tilt(parts, delta - infinite)
    log_moment = sum(part.log_moment(tilt) for part in parts)
    window = _window(parts, tilt)
    if len(parts) * _transform_size(parts, window) > _MOST_POINTS:
        return math.inf
    masses, numerical_error = _convolve(parts, tilt, window)

    # From tilted masses back to masses, in logarithms: the factor alone may overflow where the
    # tilted mass is zero. Masses above one are errors far below the answer, which never reads them.
    losses = grid_points(window[0], len(masses), step)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(masses, 0.0)) + log_moment - tilt * losses
    untilted = np.exp(np.minimum(logs, 0.0))

    # An error of η in the tilted masses above ε changes δ(ε) by at most η·e^(log_moment - tilt·ε),
    # which falls with ε: the allowance at the first answer covers the second, which is larger.
    left = (delta - infinite) * (1 - charged)
    first = _epsilon_at(losses, untilted, left)
    allowance = numerical_error * math.exp(min(log_moment - tilt * first, 700.0))
    if allowance >= left:
        return math.inf
    # Finite losses never exceed their largest values (of a Gaussian: but for `infinite`).
    largest = math.fsum(count * mechanism.largest_loss for mechanism, count in mechanisms)
    return min(_epsilon_at(losses, untilted, left - allowance), largest)


def _epsilon_at(losses: Floats, masses: Floats, delta: float) -> float:
    """Return the smallest ε ≥ 0 with Σ_{loss > ε} (1 - e^(ε - loss))·mass ≤ delta."""
    if delta <= 0:
        return math.inf
    # above[j] = Σ_{i≥j} mass and damped[j] = Σ_{i≥j} mass·e^(loss_j - loss_i), so that for ε
    # between the losses j-1 and j the sum is above[j] - e^(ε - loss_j)·damped[j].
    decay = math.exp(losses[0] - losses[1]) if len(losses) > 1 else 1.0
    above = np.cumsum(masses[::-1])[::-1]
    damped = signal.lfilter([1.0], [1.0, -decay], masses[::-1])[::-1]
    enough = np.flatnonzero(np.append(above[1:] - decay * damped[1:], 0.0) <= delta)
    j = int(enough[0])
    # Below the window some mass is missing, so nothing smaller than its lower end is an answer.
    floor = max(0.0, float(losses[0]))
    if above[j] <= delta:
        return floor
    return max(floor, float(losses[j] + math.log((above[j] - delta) / damped[j])))


def _grid_step(mechanisms: Sequence[tuple[Mechanism, int]]) -> float:
    """Return the grid step: a fixed fraction of the root mean square loss.

    For one kind of mechanism it does not depend on how many there are, so that an n-fold
    composition is computed on the same grid as an (n-1)-fold one. In a mixture, rounding a loss of
    size s to steps of h adds at most min(h²/4, h·s) to its variance; h is the largest step that
    adds a negligible part.
    """
    if len(mechanisms) == 1:
        spread = mechanisms[0][0].spread
        # A hair more than the fraction, so that the largest loss is not above the last step.
        steps = min(max(_STEPS, math.ceil(spread / _COARSEST_STEP)), _MOST_STEPS)
        return spread / steps * (1 + 2.0**-50)
    variance = sum(count * mechanism.spread**2 for mechanism, count in mechanisms)

    def added(step: float) -> float:
        return sum(
            count * min(step**2 / 4, step * mechanism.spread) for mechanism, count in mechanisms
        )

    step = max(_COARSEST_STEP, math.sqrt(variance) / _MOST_STEPS)
    while added(step) > variance / _VARIANCE_PARTS:
        step /= 1.25
    return step


def _top(mechanism: Mechanism, step: float) -> int:
    """Return how many steps up and down the mechanism's losses reach."""
    return max(1, math.ceil(mechanism.largest_loss / step))


def _discretise(mechanism: Mechanism, count: int, step: float) -> _Loss:
    """Return the mechanism's privacy loss on the grid, by pessimistic connect-the-dots."""
    top = _top(mechanism, step)
    deltas = np.clip(mechanism.hockey_stick(grid_points(-top, 2 * top + 1, step)), 0.0, 1.0)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -top, top, deltas)
    dense = pmf.to_dense_pmf()
    # dp-accounting has no public way to read the masses that it computed.
    masses, infinite = np.asarray(dense._probs), float(dense._infinity_mass)  # noqa: SLF001
    return _Loss(masses, -top, infinite, count, step)


def _best_tilt(parts: Sequence[_Loss], delta: float) -> float:
    """Return the θ ≥ 0 that gives the best Chernoff bound on δ(ε), at the ε where it is δ.

    (1 - e^-x)₊ ≤ θ^θ/(1+θ)^(1+θ)·e^(θx) gives ln δ(ε) ≤ K(θ) - θε + θ·ln θ - (1+θ)·ln(1+θ). It is
    least at ε = K'(θ) + ln(θ/(1+θ)), where it equals K(θ) - θ·K'(θ) - ln(1+θ), which falls with θ.
    Any θ gives a valid answer; this one puts the tilted law where the answer is.
    """

    def excess(tilt: float) -> float:
        moment = sum(part.log_moment(tilt) for part in parts)
        mean = sum(part.tilted_mean(tilt) for part in parts)
        return moment - tilt * mean - math.log1p(tilt) - math.log(delta)

    largest = 600 / max(float(np.ptp(part.losses)) for part in parts)  # e^600 still fits a float
    if excess(largest) >= 0:
        return largest
    return float(optimize.brentq(excess, 0.0, largest, rtol=1e-3)) if excess(0.0) > 0 else 0.0


def _convolve(parts: Sequence[_Loss], tilt: float, window: tuple[int, int]) -> tuple[Floats, float]:
    """Return the tilted law of the total loss: its masses in the window, a bound on the L1 error.

    What lies outside the window is wrapped around into it: missing in one place, too much in
    another.
    """
    lowest, highest = window
    size = _transform_size(parts, window)
    spectra = [fft.rfft(part.tilted(tilt), size) for part in parts]
    counts = [part.count for part in parts]
    spectrum = np.prod([z**n for z, n in zip(spectra, counts, strict=True)], axis=0)
    start = lowest - sum(part.count * part.lowest for part in parts)
    masses = np.roll(fft.irfft(spectrum, size), -(start % size))
    error = _fft_error(spectra, counts, size)
    return masses[: highest - lowest + 1], error + 4 * _OUTSIDE


def _transform_size(parts: Sequence[_Loss], window: tuple[int, int]) -> int:
    """Return a length that holds the window and each part, and is quick to transform."""
    lowest, highest = window
    least = max(highest - lowest + 1, *(len(part.masses) for part in parts))
    return int(fft.next_fast_len(least, real=True))


def _fft_error(
    spectra: Sequence[NDArray[np.complex128]], counts: Sequence[int], size: int
) -> float:
    """Return a bound on the L1 error of a product of powers of spectra, transformed back.

    Each entry of the FFT of masses of sum one is good to e = 8·2^-52·log2(N), rounding of the power
    included. Changing the factors one by one, the product's entries change by at most
    Σ_i n_i·e·Π_j (|z_j| + e)^n_j / (|z_i| + e); by Parseval the L2 error of the masses is the root
    mean square of that, and L1 ≤ √N·L2. The transform back adds as much as one more factor.
    """
    entry = 8 * float(np.finfo(np.float64).eps) * math.log2(size)
    logs = [np.log(np.abs(z) + entry) for z in spectra]
    whole = sum(n * log for n, log in zip(counts, logs, strict=True))
    per_entry = sum(n * np.exp(whole - log) for n, log in zip(counts, logs, strict=True))
    per_entry = per_entry + np.exp(whole)
    # Twice the half spectrum of a real transform holds at least the whole.
    return entry * math.sqrt(2 * float(np.sum(per_entry**2)))


def _window(parts: Sequence[_Loss], tilt: float) -> tuple[int, int]:
    """Return grid indices that hold all but _OUTSIDE of the tilted total loss (Chernoff)."""
    step = parts[0].step
    base = sum(part.log_moment(tilt) for part in parts)
    variance = sum(
        part.count
        * float(part.tilted(tilt) @ (part.losses - part.tilted_mean(tilt) / part.count) ** 2)
        for part in parts
    )
    needed = math.log(2 / _OUTSIDE)
    natural = math.sqrt(2 * needed / max(variance, step**2))
    lowest = sum(part.count * part.lowest for part in parts)
    highest = sum(part.count * (part.lowest + len(part.masses) - 1) for part in parts)
    for order in natural * 2.0 ** np.arange(-6, 7):
        up, down = (
            (sum(part.log_moment(tilt + sign * order) for part in parts) - base + needed) / order
            for sign in (1, -1)
        )
        highest = min(highest, math.ceil(up / step))
        lowest = max(lowest, math.floor(-down / step))
    return lowest, max(highest, lowest)
