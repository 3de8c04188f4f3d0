"""What counts of right and wrong guesses tell of ε, with confidence. Pure functions of counts.

A test that looks at a release and says "yes" or "no" has two rates: of false alarms, when the unit
was not there, and of hits, when it was. A promise allows only some pairs of them, so a pair that is
outside, with confidence, refutes it; and the least ε whose promise allows what was seen is a lower
bound. `docs/audit.md` says what that can show, and what it cannot.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from discreet import _validate
from discreet.accounting.gaussian import LARGEST_EPSILON, LARGEST_MU


def at_least(count: int, trials: int, *, doubt: float) -> float:
    """Return a share that the true one is above, but for this doubt (Clopper and Pearson).

    Args:
        count: how often it happened.
        trials: out of so many.
        doubt: the probability of being wrong.
    """
    return float(special.betaincinv(count, trials - count + 1, doubt)) if count else 0.0


def at_most(count: int, trials: int, *, doubt: float) -> float:
    """Return a share that the true one is below, but for this doubt (Clopper and Pearson).

    Args:
        count: how often it happened.
        trials: out of so many.
        doubt: the probability of being wrong.
    """
    return 1 - at_least(trials - count, trials, doubt=doubt)


def interval(count: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return between which shares the true one lies (Clopper and Pearson).

    Args:
        count: how often it happened.
        trials: out of so many.
        confidence: how often that is right, at least.
    """
    half = (1 - confidence) / 2
    return at_least(count, trials, doubt=half), at_most(count, trials, doubt=half)


@dataclass(frozen=True)
class Test:
    """How often one test said "yes".

    Attributes:
        alarms: of releases without the unit.
        without: so many releases there were without it.
        hits: of releases with the unit.
        with_unit: so many releases there were with it.
    """

    alarms: int
    without: int
    hits: int
    with_unit: int

    def __post_init__(self) -> None:
        for part, whole in (("alarms", "without"), ("hits", "with_unit")):
            most = _validate.whole(whole, getattr(self, whole), at_least=1)
            _validate.whole(part, getattr(self, part), at_least=0, at_most=most)

    @property
    def false_alarms(self) -> float:
        """The share of releases without the unit of which it said "yes"."""
        return self.alarms / self.without

    @property
    def found(self) -> float:
        """The share of releases with the unit of which it said "yes"."""
        return self.hits / self.with_unit

    def surely(self, doubt: float) -> "Rates":
        """Return rates that the true ones are no better for a promise than, but for this doubt.

        Args:
            doubt: the probability that either is wrong.
        """
        return Rates(
            at_most(self.alarms, self.without, doubt=doubt / 2),
            at_least(self.hits, self.with_unit, doubt=doubt / 2),
        )


@dataclass(frozen=True)
class Rates:
    """A pair of rates of one test.

    Attributes:
        false_alarms: the share of releases without the unit of which it says "yes".
        found: the share of releases with the unit of which it says "yes".
    """

    false_alarms: float
    found: float

    @property
    def mu(self) -> float:
        """The least μ whose Gaussian mechanism allows this: Φ⁻¹(found) - Φ⁻¹(false alarms).

        Dong, Roth and Su 2022, theorem 2.7. At least 0, and at most what accounts can hold.
        """
        if not self.false_alarms < self.found:
            return 0.0
        apart = special.ndtri(self.found) - special.ndtri(self.false_alarms)
        return float(np.clip(apart, 0.0, LARGEST_MU))

    def epsilon(self, delta: float) -> float:
        """Return the least ε for which (ε, δ) allows this, whatever the mechanism is.

        found ≤ e^ε·(false alarms) + δ, and 1 - false alarms ≤ e^ε·(1 - found) + δ.

        Args:
            delta: δ.
        """
        pairs = ((self.found, self.false_alarms), (1 - self.false_alarms, 1 - self.found))
        return max(_log_ratio(above - delta, below) for above, below in pairs)


def _log_ratio(above: float, below: float) -> float:
    """Return ln(above/below), from 0 up to the largest ε that accounts can hold."""
    if above <= below or above <= 0:
        return 0.0
    return min(math.log(above / below), LARGEST_EPSILON) if below > 0 else LARGEST_EPSILON


