"""Weighted ℓ_p^p distances in d dimensions (Algorithm 6), once and for adaptive queries (p = 1)."""

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate, accounting
from discreet._typing import Floats
from discreet.ledger.account import Counted
from discreet.noise import Entropy
from discreet.paper import tails
from discreet.paper.box import Box
from discreet.paper.design import (
    Account,
    Accountant,
    Estimator,
    design,
    estimator_of,
    plain_accountant,
)
from discreet.paper.distance import answer_scale, grown, mirror_sign, to_unit
from discreet.paper.forest import all_depths, levels_for, node_count
from discreet.paper.net import Net
from discreet.paper.node import Noise, node_noise
from discreet.paper.structure import (
    LARGEST,
    MEMORY_LIMIT,
    Accounting,
    Budget,
    Structure,
    check_composition,
    check_size,
    checked_c,
    checked_copies,
    compose_equal,
    finite,
    public_bound,
    replace_privacy,
    settled_c,
    weighted_points,
)
from discreet.privacy import Privacy


class DPTreeHighDim(Structure):
    """Σ_i w_i·‖y - x_i‖_p^p on [lower, upper]^d: d DPTreeDistance at (cε/√(d·ln(1/δ')), δ/d).

    Algorithm 6, Theorem "DPTreeHighDim": (epsilon, delta + delta_prime)-private if c is small
    enough, by the composition theorem with its own constants; one that is not raises
    `BudgetExceeded`.

    Args:
        X: points, shape (n, d); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
        p: an integer power ≥ 1.
        upper: right end of the interval in each coordinate.
        lower: its left end; zero in the paper.
        weight_bound: R_w.
        epsilon: for the whole structure and all queries.
        delta: for truncation.
        delta_prime: for advanced composition; the total is delta + delta_prime.
        c: the paper's constant; "largest" is the largest that composes to what was asked for. Only
            for accounting="paper".
        accounting: as for `DPTree`, and so are `estimator`, `branching` and `noise`; "tight" spends
            (epsilon, delta + delta_prime).
        estimator: likewise.
        branching: likewise.
        noise: likewise.
        entropy: where the noise comes from; by default the operating system.
        memory_limit: in bytes.
        **counted: ledger, dataset and analyst, to be counted (`discreet.ledger`).
    """

    copies = 1
    c: float | None  # None with tight accounting

    def __init__(
        self,
        X: ArrayLike,  # noqa: N803
        weights: ArrayLike,
        *,
        p: int,
        upper: float,
        weight_bound: float,
        epsilon: float,
        delta: float,
        delta_prime: float,
        c: float | str = LARGEST,
        lower: float = 0.0,
        accounting: str = Accounting.PAPER,
        estimator: str = Estimator.PAPER,
        branching: int | None = None,
        noise: Noise | None = None,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta, delta_prime)
        checked_c(c)
        points, signed = weighted_points("X", X, weights, dimensions=2)
        self.dim = points.shape[1]
        self.power = _validate.whole("p", p, at_least=1, at_most=200)
        self.box = Box(lower, upper)
        self.weight_bound = public_bound("weight_bound", weight_bound)
        self._scale = answer_scale(self.weight_bound, self.box.side, self.power)
        self.accounting = _validate.choice("accounting", accounting, Accounting)
        levels = levels_for(len(points))
        check_size(
            {
                "nodes": node_count(all_depths(levels)),
                "coordinates": self.dim,
                "moments": self.power + 1,
                "copies": self.copies,
            },
            limit=memory_limit,
        )
        chosen = design(
            levels,
            estimator=estimator,
            branching=branching,
            noise=noise,
            accountant=self._accountant(budget, c),
            right=mirror_sign(self.power),
        )
        source = self._promise(
            chosen.account.composed,
            requested=budget.total,
            mechanisms=chosen.account.mechanisms,
            entropy=entropy,
            counted=counted,
        )
        self._trees = grown(
            chosen,
            self.box.to_unit(points),
            to_unit(signed[:, None], -self.weight_bound, self.weight_bound),
            power=self.power,
            copies=self.copies,
            entropy=source,
        )

    def _accountant(self, budget: Budget, c: float | str) -> Accountant:
        """Return what trees with so many levels cost: tightly, or by Algorithm 6."""
        trees = (self.power + 1) * self.dim * self.copies
        self.c = None
        if self.accounting is Accounting.TIGHT:
            return plain_accountant(budget, composition=self.accounting, each=trees)
        one = budget.share(self.copies)

        def line_at(c: float) -> Privacy:
            factor = c / math.sqrt(self.dim * math.log(1 / one.prime))
            return replace_privacy(factor * one.epsilon, one.delta / self.dim)

        def composed_at(c: float) -> Privacy:
            lines = compose_equal(line_at(c), self.dim, delta_prime=one.prime)
            return accounting.basic([(lines, self.copies)])

        self.c = settled_c(c, composed_at, budget.total)
        line, composed = line_at(self.c), check_composition(composed_at(self.c), budget.total)

        def account(kind: Noise, height: int) -> Account:
            share = height * (self.power + 1)
            noise = node_noise(kind, epsilon=line.epsilon / share, delta=line.delta / share)
            return Account(noise, height * trees, composed)

        return account

    @property
    def upper(self) -> float:
        """The right end of the interval in each coordinate."""
        return self.box.upper

    @property
    def estimator(self) -> Estimator:
        """How the nodes are read."""
        return estimator_of(self._trees.forest)

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self._trees.forest.nodes.nbytes

    def _positions(self, queries: ArrayLike) -> Floats:
        return self.box.to_unit(finite("Y", queries, shape=(None, self.dim)))

    def query(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy sum for each row of Y in [lower, upper]^d (clipped to it), (m,)."""
        return self._trees.forest.in_parts(self._medians, self._positions(Y))

    def _medians(self, positions: Floats) -> Floats:
        """Return the median over copies of the sums over coordinates, shape (m,)."""
        lines = self._trees.query(positions)[..., 0]
        return np.asarray(self._scale * np.median(lines.sum(axis=1), axis=1))

    def variance(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the exact noise variance of a single copy's answers, shape (m,)."""
        return np.asarray(self._scale**2 * self._trees.variance(self._positions(Y)).sum(axis=1))

    @property
    def deterministic_error(self) -> float:
        """The error without noise, worst case: points in the query's own leaves, and rounding."""
        line = self._trees.same_leaf_error + self._trees.rounding_error
        return float(self.dim * self._scale * line)

    def _bound(self, failure: float) -> float:
        """Return a bound on one copy's error at the worst query."""
        part, rounding = self._trees.noise_sum(self._scale, self.dim)
        return tails.tail_bound((part,), failure) + rounding + self.deterministic_error

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of one query, with at least this probability."""
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        return self._bound(1 - confidence)


class DPTreeHighDimAdaptive(DPTreeHighDim):
    """The same for p = 1 and all queries at once: the median of l copies at (ε/l, δ/l, δ'/l).

    Section "Adaptive Query". Queries are snapped to a net, where the bound holds for all points at
    once with probability 1 - p_f.

    Args:
        X: as for `DPTreeHighDim`, and so are the arguments not listed here.
        weights: likewise.
        upper: likewise.
        weight_bound: likewise.
        epsilon: likewise.
        delta: likewise.
        delta_prime: likewise.
        c: likewise.
        p_f: how often any answer at all may miss the bound.
        eps_0: radius of the net in each coordinate; by default a sixteenth of the interval.
        copies: l, to choose it yourself; by default as many as p_f needs, and one with
            accounting="tight", where a union bound over the net takes the median's place.
        lower: likewise.
        accounting: likewise.
        estimator: likewise.
        branching: likewise.
        noise: likewise.
        entropy: likewise.
        memory_limit: likewise.
        **counted: likewise.
    """

    def __init__(
        self,
        X: ArrayLike,  # noqa: N803
        weights: ArrayLike,
        *,
        upper: float,
        weight_bound: float,
        epsilon: float,
        delta: float,
        delta_prime: float,
        c: float | str = LARGEST,
        p_f: float,
        eps_0: float | None = None,
        copies: int | None = None,
        lower: float = 0.0,
        accounting: str = Accounting.PAPER,
        estimator: str = Estimator.PAPER,
        branching: int | None = None,
        noise: Noise | None = None,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        _validate.real("p_f", p_f, above=0, below=1)
        side = Box(lower, upper).side
        dim = finite("X", X, shape=(None, None)).shape[1]
        self.net = Net(side, side / 16 if eps_0 is None else eps_0, dim)
        tightly = accounting == Accounting.TIGHT
        needed = 1 if tightly else tails.copies_needed(self.net.failure_per_point(p_f))
        self.copies = checked_copies(copies, needed)
        super().__init__(
            X,
            weights,
            p=1,
            upper=upper,
            weight_bound=weight_bound,
            epsilon=epsilon,
            delta=delta,
            delta_prime=delta_prime,
            c=c,
            lower=lower,
            accounting=accounting,
            estimator=estimator,
            branching=branching,
            noise=noise,
            entropy=entropy,
            memory_limit=memory_limit,
            **counted,
        )

    def _positions(self, queries: ArrayLike) -> Floats:
        queries = self.box.shifted(finite("Y", queries, shape=(None, self.dim)))
        return self.net.snap(queries) / self.box.side

    @property
    def deterministic_error(self) -> float:
        """The error without noise, snapping included: n·R_w·d·ε_0 by the Lipschitz lemma."""
        snapping = self._trees.rows * self.weight_bound * self.dim * self.net.radius
        return float(super().deterministic_error + snapping)

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of all queries together, however chosen."""
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        at_each_point = self.net.failure_per_point(1 - confidence)
        single = tails.single_failure_for(self.copies, at_each_point)
        return self._bound(single)
