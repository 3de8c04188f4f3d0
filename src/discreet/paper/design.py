"""Which levels of a tree are released, with what noise, and how they are read: before any data.

The paper's design is a binary tree with truncated Laplace noise, read by adding up siblings. The
other one has any width and noise, whichever has the least predicted variance, and is read by least
squares. All of it follows from public numbers.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from discreet import _validate, accounting
from discreet.accounting import Mechanism
from discreet.paper.consistent import ConsistentForest, even_depths, least_squares_variance
from discreet.paper.forest import Forest, all_depths
from discreet.paper.node import (
    REPLACED_ROW,
    Change,
    NodeNoise,
    Noise,
    NoiseDoesNotFit,
    node_noise,
    tight_node_noise,
)
from discreet.paper.structure import Accounting, Budget, check_composition, replace_privacy
from discreet.privacy import Privacy


class Estimator(StrEnum):
    """How noisy nodes are read: as in the paper, or by least squares over all levels."""

    PAPER = "paper"
    CONSISTENT = "consistent"


FORESTS = {Estimator.PAPER: Forest, Estimator.CONSISTENT: ConsistentForest}


def estimator_of(forest: Forest) -> Estimator:
    """Return how a forest reads its nodes."""
    [found] = [how for how, kind in FORESTS.items() if type(forest) is kind]
    return found


@dataclass(frozen=True)
class Account:
    """The noise of one node, how many of them a row touches, and what they compose to."""

    noise: NodeNoise
    count: int
    composed: Privacy

    @property
    def mechanisms(self) -> list[tuple[Mechanism, int]]:
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
