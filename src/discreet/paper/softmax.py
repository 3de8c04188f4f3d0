"""Weighted softmax sums wᵀexp(Xy/d): DPTreeSoftmax (Algorithm 3) and its adaptive form (7)."""

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate, accounting
from discreet._typing import Floats
from discreet.features.taylor import Taylor
from discreet.ledger.account import Counted
from discreet.noise import Entropy
from discreet.paper import tails
from discreet.paper.box import Box
from discreet.paper.design import tight_account
from discreet.paper.forest import levels_for
from discreet.paper.logits import Logits
from discreet.paper.node import Noise
from discreet.paper.softmax_forest import (
    MOMENTS,
    SoftmaxForest,
    SoftmaxNoise,
    check_softmax_size,
    paper_budgets,
    paper_composition,
    softmax_mechanisms,
)
from discreet.paper.structure import (
    LARGEST,
    MEMORY_LIMIT,
    Accounting,
    Budget,
    Structure,
    check_composition,
    checked_c,
    checked_copies,
    finite,
    public_bound,
    settled_c,
    weighted_points,
)
from discreet.privacy import Privacy


class DPTreeSoftmax(Structure):
    """wᵀexp(Xy/d) for y in [0, upper]^d: r DPTreeDistance on features, and one for s_w.

    Algorithm 3, Theorem "Softmax query": (epsilon, delta + delta_prime)-private if c is small
    enough; one that is not raises `BudgetExceeded`. The kernel's error is eps_s·|w|ᵀexp(Xy/d): with
    the absolute values of the weights, because errors do not cancel when weights do.

    Args:
        X: points, shape (n, d); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
        upper: R, the right end of the range of each coordinate.
        weight_bound: R_w.
        epsilon: for the whole structure and all queries.
        delta: for truncation.
        delta_prime: for advanced composition; the total is delta + delta_prime.
        c: the paper's constant; "largest" is the largest that composes to what was asked for. Only
            for accounting="paper".
        eps_s: relative error of the kernel; sets the degree, and so r = C(d + s, s).
        degree: s, instead of eps_s.
        scale: of the logits, scale·⟨x, y⟩; 1/d in the paper.
        lower: left end of the range of points, at most zero; zero in the paper. Points are shifted
            to begin at zero; queries are not, and stay in [0, upper].
        accounting: "paper" splits the budget as the paper does; "tight" gives every node the least
            noise whose composition is (epsilon, delta + delta_prime).
        noise: which law the nodes get.
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
        upper: float,
        weight_bound: float,
        epsilon: float,
        delta: float,
        delta_prime: float,
        c: float | str = LARGEST,
        eps_s: float | None = None,
        degree: int | None = None,
        scale: float | None = None,
        lower: float = 0.0,
        accounting: str = Accounting.PAPER,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta, delta_prime)
        checked_c(c)
        points, signed = weighted_points("X", X, weights, dimensions=2)
        self.box = Box(lower, upper)
        self.weight_bound = public_bound("weight_bound", weight_bound)
        self.accounting = _validate.choice("accounting", accounting, Accounting)
        self.logits = Logits.of(points.shape[1], self.box, eps_s=eps_s, degree=degree, scale=scale)
        features = self.kernel.features
        check_softmax_size(len(points), features, copies=self.copies, columns=1, limit=memory_limit)
        composed, of_nodes = self._nodes(budget, c, noise, levels_for(len(points)))
        mechanisms = softmax_mechanisms(
            of_nodes,
            features=features,
            levels=levels_for(len(points)),
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
            self.box.shifted(points),
            signed[:, None],
            kernel=self.kernel,
            upper=self.box.side,
            bounds=np.array([self.weight_bound]),
            private_columns=1,
            noise=of_nodes,
            copies=self.copies,
            entropy=source,
        )

    def _nodes(
        self, budget: Budget, c: float | str, kind: Noise, levels: int
    ) -> tuple[Privacy, SoftmaxNoise]:
        """Return what the nodes compose to, and their noise."""
        self.c = None
        if self.accounting is Accounting.TIGHT:
            count = levels * MOMENTS * self.copies * (self.kernel.features + 1)
            account = tight_account(kind, budget.total, count)
            return account.composed, SoftmaxNoise(account.noise, account.noise)
        one = budget.share(self.copies)
        size = {"features": self.kernel.features, "levels": levels}

        def composed_at(c: float) -> Privacy:
            budgets = paper_budgets(one, c=c, **size)
            copy = paper_composition(budgets, one, private_total=True, **size)
            return accounting.basic([(copy, self.copies)])

        self.c = settled_c(c, composed_at, budget.total)
        composed = check_composition(composed_at(self.c), budget.total)
        return composed, paper_budgets(one, c=self.c, **size).noise(kind)

    @property
    def kernel(self) -> Taylor:
        """The feature map P."""
        return self.logits.kernel

    @property
    def upper(self) -> float:
        """R, the right end of the range of each coordinate."""
        return self.box.upper

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self._sums.nbytes

    def _queries(self, queries: ArrayLike) -> Floats:
        return self.logits.inside(finite("Y", queries, shape=(None, self.kernel.dim)))

    def query(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy sum for each row of Y in [0, upper]^d (clipped to it), shape (m,)."""
        queries = self._queries(Y)
        shifted = np.median(self._sums.query(queries)[..., 0], axis=1)
        return np.asarray(shifted * self.logits.unshifted(queries))

    def variance(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the exact noise variance of a single copy's answers, shape (m,)."""
        queries = self._queries(Y)
        return self._sums.variance(queries)[:, 0] * self.logits.unshifted(queries) ** 2

    @property
    def relative_error(self) -> float:
        """The error relative to |w|ᵀexp(Xy/d): the kernel's."""
        return self.kernel.error

    @property
    def deterministic_error(self) -> float:
        """The error without noise, worst case: kernel, points in the query's leaves, rounding.

        Of shifted sums, which are at least as large as the answers.
        """
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
        degree: likewise.
        scale: likewise.
        lower: likewise.
        p_f: how often any answer at all may miss the bound.
        eps_0: radius of the net in each coordinate; by default such that snapping moves a logit by
            at most ε_s (`Logits.net`).
        copies: l, to choose it yourself; by default as many as p_f needs, and one with
            accounting="tight", where a union bound over the net takes the median's place.
        accounting: likewise.
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
        eps_s: float | None = None,
        degree: int | None = None,
        scale: float | None = None,
        lower: float = 0.0,
        p_f: float,
        eps_0: float | None = None,
        copies: int | None = None,
        accounting: str = Accounting.PAPER,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        dim = finite("X", X, shape=(None, None)).shape[1]
        logits = Logits.of(dim, Box(lower, upper), eps_s=eps_s, degree=degree, scale=scale)
        self.net = logits.net(eps_0)
        _validate.real("p_f", p_f, above=0, below=1)
        tightly = accounting == Accounting.TIGHT
        needed = 1 if tightly else tails.copies_needed(self.net.failure_per_point(p_f))
        self.copies = checked_copies(copies, needed)
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
            degree=degree,
            scale=scale,
            lower=lower,
            accounting=accounting,
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
        return self.logits.snapped_error(self.net)

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of all queries together, however chosen."""
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        at_each_point = self.net.failure_per_point(1 - confidence)
        single = tails.single_failure_for(self.copies, at_each_point)
        return tails.tail_bound(self._sums.noise_sums(0), single) + self.deterministic_error
