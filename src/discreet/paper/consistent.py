"""The same released nodes, read better: least squares over all levels, and trees of any width.

A node's exact sum is that of its children. Noisy nodes disagree, and the best linear unbiased
estimate of every leaf weighs all of them (Hay, Rastogi, Miklau, Suciu 2010). That is
post-processing: it costs no privacy. With noise of one variance on all nodes it takes two passes:

- upwards, a node's own number is averaged with the sum of its children's estimates,
- downwards, what a node's final estimate has more than its children's is divided among them.

A tree in which a node has b = 2^k children is a binary tree of which only every k-th level is
released. Fewer levels share the budget, and more siblings are added up: which is better, the exact
variance tells before anything is built. `docs/beyond.md`, "Better trees".
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet._typing import Floats, Integers
from discreet.paper.forest import Forest, Worst, leaf_of


def even_depths(levels: int, height: int) -> tuple[int, ...]:
    """Return `height` of L levels, as evenly spaced as can be, the leaves' among them."""
    short, longer = divmod(levels, height)
    steps = [short] * (height - longer) + [short + 1] * longer
    return tuple(int(depth) for depth in np.cumsum(steps))


@dataclass(frozen=True)
class ConsistentForest(Forest):
    """Noisy nodes of some levels, the leaves' among them, read by least squares."""

    @cached_property
    def _before(self) -> Floats:
        """The estimated sum of all leaves before each leaf, and of all, in lattice units."""
        estimates, children = self._upwards()
        final = estimates[0]
        for step, estimate, total in zip(
            _steps(self.depths)[1:], estimates[1:], children, strict=True
        ):
            missing = (final - total) / (1 << step)
            final = estimate + np.repeat(missing, 1 << step, axis=1)
        sums = np.zeros((final.shape[0], final.shape[1] + 1, *final.shape[2:]))
        np.cumsum(final, axis=1, out=sums[:, 1:])
        return sums

    def _upwards(self) -> tuple[list[Floats], list[Floats]]:
        """Return estimates of each level from the nodes below it, and the sums of children."""
        estimate: Floats = self.level(self.depths[-1]).astype(np.float64)
        estimates, children = [estimate], list[Floats]()
        spread = 1.0  # the variance of an estimate, where a node's noise has variance one
        for depth, step in zip(self.depths[-2::-1], _steps(self.depths)[:0:-1], strict=True):
            total = estimate.reshape(
                estimate.shape[0], 1 << depth, 1 << step, *estimate.shape[2:]
            ).sum(axis=2)
            spread *= 1 << step
            estimate = total + spread / (spread + 1) * (self.level(depth) - total)
            spread /= spread + 1
            estimates.insert(0, estimate)
            children.insert(0, total)
        return estimates, children

    def query(self, positions: Floats) -> tuple[Floats, Floats]:
        """Return the estimated sums left and right of each query's leaf, as in the paper."""
        leaf = leaf_of(np.clip(positions, 0.0, 1.0), self.levels)
        trees = np.arange(self.nodes.shape[0])
        sums = self._before
        return sums[trees, leaf], sums[trees, -1] - sums[trees, leaf + 1]

    def variance(self, positions: Floats, *, left: float, right: float) -> Floats:
        """Return the exact variance of that weighted sum of both, in nodes' variances."""
        leaf = leaf_of(np.clip(positions, 0.0, 1.0), self.levels)
        return least_squares_variance(leaf, self.depths, left=left, right=right)

    def worst(self, *, left: float, right: float) -> Worst:
        """Return the spread of that sum at the worst leaf.

        No node weighs more than the range of the weights of all leaves, zero for the query's own:
        a node is weighed by the difference of two averages of them. With Laplace's log moment,
        which is convex in the squared weight, as many nodes of the largest weight as have the whole
        variance bound those of an answer; cut-off tails lower it, and for normal noise all is exact
        but rounding, at most ½·Σ|weight| ≤ ½·√(nodes·variance).
        """
        leaves = np.arange(1 << self.levels)
        most = float(np.max(least_squares_variance(leaves, self.depths, left=left, right=right)))
        weight = max(left, right, 0.0) - min(left, right, 0.0)
        rounding = 0.5 * math.sqrt(self.nodes.shape[1] * most)
        return Worst(weight, most / weight**2, rounding)


def least_squares_variance(
    leaf: Integers, depths: tuple[int, ...], *, left: float, right: float
) -> Floats:
    """Return the variance of left·(sum left of a leaf) + right·(sum right of it), in nodes'.

    From the leaf upwards. That sum A within a node, and T, the node's total, are estimated from
    what lies below; their variance and covariance grow by the siblings. Then the node's own noisy
    number corrects both, by regression.

    Args:
        leaf: numbers of leaves, any shape.
        depths: the released levels, the leaves' the last.
        left: weight of the sum on the left.
        right: weight of the sum on the right.
    """
    variance = np.zeros(leaf.shape)
    covariance = np.zeros(leaf.shape)
    spread, below = 1.0, 0
    for step in reversed(_steps(depths)):
        before = (leaf >> below) & ((1 << step) - 1)
        after = (1 << step) - 1 - before
        variance = variance + (left**2 * before + right**2 * after) * spread
        covariance = covariance + (left * before + right * after) * spread
        spread *= 1 << step
        below += step
        if below < depths[-1]:  # there is no root to correct the last
            variance = variance - covariance**2 / (spread + 1)
            covariance = covariance / (spread + 1)
            spread /= spread + 1
    return np.asarray(variance)


def _steps(depths: tuple[int, ...]) -> list[int]:
    """Return how many binary levels lie between each level and the one above it, from above."""
    return [int(step) for step in np.diff([0, *depths])]
