"""Weighted softmax sums wᵀexp(Xy/d): DPTreeSoftmax (Algorithm 2) and its adaptive form (7)."""

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate, accounting
from discreet._typing import Floats
from discreet.kernels import Taylor
from discreet.ledger.account import Counted
from discreet.noise import Entropy
from discreet.paper import tails
from discreet.paper.forest import levels_for
from discreet.paper.node import Noise
from discreet.paper.softmax_forest import (
    SoftmaxForest,
    check_softmax_size,
    paper_budgets,
    paper_composition,
    snapped_error,
    softmax_mechanisms,
    softmax_net,
)
from discreet.paper.structure import (
    MEMORY_LIMIT,
    Budget,
    Structure,
    check_composition,
    finite,
    public_bound,
    weighted_points,
)


class DPTreeSoftmax(Structure):
    """wᵀexp(Xy/d) for y in [0, upper]^d: r DPTreeDistance on features, and one for s_w.

    Algorithm 2, Theorem "Softmax query": (epsilon, delta + delta_prime)-private if c is small
    enough; one that is not raises `BudgetExceeded`. The kernel's error is eps_s·|w|ᵀexp(Xy/d): with
    the absolute values of the weights, because errors do not cancel when weights do.

    Args:
        X: points, shape (n, d); clipped to [0, upper].
        weights: shape (n,); clipped to ±weight_bound.
        upper: R, the right end of the range of each coordinate.
        weight_bound: R_w.
        epsilon: for the whole structure and all queries.
        delta: for truncation.
        delta_prime: for advanced composition; the total is delta + delta_prime.
        c: the paper's constant.
        eps_s: relative error of the kernel; sets the degree, and so r = C(d + s, s).
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
        upper: float,
        weight_bound: float,
        epsilon: float,
        delta: float,
        delta_prime: float,
        c: float,
        eps_s: float,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta, delta_prime)
        _validate.real("c", c, above=0, at_most=1e9)
        points, signed = weighted_points("X", X, weights, dimensions=2)
        self.upper = public_bound("upper", upper)
        self.weight_bound = public_bound("weight_bound", weight_bound)
        self.kernel = Taylor.on_box(points.shape[1], upper=self.upper, eps_s=eps_s)
        levels, features = levels_for(len(points)), self.kernel.features
        check_softmax_size(len(points), features, copies=self.copies, columns=1, limit=memory_limit)
        one = budget.share(self.copies)
        budgets = paper_budgets(one, c=c, features=features, levels=levels)
        copy = paper_composition(budgets, one, features=features, levels=levels, private_total=True)
        composed = check_composition(accounting.basic([(copy, self.copies)]), budget.total)
        of_nodes = budgets.noise(noise)
        mechanisms = softmax_mechanisms(
            of_nodes,
            features=features,
            levels=levels,
            copies=self.copies,
            columns=1,
            private_columns=1,
        )
        source = self._promise(
            composed,
            requested=budget.total,
            mechanisms=mechanisms,
            entropy=entropy,
            counted=counted,
        )
        self._sums = SoftmaxForest.grow(
            points,
            signed[:, None],
            kernel=self.kernel,
            upper=self.upper,
            bounds=np.array([self.weight_bound]),
            private_columns=1,
            noise=of_nodes,
            copies=self.copies,
            entropy=source,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self._sums.nbytes

    def _queries(self, queries: ArrayLike) -> Floats:
        return finite("Y", queries, shape=(None, self.kernel.dim))

    def query(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy sum for each row of Y in [0, upper]^d (clipped to it), shape (m,)."""
        return np.asarray(np.median(self._sums.query(self._queries(Y))[..., 0], axis=1))

    def variance(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the exact noise variance of a single copy's answers, shape (m,)."""
        return self._sums.variance(self._queries(Y))[:, 0]

    @property
    def relative_error(self) -> float:
        """The error relative to |w|ᵀexp(Xy/d): the kernel's."""
        return self.kernel.error

    @property
    def deterministic_error(self) -> float:
        """The error without noise, worst case: kernel, points in the query's leaves, rounding."""
        largest = self._sums.trees.rows * self.weight_bound * math.exp(self.kernel.largest_logit)
        return self.relative_error * largest + self._sums.tree_error(0)

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of one query, with at least this probability."""
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        noise = tails.tail_bound(self._sums.noise_sums(0), 1 - confidence)
        return noise + self.deterministic_error


class DPTreeSoftmaxAdaptive(DPTreeSoftmax):
    """The same for all queries at once: the median of l DPTreeSoftmax at (ε/l, δ/l, δ'/l).

    Algorithm 7, Theorem "Adaptive query Softmax data structure". Queries are snapped to a net of
    radius ε_0 = ε_s/R, where the bound holds for all points at once with probability 1 - p_f.

    Args:
        X: as for `DPTreeSoftmax`, and so are the arguments not listed here.
        weights: likewise.
        upper: likewise.
        weight_bound: likewise.
        epsilon: likewise.
        delta: likewise.
        delta_prime: likewise.
        c: likewise.
        eps_s: likewise; it also sets the net.
        p_f: how often any answer at all may miss the bound.
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
        eps_s: float,
        p_f: float,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        self.net = softmax_net(finite("X", X, shape=(None, None)).shape[1], upper, eps_s)
        _validate.real("p_f", p_f, above=0, below=1)
        self.copies = tails.copies_needed(self.net.failure_per_point(p_f))
        super().__init__(
            X,
            weights,
            upper=upper,
            weight_bound=weight_bound,
            epsilon=epsilon,
            delta=delta,
            delta_prime=delta_prime,
            c=c,
            eps_s=eps_s,
            noise=noise,
            entropy=entropy,
            memory_limit=memory_limit,
            **counted,
        )

    def _queries(self, queries: ArrayLike) -> Floats:
        return self.net.snap(super()._queries(queries))

    @property
    def relative_error(self) -> float:
        """The error relative to |w|ᵀexp(Xy/d): kernel and snapping."""
        return snapped_error(self.kernel, self.net)

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of all queries together, however chosen."""
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        at_each_point = self.net.failure_per_point(1 - confidence)
        single = tails.single_failure_for(self.copies, at_each_point)
        return tails.tail_bound(self._sums.noise_sums(0), single) + self.deterministic_error
