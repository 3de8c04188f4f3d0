"""Many noisy segment trees in one array: Algorithm 2 for all of them at once, and a better reader.

A tree over N = 2^L leaves has the 2N - 2 nodes below its root, level by level; the root is neither
stored nor released, because no query reads it (and L levels compose to what the paper claims only
without it). Trees differ by coordinate, copy, column of weights and moment; copies share their
exact sums and differ in noise.

`Forest` reads them as the paper does; `ConsistentForest` by least squares over all levels.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from discreet._typing import Floats, Integers
from discreet.noise.entropy import Entropy
from discreet.noise.exact import IntegerLaw
from discreet.paper.options import Estimator

# How much memory one gather may take; more queries than fit are answered in several.
_GATHER_BYTES = 2**26


def levels_for(rows: int) -> int:
    """Return L = log2 N: N is the number of rows rounded up to a power of two, at least 2."""
    return max(rows - 1, 1).bit_length()


def node_count(depths: Sequence[int]) -> int:
    """Return the number of nodes of some levels."""
    return sum(1 << depth for depth in depths)


def all_depths(levels: int) -> tuple[int, ...]:
    """Return every level below the root: a binary tree, the paper's."""
    return tuple(range(1, levels + 1))


def even_depths(levels: int, height: int) -> tuple[int, ...]:
    """Return `height` of L levels, as evenly spaced as can be, the leaves' among them."""
    short, longer = divmod(levels, height)
    steps = [short] * (height - longer) + [short + 1] * longer
    return tuple(int(depth) for depth in np.cumsum(steps))


def leaf_of(positions: Floats, levels: int) -> Integers:
    """Return the leaf that holds each position in [0, 1]; the last leaf is closed on the right."""
    leaves = 1 << levels
    numbers = (positions * leaves).astype(np.int64)
    return np.asarray(np.minimum(numbers, leaves - 1), dtype=np.int64)


def scatter(leaves: Integers, own: Integers, values: Integers) -> None:
    """Add what each row contributes to the leaves that it lies in, exactly and in place.

    Args:
        leaves: sums so far, shape (coordinates, N, columns, moments), contiguous.
        own: the leaf of each row in each coordinate, shape (n, coordinates).
        values: what each row adds, shape (n, coordinates, columns, moments).
    """
    coordinates, width, columns, moments = leaves.shape
    lanes = columns * moments
    tree = np.arange(coordinates) * width
    index = (tree + own)[:, :, None] * lanes + np.arange(lanes)
    np.add.at(leaves.reshape(-1), index.reshape(-1), values.reshape(-1))


@dataclass(frozen=True)
class Worst:
    """How far the noise of an answer can spread, over all positions of a query.

    Attributes:
        weight: the most that one node weighs.
        count: that many nodes of this weight have at least the variance of any answer, and log
            moments at least as large.
        rounding: what rounding to integers can add to normal noise, in lattice steps, where
            `count` does not count it.
    """

    weight: float
    count: float
    rounding: float = 0.0


