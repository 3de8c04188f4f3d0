"""What an audit found, and how it reads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from discreet._typing import Floats
from discreet.accounting.gaussian import LARGEST_EPSILON
from discreet.audit import bounds
from discreet.audit.bounds import Test
from discreet.audit.experiments import Draw
from discreet.privacy import Guarantee, rounded_down

# A claim is met but for rounding of the account.
_ROUNDING = 1 + 1e-9


def percent(confidence: float) -> str:
    """Return a share in per cent, with all its digits: 99.9% is not 100%.

    Args:
        confidence: from 0 to 1.
    """
    return f"{100 * confidence:.10g}%"


@dataclass(frozen=True)
class Noise:
    """How large the noise of all released numbers is, beside what is claimed.

    Attributes:
        ratio: of standard deviations; 1 if it is as claimed.
        at_most: it is surely not larger; infinite where so few numbers do not tell.
        numbers: of so many draws.
    """

    ratio: float
    at_most: float
    numbers: int

    @classmethod
    def of(cls, draws: Sequence[Draw], doubt: float) -> "Noise | None":
        """Return the noise in releases; None if none has numbers of known noise.

        How much squares vary is that of the laws that are claimed, at another scale: where numbers
        are few, what is seen of it goes with what is seen of the size, and would call noise small.

        Args:
            draws: all of them.
            doubt: the probability that it is larger than `at_most`.
        """
        numbers = sum(each.numbers for each in draws)
        if not numbers:
            return None
        square = math.fsum(each.squares for each in draws) / numbers
        fourth = math.fsum(each.fourths for each in draws) / numbers
        # Of the mean of squares, in units of their true mean: nearly normal, with a thinner tail
        # below.
        error = math.sqrt((fourth - 1) / numbers)
        least = 1 + float(special.ndtri(doubt)) * error
        most = math.sqrt(square / least) if least > 0 else math.inf
        return cls(math.sqrt(square), most, numbers)


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found. `str` for people, `to_dict` for programs.

    Attributes:
        name: of what was audited.
        claimed: what is promised.
        claimed_mu: sensitivity over σ, if what is promised is one Gaussian mechanism; else None.
        epsilon_lower: ε is at least this, with so much confidence, at the δ that is claimed.
        confidence: how often an audit says nothing wrong, at least.
        test: how often the test was right, of releases that it was not chosen by.
        builds: how many releases were made in all.
        seconds: how long that took.
        distance: how far apart the two exact releases are, over what the claim allows; None where
            that is not known. Below one, the audit cannot reach what is claimed; of 0, nothing was
            tested.
        direction: "known" if the exact releases are, else "learned".
        noise: how large the noise is beside the claim; None where that is not known.
        scores: of the releases without the unit and with it, for pictures.
        reasons: what refutes the promise whatever the numbers are; none as a rule.
        learned_for: why the direction had to be learned; empty if it is known.
    """

    name: str
    claimed: Guarantee
    claimed_mu: float | None
    epsilon_lower: float
    confidence: float
    test: Test
    builds: int
    seconds: float
    distance: float | None
    direction: str
    noise: Noise | None
    scores: tuple[Floats, Floats] = field(repr=False)
    reasons: tuple[str, ...] = ()
    learned_for: str = ""

    @property
    def holds(self) -> bool:
        """Whether what was measured is within what is promised. False refutes the promise."""
        return not self.reasons and self.epsilon_lower <= self.claimed.epsilon * _ROUNDING

    @property
    def tested(self) -> bool:
        """Whether the two data sets differ in what is released, as far as that is known.

        If not, that it `holds` says nothing.
        """
        return self.distance != 0 or not self.holds

    @property
    def share(self) -> float:
        """How much of the ε that is promised was measured."""
        return self.epsilon_lower / self.claimed.epsilon if self.claimed.epsilon else math.inf

    def to_dict(self) -> dict[str, object]:
        """Return what was found under its names, ready for JSON."""
        most = math.inf if self.noise is None else self.noise.at_most
        return {
            "name": self.name,
            "epsilon_lower": self.epsilon_lower,
            "claimed": self.claimed.epsilon,
            "delta": self.claimed.delta,
            "neighbours": str(self.claimed.neighbours),
            "unit": self.claimed.unit,
            "holds": self.holds,
            "tested": self.tested,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "builds": self.builds,
            "seconds": round(self.seconds, 3),
            "direction": self.direction,
            "learned_for": self.learned_for,
            "distance": self.distance,
            "false_alarms": self.test.alarms,
            "without": self.test.without,
            "hits": self.test.hits,
            "with_unit": self.test.with_unit,
            "noise_ratio": None if self.noise is None else self.noise.ratio,
            "noise_at_most": most if math.isfinite(most) else None,
            "reasons": list(self.reasons),
        }

    @property
    def verdict(self) -> str:
        """What it comes to, in a few words."""
        if not self.holds:
            return f"DOES NOT HOLD: refuted, if both data sets differ in one {self.claimed.unit}"
        if not self.tested:
            return "NOTHING WAS TESTED: both data sets come to the same sums. Choose another pair"
        return "holds, as far as this shows: no contradiction was found"

    def __str__(self) -> str:
        neighbours = f"one {self.claimed.unit} {self.claimed.neighbours.change}"
        measured = (
            f"ε ≥ {rounded_down(self.epsilon_lower)}, {percent(self.confidence)} sure: "
            f"{self.share:.0%} of what is promised"
        )
        if self.epsilon_lower >= LARGEST_EPSILON:
            measured = "nothing had to be: one look is enough"
        lines = [
            f"{self.name}: {self.verdict}",
            *(f"  because    {each}" for each in self.reasons),
            f"  measured   {measured}",
            f"  promised   {self.claimed.figures}, {neighbours}",
            (
                f"  the test   right of {self._right:.1%} of {self._judged:,} releases; "
                f"{self.builds:,} built in {self.seconds:.0f} s"
            ),
        ]
        if self.noise is not None:
            lines.append(f"  noise      {self.noise.ratio:.3f} times what the receipt says")
        if self.distance is not None:
            lines.append(f"  the pair   {self.distance:.1%} as far apart as the promise allows for")
        if self.learned_for:
            lines.append(
                "  direction  learned from half of the builds, so that only gross leaks are seen: "
                f"{self.learned_for}"
            )
        return "\n".join(lines)

    def curve(self, at: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
        """Return which share of units is found at these shares of false alarms, for a picture.

        Args:
            at: shares of false alarms, above 0 and at most 1.

        Returns:
            Shares that were measured, and where the true ones are, 99% of the time: lower and upper
            ends.
        """
        without, with_unit = (np.sort(side) for side in self.scores)
        thresholds = np.quantile(without, 1 - np.asarray(at))
        hits = len(with_unit) - np.searchsorted(with_unit, thresholds, side="right")
        ends = [bounds.interval(int(each), len(with_unit), confidence=0.99) for each in hits]
        return (hits / len(with_unit)).tolist(), *map(list, zip(*ends, strict=True))

    @property
    def _judged(self) -> int:
        return self.test.without + self.test.with_unit

    @property
    def _right(self) -> float:
        return (self.test.without - self.test.alarms + self.test.hits) / self._judged
