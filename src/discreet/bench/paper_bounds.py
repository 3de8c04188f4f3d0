"""Variances of ranges in noisy trees, and what no factorisation with Gaussian noise can beat.

All in units of a node's variance, or of a change times σ; `paper_ranges` has the proofs in words.
"""

import math
from collections.abc import Sequence

import numpy as np

from discreet._typing import Floats, Integers


def binary_range_variance(start: Integers, stop: Integers, levels: int) -> Floats:
    """Return the variance of left(stop) - left(start) in the paper's tree, in nodes'.

    A prefix reads, on every level where its leaf's path turns right, the node to its left. Where
    both read the same node it cancels.
    """
    total = np.zeros(len(start))
    for depth in range(1, levels + 1):
        low, high = start >> (levels - depth), stop >> (levels - depth)
        total += (low & 1) + (high & 1) - 2 * ((low & 1) * (low == high))
    return total


def least_squares_range_variance(start: Integers, stop: Integers, depths: Sequence[int]) -> Floats:
    """Return the variance of the least-squares estimate of leaves start, ..., stop - 1, in nodes'.

    Level by level for all nodes: of the range's part A within a node and the node's total T, the
    variances and covariance add up over children, and then the node's own noisy number corrects
    both by regression. Independent of how `discreet.paper.forest` computes answers.
    """
    leaf = np.arange(1 << depths[-1])
    variances = []
    for first, last in zip(start, stop, strict=True):
        inside = ((leaf >= first) & (leaf < last)).astype(np.float64)
        of_range, both, of_total = inside, inside, 1.0  # after the leaves' own numbers
        for step in np.diff([0, *depths])[::-1]:
            of_range, both = (each.reshape(-1, 1 << step).sum(axis=1) for each in (of_range, both))
            of_total *= 1 << step
            if len(of_range) > 1:
                of_range = of_range - both**2 / (of_total + 1)
                both = both / (of_total + 1)
                of_total = of_total / (of_total + 1)
        variances.append(float(of_range[0]))
    return np.array(variances)


def range_bound(leaves: int) -> float:
    """Return ‖W‖_*/√(mN) for all m = N(N+1)/2 ranges over N leaves."""
    j = np.arange(1, leaves + 1)
    singular = math.sqrt(leaves + 1) / (2 * np.sin(j * math.pi / (2 * leaves + 2)))
    return float(np.sum(singular)) / (leaves * math.sqrt((leaves + 1) / 2))


def prefix_bound(leaves: int) -> float:
    """Return ‖W‖_*/N for all prefix sums over N leaves: a lower bound on γ₂, too."""
    j = np.arange(1, leaves + 1)
    return float(np.sum(1 / (2 * np.sin((2 * j - 1) * math.pi / (4 * leaves + 2))))) / leaves


def distance_bound(leaves: int) -> float:
    """Return ‖W‖_*/N for |y - x| over the middles of N leaves: twice its one positive eigenvalue.

    By power iteration on a product in O(N), from prefix sums.
    """
    x = (np.arange(leaves) + 0.5) / leaves
    vector = np.ones(leaves) / math.sqrt(leaves)
    value = 0.0
    for _ in range(60):
        sums, moments = np.cumsum(vector), np.cumsum(vector * x)
        image = 2 * (x * sums - moments) - x * sums[-1] + moments[-1]
        value = float(np.linalg.norm(image))
        vector = image / value
    return 2 * value / leaves
