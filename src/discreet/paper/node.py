"""The noise of one tree node, in units in which all trees of a structure are alike.

Weights are divided by their bound and points by theirs, so that a row adds at most ±1 to a leaf of
any tree; on the lattice one is `unit` steps. A replaced row changes the leaves of a tree by at most
2·unit in L1 norm, exactly: |rint(u·unit)| ≤ unit whenever |u| ≤ 1, so rounding costs nothing. Every
node of every coordinate, moment, column and copy then gets noise of one and the same law.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from discreet import _validate, accounting
from discreet.accounting import Mechanism, calibrate, gaussian_sigma
from discreet.errors import InvalidInput
from discreet.noise import DiscreteLaplace, IntegerLaw, RoundedGaussian
from discreet.noise.law import LARGEST_SCALE
from discreet.privacy import Neighbours, Privacy, rounded_up

_LEAST_EPSILON = 1e-12


class Noise(StrEnum):
    """Which law the nodes get; the paper compares the three. An Enum: no law without a proof."""

    TRUNCATED_LAPLACE = "truncated_laplace"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class NoiseDoesNotFit(InvalidInput):
    """The noise that was asked for is larger than the lattice."""


@dataclass(frozen=True)
class Change:
    """How much a replaced row changes the leaves of a tree in L1 norm: times·unit + slack steps.

    Attributes:
        times: units; a row adds at most one to a leaf, so replacing it changes two of them.
        slack: lattice steps that rounding may add.
        finest: the most lattice steps that stand for one.
        coarsest: the fewest.
    """

    times: int = 2
    slack: int = 0
    finest: int = 2**26
    coarsest: int = 2**8

    def sensitivity(self, unit: int) -> int:
        """Return the change in lattice steps."""
        return self.times * unit + self.slack

    def unit(self, kind: Noise, epsilon: float, delta: float) -> int:
        """Return how many lattice steps stand for one: a power of two, as fine as noise allows.

        A function of public parameters only.
        """
        unit = min(self.finest, largest_sensitivity(kind, epsilon, delta) // 2)
        if unit < self.coarsest:
            raise NoiseDoesNotFit(
                "Expected epsilon per node to leave noise that fits the lattice, got "
                f"{rounded_up(epsilon)}: use a larger epsilon, or fewer copies, features, columns "
                "or leaves."
            )
        return unit


REPLACED_ROW = Change()


@dataclass(frozen=True)
class NodeNoise:
    """One node's noise on its lattice, for a change of `mechanism.sensitivity` lattice steps.

    Attributes:
        law: what is drawn.
        mechanism: the same for the accountant.
        unit: lattice steps that stand for one.
    """

    law: IntegerLaw
    mechanism: Mechanism
    unit: int

    @property
    def variance(self) -> float:
        """Variance of one draw, where a unit is one."""
        return self.law.variance / self.unit**2


@lru_cache(maxsize=1024)
def node_noise(
    kind: Noise, *, epsilon: float, delta: float, change: Change = REPLACED_ROW
) -> NodeNoise:
    """Return noise that makes a node (epsilon, delta)-private when one row is replaced.

    The row's change may be spread over two nodes of a level: `docs/privacy.md`,
    "A change over several coordinates".
    """
    unit = change.unit(kind, epsilon, delta)
    mechanism = node_mechanism(
        kind, sensitivity=change.sensitivity(unit), epsilon=epsilon, delta=delta
    )
    return NodeNoise(law_of(mechanism), mechanism, unit)


def tight_node_noise(
    kind: Noise, *, target: Privacy, count: int, change: Change = REPLACED_ROW
) -> NodeNoise:
    """Return the least noise of which `count` nodes together stay within `target`.

    Half of δ is for truncation, half for composition: the split hardly matters.

    Args:
        kind: which law.
        target: (ε, δ) of all nodes together, by their privacy loss distribution.
        count: how many nodes one row touches.
        change: how much it changes them.
    """
    delta = target.delta / 2 / count
    # Somewhere between basic composition and a Gaussian's; the lattice has room for the former, or
    # for four times the latter.
    gaussian = target.epsilon / math.sqrt(8 * count * math.log(2 / target.delta))
    guess = min(max(gaussian, target.epsilon / count), 100.0)
    unit = change.unit(kind, max(guess / 4, target.epsilon / count / 2), delta)
    first = node_mechanism(kind, sensitivity=change.sensitivity(unit), epsilon=guess, delta=delta)
    [(mechanism, _)] = calibrate([(first, count)], target=target)
    return NodeNoise(law_of(mechanism), mechanism, unit)


def node_mechanism(kind: Noise, *, sensitivity: int, epsilon: float, delta: float) -> Mechanism:
    """Return the mechanism that is (epsilon, delta)-private for a change of `sensitivity` steps."""
    relation = Neighbours.REPLACE
    kind = _validate.choice("noise", kind, Noise)
    if kind is Noise.GAUSSIAN:
        sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        return accounting.Gaussian(sigma=sigma, sensitivity=sensitivity, neighbours=relation)
    if kind is Noise.LAPLACE:
        return accounting.DiscreteLaplace(
            scale=sensitivity / epsilon, sensitivity=sensitivity, neighbours=relation
        )
    return accounting.TruncatedLaplace(
        sensitivity=sensitivity, epsilon=epsilon, delta=delta, neighbours=relation
    )


def law_of(mechanism: Mechanism) -> IntegerLaw:
    """Return the integer law that a mechanism draws."""
    match mechanism:
        case accounting.Gaussian():
            return RoundedGaussian(sigma=mechanism.sigma)
        case accounting.DiscreteLaplace():
            return DiscreteLaplace(scale=mechanism.scale)
        case accounting.TruncatedLaplace():
            return mechanism.law
    raise TypeError(f"no integer law for {mechanism!r}")


def largest_sensitivity(kind: Noise, epsilon: float, delta: float) -> int:
    """Return the largest power of two whose noise is within the range of the laws, or zero."""
    if epsilon < _LEAST_EPSILON:
        return 0
    gaussian = _validate.choice("noise", kind, Noise) is Noise.GAUSSIAN
    relative = gaussian_sigma(epsilon=epsilon, delta=delta) if gaussian else 1 / epsilon
    finest = math.floor(math.log2(LARGEST_SCALE / relative * (1 - 1e-9)))
    return 1 << finest if finest >= 0 else 0