@dataclass(frozen=True)
class Forest:
    """Noisy nodes, read as in the paper: an answer adds up siblings on the way to the leaf.

    Attributes:
        nodes: shape (coordinates, nodes, copies, columns, moments), in lattice units, level by
            level from the top.
        levels: L.
        depths: which of the levels 1, ..., L there are; here all of them.
    """

    nodes: Integers
    levels: int
    depths: tuple[int, ...]

    estimator: ClassVar = Estimator.PAPER

    @classmethod
    def grow(
        cls,
        leaves: Integers,
        law: IntegerLaw,
        copies: int,
        entropy: Entropy,
        depths: tuple[int, ...] | None = None,
    ) -> Self:
        """Return the forest over exact leaf sums, shape (coordinates, N, columns, moments).

        The noise is drawn here, once, for all nodes of all trees; no exact sum survives. A level
        that is not among the depths is neither released nor stored.
        """
        coordinates, width, columns, moments = leaves.shape
        levels = width.bit_length() - 1
        depths = all_depths(levels) if depths is None else depths
        nodes = law.sample(
            (coordinates, node_count(depths), copies, columns, moments), entropy=entropy
        )
        forest = cls(nodes, levels, depths)
        level = leaves
        for depth in range(levels, 0, -1):  # level by level: L steps for all trees together
            if depth in depths:
                forest.level(depth)[...] += level[:, :, None]
            level = level[:, 0::2] + level[:, 1::2]
        return forest

    @property
    def copies(self) -> int:
        """How many noisy trees there are of each."""
        return int(self.nodes.shape[2])

    def level(self, depth: int) -> Integers:
        """Return the nodes of one level, a view, shape (coordinates, 2^depth, ...)."""
        start = node_count([above for above in self.depths if above < depth])
        return self.nodes[:, start : start + (1 << depth)]

    def query(self, positions: Floats) -> tuple[Floats, Floats]:
        """Return the noisy sums left and right of each query's leaf (Algorithm 2, Query).

        Args:
            positions: in [0, 1], shape (m, coordinates); clipped to it.

        Returns:
            Two arrays, shape (m, coordinates, copies, columns, moments), in lattice units.
        """
        inside = np.clip(positions, 0.0, 1.0)
        depths = np.arange(1, self.levels + 1)
        on_path = leaf_of(inside, self.levels)[:, :, None] >> (self.levels - depths)
        siblings = 2**depths - 2 + (on_path ^ 1)
        trees = np.arange(self.nodes.shape[0])[:, None]
        values = self.nodes[trees, siblings]  # (m, coordinates, L, copies, columns, moments)
        is_left = (on_path & 1).astype(bool)[..., None, None, None]
        left = np.sum(values, axis=2, where=is_left)
        return left, np.sum(values, axis=2) - left

    def variance(self, positions: Floats, *, left: float, right: float) -> Floats:
        """Return the variance of left·(sum left of it) + right·(sum right of it), in nodes'.

        Of the L nodes that a query reads, as many lie to the left as the leaf's number has ones.

        Args:
            positions: in [0, 1], any shape.
            left: weight of the sum on the left.
            right: weight of the sum on the right.
        """
        leaf = leaf_of(np.clip(positions, 0.0, 1.0), self.levels)
        ones = np.bitwise_count(leaf).astype(np.float64)
        return np.asarray(left**2 * ones + right**2 * (self.levels - ones))

    def worst(self, *, left: float, right: float) -> Worst:
        """Return the spread of that sum at the worst position: all L siblings on one side."""
        return Worst(max(abs(left), abs(right)), self.levels)

    def in_parts(self, answer: Callable[[Floats], Floats], queries: Floats) -> Floats:
        """Return answer(queries), asked for so few rows at a time that a gather stays small."""
        per_query = 8 * self.levels * max(1, self.nodes[:, 0].size)  # L siblings at the most
        rows = max(1, _GATHER_BYTES // per_query)
        parts = [answer(queries[at : at + rows]) for at in range(0, len(queries), rows)]
        return np.concatenate(parts) if parts else answer(queries)


@dataclass(frozen=True)
class ConsistentForest(Forest):
    """Noisy nodes of some levels, the leaves' among them, read by least squares.

    A node's exact sum is that of its children. Noisy nodes disagree, and the best linear unbiased
    estimate of every leaf weighs all of them (Hay, Rastogi, Miklau, Suciu 2010). That is
    post-processing: it costs no privacy. With noise of one variance on all nodes it takes two
    passes:

    - upwards, a node's own number is averaged with the sum of its children's estimates,
    - downwards, what a node's final estimate has more than its children's is divided among them.

    A tree in which a node has b = 2^k children is a binary tree of which only every k-th level is
    released. Fewer levels share the budget, and more siblings are added up: which is better, the
    exact variance tells before anything is built. `docs/beyond.md`, "Better trees".
    """

    estimator: ClassVar = Estimator.CONSISTENT

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


@dataclass(frozen=True)
class ExactTrees:
    """Trees before their noise: private, and on their way to the one place that draws it.

    Attributes:
        leaves: exact sums in lattice units, shape (coordinates, N, columns, moments).
        law: of the noise of every node.
        copies: how many noisy trees are made of each.
        reader: how they will be read.
        depths: the levels that are released; None for all.
    """

    leaves: Integers
    law: IntegerLaw
    copies: int = 1
    reader: type[Forest] = Forest
    depths: tuple[int, ...] | None = None

    def noisy(self, entropy: Entropy) -> Forest:
        """Return the trees with their noise, which is drawn here."""
        forest = self.reader.grow(self.leaves, self.law, self.copies, entropy, self.depths)
        forest.nodes.flags.writeable = False
        return forest
