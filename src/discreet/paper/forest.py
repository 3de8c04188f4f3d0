"""Many noisy segment trees in one array: Algorithm 1 for all of them at once.

A tree over N = 2^L leaves has the 2N - 2 nodes below its root, level by level; the root is neither
stored nor released, because no query reads it (and L levels compose to what the paper claims only
without it). Trees differ by coordinate, copy, column of weights and moment; copies share their
exact sums and differ in noise.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet._typing import Floats, Integers
from discreet.noise.entropy import Entropy
from discreet.noise.law import IntegerLaw

# How much memory one gather may take; more queries than fit are answered in several.
_GATHER_BYTES = 2**26


def levels_for(rows: int) -> int:
    """Return L = log2 N: N is the number of rows rounded up to a power of two, at least 2."""
    return max(rows - 1, 1).bit_length()


def node_count(levels: int) -> int:
    """Return the number of nodes below the root."""
    return (2 << levels) - 2


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
class Forest:
    """Noisy nodes, shape (coordinates, 2N - 2, copies, columns, moments), in lattice units."""

    nodes: Integers
    levels: int

    @classmethod
    def grow(cls, leaves: Integers, law: IntegerLaw, copies: int, entropy: Entropy) -> "Forest":
        """Return the forest over exact leaf sums, shape (coordinates, N, columns, moments).

        The noise is drawn here, once, for all nodes of all trees; no exact sum survives.
        """
        coordinates, width, columns, moments = leaves.shape
        levels = width.bit_length() - 1
        nodes = law.sample(
            (coordinates, node_count(levels), copies, columns, moments), entropy=entropy
        )
        level = leaves
        for depth in range(levels, 0, -1):  # level by level: L steps for all trees together
            nodes[:, 2**depth - 2 : 2 ** (depth + 1) - 2] += level[:, :, None]
            level = level[:, 0::2] + level[:, 1::2]
        return cls(nodes, levels)

    def query(self, positions: Floats) -> tuple[Integers, Integers]:
        """Return the noisy sums left and right of each query's leaf (Algorithm 1, Query).

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

    def in_parts(self, answer: Callable[[Floats], Floats], queries: Floats) -> Floats:
        """Return answer(queries), asked for so few rows at a time that a gather stays small."""
        per_query = 8 * self.levels * max(1, self.nodes[:, 0].size)
        rows = max(1, _GATHER_BYTES // per_query)
        parts = [answer(queries[at : at + rows]) for at in range(0, len(queries), rows)]
        return np.concatenate(parts) if parts else answer(queries)
