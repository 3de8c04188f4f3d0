"""What trees cost before there is any data: the noise of a node, its composition, the best design.

The noise of one node is in units in which all trees of a structure are alike. Weights are divided
by their bound and points by theirs, so that a row adds at most ±1 to a leaf of any tree; on the
lattice one is `unit` steps. A replaced row changes the leaves of a tree by at most 2·unit in L1
norm, exactly: |rint(u·unit)| ≤ unit whenever |u| ≤ 1, so rounding costs nothing. Every node of
every coordinate, moment, column and copy then gets noise of one and the same law.

The paper's design is a binary tree with truncated Laplace noise, read by adding up siblings. The
other one has any width and noise, whichever has the least predicted variance, and is read by least
squares. All of it follows from public numbers.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet import _validate, accounting
from discreet.accounting import Mechanism, calibrate, gaussian_sigma
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.noise import DiscreteLaplace, IntegerLaw, RoundedGaussian
from discreet.noise.exact import LARGEST_SCALE
from discreet.paper.forest import (
    ConsistentForest,
    Forest,
    all_depths,
    even_depths,
    least_squares_variance,
)
from discreet.paper.options import (
    LARGEST_C,
    Accounting,
    Budget,
    Estimator,
    Noise,
    checked_c,
    replace_privacy,
)
from discreet.privacy import Neighbours, Privacy, rounded_up

Nodes = Sequence[tuple[Mechanism, int]]

_LEAST_EPSILON = 1e-12

# A sum of k equal shares may exceed the whole by rounding; it never does so in exact arithmetic.
_ROUNDING = 1e-13


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


def check_composition(composed: Privacy, requested: Privacy) -> Privacy:
    """Return what was composed, or raise `BudgetExceeded` if it does not reach the request."""
    if composed.epsilon > requested.epsilon * (1 + _ROUNDING) or composed.delta > (
        requested.delta * (1 + _ROUNDING)
    ):
        raise BudgetExceeded(
            f"Expected the parameters to compose to {requested}, got {composed}: use a smaller c."
        )
    return replace_privacy(
        min(composed.epsilon, requested.epsilon), min(composed.delta, requested.delta)
    )


def resolved_c(c: float | str, composed: Callable[[float], Privacy], requested: Privacy) -> float:
    """Return the paper's constant: as given, or the largest that composes to the request.

    Args:
        c: a number, or "largest".
        composed: what the theorems give for a c; it grows with c.
        requested: the (ε, δ) in total.
    """
    if checked_c(c) is not None:
        return float(c)

    def fits(log_c: float) -> bool:
        found = composed(math.exp(log_c))
        return found.epsilon <= requested.epsilon and found.delta <= requested.delta * (
            1 + _ROUNDING
        )

    low, high = math.log(1e-9), math.log(LARGEST_C)
    if fits(high):
        return LARGEST_C
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return math.exp(low)


def compose_equal(part: Privacy, count: int, *, delta_prime: float) -> Privacy:
    """Return the better of the paper's two composition theorems for `count` equal parts."""
    simple = accounting.basic([(part, count)])
    if part.epsilon > 1:  # e^ε - 1 > ε: then basic composition is always the better one
        return simple
    advanced = accounting.advanced(part, count, delta_prime=delta_prime)
    return simple if simple.epsilon <= advanced.epsilon else advanced


FORESTS = {kind.estimator: kind for kind in (Forest, ConsistentForest)}


@dataclass(frozen=True)
class Account:
    """The noise of one node, how many of them a row touches, and what they compose to."""

    noise: NodeNoise
    count: int
    composed: Privacy

    @property
    def mechanisms(self) -> Nodes:
        """All nodes that a row touches."""
        return [(self.noise.mechanism, self.count)]


@dataclass(frozen=True)
class Design:
    """A tree before it is built.

    Attributes:
        forest: how it is read.
        depths: which levels are released.
        account: their noise and what it costs.
    """

    forest: type[Forest]
    depths: tuple[int, ...]
    account: Account


# Returns the account of a tree with so many released levels.
Accountant = Callable[[Noise, int], Account]


def design(
    levels: int,
    *,
    estimator: str,
    branching: int | None,
    noise: Noise | None,
    accountant: Accountant,
    right: float,
) -> Design:
    """Return the design that was asked for, with the least predicted variance where it is free.

    The variance is the mean over all leaves of that of (sum left of it) + right·(sum right of it).

    Args:
        levels: L, of the binary tree with as many leaves.
        estimator: an `Estimator`.
        branching: children of a node at the most, a power of two; None for the best.
        noise: which law; None for the paper's, or the best for least squares.
        accountant: what so many levels with this law cost.
        right: 1, -1 or 0: what sum is asked for.
    """
    how = _validate.choice("estimator", estimator, Estimator)
    if how is Estimator.PAPER:
        if branching not in {None, 2}:
            _validate.reject_argument(
                "branching", branching, '2 or None with estimator="paper", whose trees are binary'
            )
        kind = Noise.TRUNCATED_LAPLACE if noise is None else noise
        return Design(Forest, all_depths(levels), accountant(kind, levels))
    kinds = list(Noise) if noise is None else [noise]
    candidates = []
    for kind, height in itertools.product(kinds, _heights(levels, branching)):
        try:
            account = accountant(kind, height)
        except NoiseDoesNotFit:
            continue
        candidates.append(Design(ConsistentForest, even_depths(levels, height), account))
    if not candidates:
        raise NoiseDoesNotFit("Expected epsilon to leave noise that fits the lattice.")
    return min(
        candidates,
        key=lambda each: each.account.noise.variance * _mean_variance(each.depths, right),
    )


def _heights(levels: int, branching: int | None) -> list[int]:
    """Return how many levels may be released."""
    if branching is None:
        return list(range(1, levels + 1))
    width = _validate.whole("branching", branching, at_least=2)
    if width & (width - 1):
        _validate.reject("branching", branching, "a power of two")
    return [-(-levels // (width.bit_length() - 1))]


@lru_cache(maxsize=256)
def _mean_variance(depths: tuple[int, ...], right: float) -> float:
    """Return the mean variance over all leaves, in nodes' variances."""
    leaves = np.arange(1 << depths[-1])
    return float(np.mean(least_squares_variance(leaves, depths, left=1.0, right=right)))


def plain_accountant(
    budget: Budget, *, composition: Accounting, each: int, change: Change = REPLACED_ROW
) -> Accountant:
    """Return what trees cost whose nodes share a budget equally: by basic composition, or tightly.

    Args:
        budget: of all trees.
        composition: by the paper's theorems, or tightly.
        each: how many trees there are, copies counted.
        change: how much a replaced row changes one of them.
    """

    def account(kind: Noise, height: int) -> Account:
        count = each * height
        if composition is Accounting.TIGHT:
            return tight_account(kind, budget.total, count, change=change)
        node = budget.share(count)
        composed = check_composition(accounting.basic([(node.spent, count)]), budget.total)
        noise = node_noise(kind, epsilon=node.epsilon, delta=node.delta, change=change)
        return Account(noise, count, composed)

    return account


@lru_cache(maxsize=1024)  # a search takes some tenths of a second, and trees are often alike
def tight_account(
    kind: Noise, target: Privacy, count: int, *, change: Change = REPLACED_ROW
) -> Account:
    """Return the least noise of `count` nodes within a target, composed again."""
    noise = tight_node_noise(kind, target=target, count=count, change=change)
    spent = accounting.tight([(noise.mechanism, count)], delta=target.delta)
    composed = check_composition(replace_privacy(spent, target.delta), target)
    return Account(noise, count, composed)