def mu_of_gap(gap: float) -> float:
    """Return the least μ that allows a test to find so many more than it raises false alarms.

    A Gaussian mechanism allows a gap of 2Φ(μ/2) - 1, and no test has a larger one. Where the same
    noise Z is added whether the unit is there or not, and the unit moves the released number by d,
    the test that says "yes" above the middle has the gap P(|Z| ≤ d/2).

    Args:
        gap: the share of hits less that of false alarms.
    """
    return float(min(2 * special.ndtri((1 + gap) / 2), LARGEST_MU)) if gap > 0 else 0.0


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return ε of a Gaussian mechanism (Balle and Wang 2018, theorem 8).

    δ(ε) = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ), solved here and not by `discreet.accounting`: what an
    audit looks at, its account included, must not be what it is measured by.

    Args:
        mu: its sensitivity over σ.
        delta: δ, above 0.
    """

    def excess(epsilon: float) -> float:
        above, below = (special.log_ndtr(half - epsilon / mu) for half in (mu / 2, -mu / 2))
        ratio = min(epsilon + below - above, -1e-300)  # of the two terms, as a logarithm
        return float(above + np.log(-np.expm1(ratio))) - math.log(delta)

    # At ε = 0 the curve is 2Φ(μ/2) - 1. Beyond the largest ε is more than any account can hold.
    if mu <= 0 or special.erf(mu / math.sqrt(8)) <= delta:
        return 0.0
    if excess(LARGEST_EPSILON) >= 0:
        return LARGEST_EPSILON
    return float(optimize.brentq(excess, 0.0, LARGEST_EPSILON, xtol=1e-12, rtol=1e-12))


# --- many canaries in one release -----------------------------------------------------------------


@dataclass(frozen=True)
class Guesses:
    """Guesses about canaries, each of which was put in or left out by a fair coin of its own.

    Attributes:
        canaries: how many there were.
        made: about how many of them something was said: the clearest ones.
        right: how many of these guesses were right.
    """

    canaries: int
    made: int
    right: int

    def __post_init__(self) -> None:
        _validate.whole("canaries", self.canaries, at_least=1)
        _validate.whole("made", self.made, at_least=1, at_most=self.canaries)
        _validate.whole("right", self.right, at_least=0, at_most=self.made)

    def epsilon(self, delta: float, *, doubt: float) -> float:
        """Return a lower bound on ε, whatever the mechanism is.

        With ε alone the number of right guesses is at most binomial with e^ε/(1 + e^ε); δ adds what
        Steinke, Nasr and Jagielski 2023, theorem 5.2, have for it.

        Args:
            delta: δ.
            doubt: the probability of being wrong.
        """
        return _largest_refuted(lambda epsilon: self._chance(epsilon, delta) <= doubt, 20.0)

    def _chance(self, epsilon: float, delta: float) -> float:
        """Return a bound on the probability of so many right guesses under (ε, δ)."""
        law = stats.binom(self.made, special.expit(epsilon))
        below = np.cumsum(law.pmf(self.right - np.arange(1, self.right + 1)))
        steepest = np.max(below / np.arange(1, self.right + 1), initial=0.0)
        return float(law.sf(self.right - 1) + 2 * self.canaries * delta * steepest)

    def mu(self, *, doubt: float) -> float:
        """Return a lower bound on μ of a Gaussian mechanism.

        By the recursion of Mahloujifar, Melis and Chaudhuri 2024: the shares of outcomes with at
        least i right guesses, whose guess is right (r) or wrong (w), cannot grow faster towards
        fewer right guesses than the trade-off curve lets them.

        Args:
            doubt: the probability of being wrong.
        """
        return _largest_refuted(lambda mu: self._refutes(mu, doubt), 20.0)

    def _refutes(self, mu: float, doubt: float) -> bool:
        wrong_share = (self.made - self.right) / self.canaries
        right, wrong = doubt * self.right / self.canaries, doubt * wrong_share
        for fewer in range(self.right - 1, -1, -1):
            # At this many right answers, wrong guesses are at least as likely as the curve says.
            grown = max(wrong, float(special.ndtr(special.ndtri(min(right, 1.0)) - mu)))
            right += fewer / (self.made - fewer) * (grown - wrong)
            wrong = grown
            if right + wrong > self.made / self.canaries:
                return True
        return False


def _largest_refuted(refuted: Callable[[float], bool], highest: float) -> float:
    """Return the largest number that is refuted, up to 1e-4; 0 if none is."""
    low, high = 0.0, highest
    if not refuted(0.0):
        return 0.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
