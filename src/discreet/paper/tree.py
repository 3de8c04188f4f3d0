"""DPTree (Algorithm 2) and its boosted form (Theorem "High-probability")."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.paper.bounds import NoiseSum, single_failure_for, tail_bound
from discreet.paper.design import (
    Change,
    NodeNoise,
    Nodes,
    design,
    plain_accountant,
)
from discreet.paper.forest import ExactTrees, Forest, levels_for
from discreet.paper.options import BoostedOptions, Estimator, TreeOptions, takes
from discreet.paper.structure import Promise, State, Structure, check_size, finite, kept, release

# A change of L1 norm Δ over N rounded leaves grows by less than 2N steps; Δ is many times that.
_SLACK = 2**16
# All leaves together stay below 2^62 steps, and each may be 2^15 times Δ.
_ROOM = 2**47


@dataclass(frozen=True)
class TreeState(State):
    """Copies of one tree.

    Attributes:
        forest: the noisy nodes.
        noise: their law.
        upper: right end of the query interval.
        step: what one lattice step stands for; a power of two of them are Δ.
    """

    forest: Forest
    noise: NodeNoise
    upper: float
    step: float

    @property
    def copies(self) -> int:
        """How many trees there are."""
        return self.forest.copies

    @property
    def covered(self) -> Nodes:
        """One node of each released level of each copy."""
        return [(self.noise.mechanism, self.copies * len(self.forest.depths))]

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self.forest.nodes.nbytes


class DPTree(Structure):
    """One noisy segment tree over leaves of [0, upper]: sums left and right of a query.

    Algorithm 2, Theorem "DPTree": (epsilon, delta)-private when the leaves change by at most
    `sensitivity` in L1 norm. Level by level each node gets TLap(Δ, ε/L, δ/L), the root excepted.

    With estimator="consistent" the nodes are read by least squares over all levels, and the tree
    has as many children a node, and that noise, as make the predicted variance least
    (`docs/beyond.md`).

    Args:
        leaves: real sums a_1, ..., a_n, shape (n,); leaf j covers [(j-1)/N, j/N)·upper, with N the
            next power of two (missing leaves are zero).
            Leaves beyond 2^15 times Δ may be clipped; where there are more than 2^21, beyond
            2^58/N² times Δ. Error bounds are for leaves that are not.
    """

    state: TreeState

    upper: float = kept("state.upper", "The right end of the query interval.")
    levels: int = kept("state.forest.levels", "L, of the binary tree with as many leaves.")
    copies: int = kept("state.copies", "l, how many trees a median is taken of.")
    estimator: Estimator = kept("state.forest.estimator", "How the nodes are read.")

    @takes(TreeOptions)
    def __init__(self, leaves: ArrayLike, options: TreeOptions) -> None:
        self.state, self.promise = _built(leaves, options, copies=1)

    def query(self, y: ArrayLike) -> tuple[Floats, Floats]:
        """Return the noisy sums over the leaves left and right of the one that contains y.

        Args:
            y: positions in [0, upper] (clipped to it), shape (m,).

        Returns:
            Two arrays of shape (m,).
        """
        queries = np.clip(finite("y", y, shape=(None,)), 0.0, self.upper)[:, None] / self.upper
        both = self.state.forest.in_parts(self._medians, queries)
        return both[:, 0], both[:, 1]

    def _medians(self, positions: Floats) -> Floats:
        """Return the medians over copies of both sums, shape (m, 2)."""
        sides = [side[:, 0, :, 0, 0] for side in self.state.forest.query(positions)]
        return np.stack([np.median(side, axis=1) * self.state.step for side in sides], axis=1)

    def variance(self, y: ArrayLike) -> tuple[Floats, Floats]:
        """Return the exact noise variance of both answers of a single tree, shape (m,) each.

        Of the paper's estimator: of the L nodes that a query reads, as many go to the left as the
        leaf's number has ones.

        Args:
            y: positions in [0, upper], shape (m,).
        """
        positions = finite("y", y, shape=(None,)) / self.upper
        unit = self.state.noise.law.variance * self.state.step**2
        left, right = (
            unit * self.state.forest.variance(positions, left=side, right=1 - side)
            for side in (1, 0)
        )
        return left, right

    def _bound(self, confidence: float) -> float:
        """Return a bound on the error of either sum, for one query.

        Noise (at most L nodes) and rounding (half a step for each of at most N leaves).
        """
        single = single_failure_for(self.copies, (1 - confidence) / 2)
        forest, step = self.state.forest, self.state.step
        worst = max(
            (forest.worst(left=side, right=1 - side) for side in (1, 0)),
            key=lambda each: each.count,
        )
        part = NoiseSum(self.state.noise.law, (step * worst.weight,), (worst.count,))
        return tail_bound((part,), single) + worst.rounding * step + self.deterministic_error

    @property
    def deterministic_error(self) -> float:
        """The error without noise: half a lattice step for each leaf, and an eighth by division."""
        return float((1 << self.levels) * self.state.step * 0.625)


class DPTreeBoosted(DPTree):
    """The median of l independent trees, each at (ε/l, δ/l): right with chance 1 - delta_fail.

    Theorem "High-probability", with l from the exact binomial tail, not from the proof's constants.

    Args:
        leaves: as for `DPTree`.
    """

    @takes(BoostedOptions)
    def __init__(self, leaves: ArrayLike, options: BoostedOptions) -> None:
        self.state, self.promise = _built(leaves, options, copies=options.median_of)


def _built(leaves: ArrayLike, options: TreeOptions, *, copies: int) -> tuple[TreeState, Promise]:
    """Return the state of a tree over these leaves, and what it costs."""
    exact = finite("leaves", leaves, shape=(None,))
    if len(exact) == 0:
        _validate.reject("len(leaves)", 0, "at least 1")
    levels = levels_for(len(exact))
    width = 1 << levels
    check_size({"nodes": 2 * width - 2, "copies": copies}, limit=options.memory_limit)
    chosen = design(
        levels,
        estimator=options.estimator,
        branching=options.branching,
        noise=options.noise,
        accountant=plain_accountant(
            options.budget, composition=options.composition, each=copies, change=leaf_change(width)
        ),
        right=0.0,
    )
    noise = chosen.account.noise
    step = options.sensitivity / noise.unit  # a power of two: exact
    trees = ExactTrees(
        _rounded(exact, step, width), noise.law, copies, chosen.forest, chosen.depths
    )
    [forest], promise = release(
        [trees],
        options,
        composed=chosen.account.composed,
        whole=chosen.account.mechanisms,
    )
    return TreeState(options.composition, forest, noise, options.upper, step), promise


def leaf_change(width: int) -> Change:
    """Return how much a change of L1 norm Δ, which is one unit, is over so many rounded leaves.

    Each leaf that changes may add one step by rounding and a quarter by the quotients; Δ is many
    times that, and within the law's range.
    """
    coarsest = 16 * width
    finest = max(min(_SLACK * width, _ROOM // width), coarsest)
    return Change(1, slack=2 * width, finest=finest, coarsest=coarsest)


def _rounded(leaves: Floats, step: float, width: int) -> Integers:
    """Return leaves in lattice steps, filled up with zeros, as a forest of one tree.

    Quotients up to 2^51 are good to an eighth of a step. Larger leaves are clipped and not refused,
    because whether they are there is private; clipping brings neighbours no further apart.
    """
    most = min(2.0**51, 2.0**62 / width)
    rounded = np.zeros((1, width, 1, 1), dtype=np.int64)
    rounded[0, : len(leaves), 0, 0] = np.rint(np.clip(leaves, -most * step, most * step) / step)
    return rounded
