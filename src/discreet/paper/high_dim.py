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
from discreet.paper.distance import DistanceForest, answer_scale, to_unit
from discreet.paper.forest import levels_for, node_count
from discreet.paper.net import Net
from discreet.paper.node import Noise, node_noise
from discreet.paper.structure import (
    MEMORY_LIMIT,
    Budget,
    Structure,
    check_composition,
    check_size,
    compose_equal,
    finite,
    public_bound,
    weighted_points,
)


class DPTreeHighDim(Structure):
    """Σ_i w_i·‖y - x_i‖_p^p on [0, upper]^d: d DPTreeDistance at (cε/√(d·ln(1/δ')), δ/d).

    Algorithm 6, Theorem "DPTreeHighDim": (epsilon, delta + delta_prime)-private if c is small
    enough, by the composition theorem with its own constants; one that is not raises
    `BudgetExceeded`.

    Args:
        X: points, shape (n, d); clipped to [0, upper].
        weights: shape (n,); clipped to ±weight_bound.
        p: an integer power ≥ 1.
        upper: right end of the interval in each coordinate.
        weight_bound: R_w.
        epsilon: for the whole structure and all queries.
        delta: for truncation.
        delta_prime: for advanced composition; the total is delta + delta_prime.
        c: the paper's constant.
        noise: which law the nodes get.
        entropy: where the noise comes from; by default the operating system.
        memory_limit: in bytes.
        **counted: ledger, dataset and analyst, to be counted (`discreet.ledger`).
    """

    copies = 1

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
        c: float,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta, delta_prime)
        _validate.real("c", c, above=0, at_most=1e9)
        points, signed = weighted_points("X", X, weights, dimensions=2)
        self.dim = points.shape[1]
        self.power = _validate.whole("p", p, at_least=1, at_most=200)
        self.upper = public_bound("upper", upper)
        self.weight_bound = public_bound("weight_bound", weight_bound)
        self._scale = answer_scale(self.weight_bound, self.upper, self.power)
        levels = levels_for(len(points))
        check_size(
            {
                "nodes": node_count(levels),
                "coordinates": self.dim,
                "moments": self.power + 1,
                "copies": self.copies,
            },
            limit=memory_limit,
        )
        one = budget.share(self.copies)
        factor = c / math.sqrt(self.dim * math.log(1 / one.prime))
        line = Budget(factor * one.epsilon, one.delta / self.dim)
        share = levels * (self.power + 1)
        lines = compose_equal(line.spent, self.dim, delta_prime=one.prime)
        composed = check_composition(accounting.basic([(lines, self.copies)]), budget.total)
        of_node = node_noise(noise, epsilon=line.epsilon / share, delta=line.delta / share)
        source = self._promise(
            composed,
            requested=budget.total,
            mechanisms=[(of_node.mechanism, share * self.dim * self.copies)],
            entropy=entropy,
            counted=counted,
        )
        self._trees = DistanceForest.grow(
            to_unit(points, 0.0, self.upper),
            to_unit(signed[:, None], -self.weight_bound, self.weight_bound),
            power=self.power,
            noise=of_node,
            copies=self.copies,
            entropy=source,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self._trees.forest.nodes.nbytes

    def _positions(self, queries: ArrayLike) -> Floats:
        return to_unit(finite("Y", queries, shape=(None, self.dim)), 0.0, self.upper)

    def query(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy distance sum for each row of Y in [0, upper]^d (clipped to it), (m,)."""
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

    def _noise_sum(self) -> tails.NoiseSum:
        """The noise of one copy's answer to the worst query."""
        weights = tuple(self._scale * weight for weight in self._trees.noise_weights())
        counts = (self._trees.forest.levels * self.dim,) * len(weights)
        return tails.NoiseSum(self._trees.noise.law, weights, counts)

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of one query, with at least this probability."""
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        noise = tails.tail_bound((self._noise_sum(),), 1 - confidence)
        return noise + self.deterministic_error


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
        eps_0: radius of the net in each coordinate; by default upper/16.
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
        c: float,
        p_f: float,
        eps_0: float | None = None,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        _validate.real("p_f", p_f, above=0, below=1)
        upper = public_bound("upper", upper)
        dim = finite("X", X, shape=(None, None)).shape[1]
        self.net = Net(upper, upper / 16 if eps_0 is None else eps_0, dim)
        self.copies = tails.copies_needed(self.net.failure_per_point(p_f))
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
            noise=noise,
            entropy=entropy,
            memory_limit=memory_limit,
            **counted,
        )

    def _positions(self, queries: ArrayLike) -> Floats:
        return self.net.snap(finite("Y", queries, shape=(None, self.dim))) / self.upper

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
        return tails.tail_bound((self._noise_sum(),), single) + self.deterministic_error
