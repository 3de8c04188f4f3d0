"""What a guarantee means for one person, in numbers that everybody can check.

`docs/privacy.md`, "What it means for one person". Pages show these figures, and audits and attacks
compare with them what was measured.
"""

import math
from dataclasses import dataclass, replace

from scipy import special

from discreet.accounting.events import Gaussian
from discreet.accounting.receipt import Receipt
from discreet.privacy import Guarantee


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
    def coin(self) -> float:
        """How often a guess is right at best, if a fair coin decides whether somebody is in it."""
        epsilon = min(self.guarantee.epsilon, 700.0)
        most = (math.exp(epsilon) + self.guarantee.delta) / (math.exp(epsilon) + 1)
        if self.mu is not None:
            most = min(most, float(special.ndtr(self.mu / 2)))
        return min(most, 1.0)
