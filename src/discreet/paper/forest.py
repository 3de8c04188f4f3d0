"""Many noisy segment trees in one array: Algorithm 2 for all of them at once.

A tree over N = 2^L leaves has the 2N - 2 nodes below its root, level by level; the root is neither
stored nor released, because no query reads it (and L levels compose to what the paper claims only
without it). Trees differ by coordinate, copy, column of weights and moment; copies share their
exact sums and differ in noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from discreet._typing import Floats, Integers
from discreet.noise.entropy import Entropy
from discreet.noise.law import IntegerLaw

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
