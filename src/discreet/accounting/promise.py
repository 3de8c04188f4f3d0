"""What a guarantee means for one person, in numbers that everybody can check.

`docs/privacy.md`, "What it means for one person". Cards and pages show these figures, and audits
and attacks compare with them what was measured.
"""

import math
from dataclasses import dataclass, replace

from scipy import special

from discreet.accounting.events import Gaussian
from discreet.accounting.receipt import Receipt
from discreet.privacy import NOT_PRIVATE, Guarantee, Neighbours

# So many of 1,000 people who were not in the data are wrongly accused, where a card says how many
# others are found.
ACCUSED = 10


def how_many(share: float, *, per: int = 1000) -> str:
    """Return how many of so many people a share is, never too few.

    Args:
        share: from 0 to 1.
        per: out of how many.
    """
    return f"{_rounded_up(share, per):,}"


def _rounded_up(share: float, per: int) -> int:
    return math.ceil(share * per - 1e-9)  # a whole number may be off in its last bit


@dataclass(frozen=True)
class Promise:
    """How much better than by chance anybody can tell whether one unit was in the data.

    Somebody has the file, knows everything about everybody else, and has to say whether one
    person's row was in the data (or, under `replace`, which of two rows it was). By definition of
    (ε, δ), if their method says "yes" for a share a of those who were not, it says "yes" for at
    most e^ε·a + δ of those who were, and "no" for at least e^-ε·(1 - a - δ). A release that is one
    Gaussian mechanism promises more: with μ = sensitivity/σ no method beats that of telling N(μ, 1)
    from N(0, 1), which says "yes" for Φ(Φ⁻¹(a) + μ) of those who were (Dong, Roth and Su 2022,
    theorem 2.7); rounding is post-processing. All figures are rounded up.

    Attributes:
        guarantee: of the release.
        mu: how far apart neighbouring data sets are, in units of the noise, if the release is one
            Gaussian mechanism; else None.
    """

    guarantee: Guarantee
    mu: float | None

    @classmethod
    def of(cls, guarantee: Guarantee, receipt: Receipt) -> "Promise":
        """Return the promise of a release."""
        mu = None
        if len(receipt.mechanisms) == 1:
            [(mechanism, count)] = receipt.mechanisms
            if isinstance(mechanism, Gaussian):
                mu = math.sqrt(count) * mechanism.spread
        return cls(guarantee, mu)

    def of_several(self, count: int) -> "Promise":
        """Return what is promised to somebody who has so many units in the data.

        All of them change, one after the other: k·ε, and δ·(1 + e^ε + ... + e^((k - 1)·ε)). Sums
        move k times as far at most, so a Gaussian mechanism has k·μ.
        """
        epsilon = self.guarantee.epsilon
        steps = math.fsum(math.exp(min(each * epsilon, 700.0)) for each in range(count))
        several = replace(
            self.guarantee,
            epsilon=count * epsilon,
            delta=min(self.guarantee.delta * steps, 1.0),
        )
        return Promise(several, None if self.mu is None else count * self.mu)

    def found(self, accused: float) -> float:
        """Return the largest share of members that a method finds.

        Args:
            accused: the share of those who are not members that it takes for some.
        """
        epsilon, delta = min(self.guarantee.epsilon, 700.0), self.guarantee.delta
        most = min(
            math.exp(epsilon) * accused + delta,
            1 - math.exp(-epsilon) * (1 - accused - delta),
            1.0,
        )
        if self.mu is not None:
            most = min(most, float(special.ndtr(special.ndtri(accused) + self.mu)))
        return most

    @property
    def facts(self) -> dict[str, object]:
        """What `in_words` says, for programs."""
        return {
            "wrongly_accused_of_1000": ACCUSED,
            "found_at_most_of_1000": _rounded_up(self.found(ACCUSED / 1000), 1000),
        }

    @property
    def in_words(self) -> str:
        """What a card says to one person with one unit in the data."""
        unit = self.guarantee.unit
        instead = f" (another {unit} was in their place)" if self._replaced else ""
        test = self.guarantee.scope.startswith(NOT_PRIVATE)
        mark = f"{NOT_PRIVATE}; with the system's noise, " if test else ""
        return (
            f"{mark}a method that wrongly accuses {ACCUSED} of 1,000 people who were not in the "
            f"data{instead} finds at most {how_many(self.found(ACCUSED / 1000))} of 1,000 who "
            f"were, with one {unit} each"
        )

    @property
    def _replaced(self) -> bool:
        return self.guarantee.neighbours is Neighbours.REPLACE

    @property
    def coin(self) -> float:
        """How often a guess is right at best, if a fair coin decides whether somebody is in it."""
        epsilon = min(self.guarantee.epsilon, 700.0)
        most = (math.exp(epsilon) + self.guarantee.delta) / (math.exp(epsilon) + 1)
        if self.mu is not None:
            most = min(most, float(special.ndtr(self.mu / 2)))
        return min(most, 1.0)
