"""Which names are in the data: totals with Gaussian noise, and a threshold that hides rare ones.

A unit names at most `most` names, in an order of its own; each counts `decay` times as much as the
one before, and all together have a length of at most L lattice units. Names that only one unit has
must not come out: the threshold is so high that the noise carries any of them above it with a
probability of at most `probability`.
`docs/privacy.md`, "What is in the data".
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from discreet import _validate
from discreet.accounting import Disclosure
from discreet.noise import RoundedGaussian
from discreet.privacy import Neighbours

# L: how long what a unit adds may be, in lattice units.
LENGTH = 2**24

# With more names for each unit, thresholds for every number of them would take minutes to find.
_MOST = 2**10

# More than the relative error of a tail of the normal distribution, and of sums of them.
_SLACK = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The public settings of a release that names what many units have.

    Attributes:
        most: a unit names at most so many.
        multiplier: σ of the whole Gaussian budget, in units of what one unit adds.
        share: of the squared Gaussian budget.
        probability: that any name is told which only one unit has, at most.
        decay: how much each name of a unit counts beside the one before; 1 if all count the same.
        neighbours: whether a unit is added or removed, or replaced.
    """

    most: int
    multiplier: float
    share: float
    probability: float
    neighbours: Neighbours
    decay: float = 1.0

    def __post_init__(self) -> None:
        _validate.whole("most", self.most, at_least=1, at_most=_MOST)
        _validate.real("multiplier", self.multiplier, above=0)
        _validate.real("share", self.share, above=0, at_most=1)
        _validate.real("probability", self.probability, above=0, below=0.5)
        _validate.real("decay", self.decay, above=0, at_most=1)
        _validate.instance("neighbours", self.neighbours, Neighbours)

    def weights(self, names: int) -> tuple[int, ...]:
        """Return what a unit with so many names adds to each, in order, in lattice units.

        ⌊L·d^j/√(Σ d^2j)⌋, a little less, so that the sum of squares is at most L², exactly.

        Args:
            names: how many it has, from 0 to `most`.
        """
        powers = [self.decay**rank for rank in range(names)]
        length = math.sqrt(math.fsum(each**2 for each in powers)) * (1 + 2.0**-40)
        return tuple([math.floor(LENGTH * each / length) for each in powers])

    @property
    def sensitivity(self) -> float:
        """How far totals can move (L2), in lattice units.

        A unit that is replaced takes a vector of length L away and brings another; neither has a
        negative entry, so they are at most √2·L apart.
        """
        replaced = self.neighbours is Neighbours.REPLACE
        return LENGTH * (math.sqrt(2) * (1 + 2.0**-50) if replaced else 1.0)

    @cached_property
    def law(self) -> RoundedGaussian:
        """The noise on each total."""
        return RoundedGaussian(sigma=self.multiplier * self.sensitivity / math.sqrt(self.share))

    @cached_property
    def threshold(self) -> int:
        """The least noisy total that is told, in lattice units.

        A unit with t names that nobody else has tells any of them with the probability
        1 - Π_j Φ((T - ½ - w_j)/σ), noise being round(N(0, σ²)): for every t ≤ `most` at most p.
        """
        return max(self._least(self.weights(names)) for names in range(1, self.most + 1))

    def _least(self, weights: tuple[int, ...]) -> int:
        """Return the least threshold that hides a unit with these weights often enough."""
        added, sigma = np.array(weights, dtype=np.float64), self.law.sigma

        def told(threshold: int) -> float:
            logs = special.log_ndtr((threshold - 0.5 - added) / sigma)
            return -math.expm1(math.fsum(logs)) * _SLACK

        low, high = 0, math.ceil(LENGTH + 40 * sigma)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if told(middle) <= self.probability else (middle, high)
        return high

    @property
    def disclosure(self) -> Disclosure:
        """What the threshold costs beside the noise."""
        return Disclosure(probability=self.probability, neighbours=self.neighbours)

    @property
    def stderr(self) -> float:
        """The standard deviation of a total's noise, in units that name one thing."""
        return math.sqrt(self.law.variance) / LENGTH

    @property
    def units_needed(self) -> float:
        """About so many units with one name each are told of, every other time."""
        return self.threshold / LENGTH
