"""DPTree (Algorithm 2) and its boosted form (Theorem "High-probability")."""

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.ledger.account import Counted
from discreet.noise import Entropy
from discreet.paper import tails
from discreet.paper.design import Estimator, design, estimator_of, plain_accountant
from discreet.paper.forest import levels_for
from discreet.paper.node import Change, Noise
from discreet.paper.structure import (
    MEMORY_LIMIT,
    Accounting,
    Budget,
    Structure,
    check_size,
    checked_copies,
    finite,
    public_bound,
)

# A change of L1 norm Δ over N rounded leaves grows by less than 2N steps; Δ is many times that.
_SLACK = 2**16
# All leaves together stay below 2^62 steps, and each may be 2^15 times Δ.
_ROOM = 2**47


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
        sensitivity: Δ, the largest L1 change of all leaves together when one row is replaced.
        epsilon: for the whole tree and all queries.
        delta: likewise; below one half.
        upper: right end of the query interval.
        accounting: "paper" adds ε and δ of all levels up, as the theorem does; "tight" gives every
            node the least noise whose composition is (epsilon, delta).
        estimator: "paper" adds siblings up, as the algorithm does; or "consistent".
        branching: children of a node at the most, a power of two; by default two in the paper's
            tree, and the best in a consistent one.
        noise: which law the nodes get; by default truncated Laplace in the paper's tree, and the
            best of the three in a consistent one.
        entropy: where the noise comes from; by default the operating system.
        memory_limit: in bytes.
        **counted: ledger, dataset and analyst, to be counted (`discreet.ledger`).
    """

    copies = 1

    def __init__(
        self,
        leaves: ArrayLike,
        *,
        sensitivity: float,
        epsilon: float,
        delta: float,
        upper: float,
        accounting: str = Accounting.PAPER,
        estimator: str = Estimator.PAPER,
        branching: int | None = None,
        noise: Noise | None = None,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta)
        exact = finite("leaves", leaves, shape=(None,))
        if len(exact) == 0:
            _validate.reject("len(leaves)", 0, "at least 1")
        sensitivity = public_bound("sensitivity", sensitivity)
        self.upper = public_bound("upper", upper)
        self.accounting = _validate.choice("accounting", accounting, Accounting)
        self.levels = levels_for(len(exact))
        width = 2**self.levels
        check_size({"nodes": 2 * width - 2, "copies": self.copies}, limit=memory_limit)
        chosen = design(
            self.levels,
            estimator=estimator,
            branching=branching,
            noise=noise,
            accountant=plain_accountant(
                budget,
                composition=self.accounting,
                each=self.copies,
                change=leaf_change(width),
            ),
            right=0.0,
        )
        self._node = chosen.account.noise
        # A power of two of them are Δ, so a step is exact.
        self._step = sensitivity / self._node.unit
        source = self._promise(
            chosen.account.composed,
            requested=budget.total,
            mechanisms=chosen.account.mechanisms,
            entropy=entropy,
            counted=counted,
        )
        self._forest = chosen.forest.grow(
            _rounded(exact, self._step, width), self._node.law, self.copies, source, chosen.depths
        )

    @property
    def estimator(self) -> Estimator:
        """How the nodes are read."""
        return estimator_of(self._forest)

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self._forest.nodes.nbytes

    def query(self, y: ArrayLike) -> tuple[Floats, Floats]:
        """Return the noisy sums over the leaves left and right of the one that contains y.

        Args:
            y: positions in [0, upper] (clipped to it), shape (m,).

        Returns:
            Two arrays of shape (m,).
        """
        queries = np.clip(finite("y", y, shape=(None,)), 0.0, self.upper)[:, None] / self.upper
        both = self._forest.in_parts(self._medians, queries)
        return both[:, 0], both[:, 1]

    def _medians(self, positions: Floats) -> Floats:
        """Return the medians over copies of both sums, shape (m, 2)."""
        sides = [side[:, 0, :, 0, 0] for side in self._forest.query(positions)]
        return np.stack([np.median(side, axis=1) * self._step for side in sides], axis=1)

    def variance(self, y: ArrayLike) -> tuple[Floats, Floats]:
        """Return the exact noise variance of both answers of a single tree, shape (m,) each.

        Of the paper's estimator: of the L nodes that a query reads, as many go to the left as the
        leaf's number has ones.
        """
        positions = finite("y", y, shape=(None,)) / self.upper
        unit = self._node.law.variance * self._step**2
        left, right = (
            unit * self._forest.variance(positions, left=side, right=1 - side) for side in (1, 0)
        )
        return left, right

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of either sum, for one query, at this confidence.

        Noise (at most L nodes) and rounding (half a step for each of at most N leaves).
        """
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        single = tails.single_failure_for(self.copies, (1 - confidence) / 2)
        worst = max(
            (self._forest.worst(left=side, right=1 - side) for side in (1, 0)),
            key=lambda each: each.count,
        )
        part = tails.NoiseSum(self._node.law, (self._step * worst.weight,), (worst.count,))
        rounding = worst.rounding * self._step
        return tails.tail_bound((part,), single) + rounding + self.deterministic_error

    @property
    def deterministic_error(self) -> float:
        """The error without noise: half a lattice step for each leaf, and an eighth by division."""
        return float((1 << self.levels) * self._step * 0.625)


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


class DPTreeBoosted(DPTree):
    """The median of l independent trees, each at (ε/l, δ/l): right with chance 1 - delta_fail.

    Theorem "High-probability", with l from the exact binomial tail, not from the proof's constants.

    Args:
        leaves: as for `DPTree`, and so are the other arguments.
        delta_fail: how often the median of one query may miss the bound of a single copy.
        copies: l, to choose it yourself. With accounting="tight" it is one by default: a tail bound
            of one tree is better than the median of many with a part of the budget each.
        **options: the arguments of `DPTree`.
    """

    def __init__(
        self,
        leaves: ArrayLike,
        *,
        delta_fail: float,
        copies: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        _validate.real("delta_fail", delta_fail, above=0, below=1)
        tightly = options.get("accounting") == Accounting.TIGHT
        self.copies = checked_copies(copies, 1 if tightly else tails.copies_needed(delta_fail))
        super().__init__(leaves, **options)
