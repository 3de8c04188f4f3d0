"""Private cross-attention (Algorithm 1, the main theorem), accounted as in the paper or tightly."""

import math
from enum import StrEnum
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate, accounting
from discreet._typing import Floats
from discreet.errors import BudgetExceeded
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
    WHOLE,
    Accounting,
    Budget,
    Structure,
    check_composition,
    check_rows,
    checked_c,
    checked_copies,
    finite,
    public_bound,
    replace_privacy,
    settled_c,
    warn_noise,
)
from discreet.privacy import Privacy

# How the scope of one entry begins; what the whole object costs follows.
ENTRY = "one fixed entry (column) of the answers, for ever (not the whole structure, which is "


class Scope(StrEnum):
    """What one guarantee covers: the whole output vector, or one fixed entry of it for ever."""

    VECTOR = "vector"
    ENTRY = "entry"


class DPCrossAttention(Structure):
    """Rows of Attn(Q, K, V) = D⁻¹AV, A_ij = exp(⟨Q_i, K_j⟩/d): a softmax structure for each column.

    Algorithm 1, Theorem "Softmax cross-attention": (epsilon, delta + delta_prime)-private for keys
    and values together, any number of adaptive queries. The denominator's weights are all one, so
    its weight bound is 1 and its s_w = n is public. Answers are clamped to what is public: D to
    [n, n·exp(R²)] and outputs to ±value_bound.

    Keys that may be negative need `lower`: they are shifted to begin at zero, which multiplies all
    weights of a query alike and cancels in D⁻¹A.

    Args:
        K: keys, shape (n, d); clipped to [lower, upper].
        V: values, shape (n, d_v); clipped to ±value_bound.
        upper: R, the right end of the range of each coordinate.
        value_bound: R_w.
        epsilon: for what `scope` covers and all queries.
        delta: for truncation.
        delta_prime: for advanced composition; the total is delta + delta_prime.
        c: the paper's constant; "largest" is the largest that composes to what was asked for. Only
            for accounting="paper".
        eps_s: relative error of the kernel; sets the degree and the net.
        degree: s, instead of eps_s.
        scale: of the logits, scale·⟨q, k⟩; 1/d in the paper.
        lower: left end of the range of keys, at most zero; zero in the paper. Queries stay in
            [0, upper].
        p_f: how often any answer at all may miss the bound.
        eps_0: radius of the net in each coordinate; by default such that snapping moves a logit by
            at most ε_s.
        copies: l, to choose it yourself.
        scope: "vector" covers the object; "entry" covers one fixed column of the output only.
        accounting: "paper" splits the budget as the paper does and takes a median of l copies;
            "tight" gives every node the least noise whose composition is (epsilon, delta +
            delta_prime), with one copy and a union bound over the net instead of the median.
        noise: which law the nodes get.
        entropy: where the noise comes from; by default the operating system.
        memory_limit: in bytes.
        **counted: ledger, dataset and analyst, to be counted (`discreet.ledger`).
    """

    c: float | None  # None with tight accounting

    def __init__(
        self,
        K: ArrayLike,  # noqa: N803
        V: ArrayLike,  # noqa: N803
        *,
        upper: float,
        value_bound: float,
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
        scope: str = Scope.VECTOR,
        accounting: str = Accounting.PAPER,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta, delta_prime)
        checked_c(c)
        _validate.real("p_f", p_f, above=0, below=1)
        keys = finite("K", K, shape=(None, None))
        values = finite("V", V, shape=(None, None))
        check_rows({"K": keys, "V": values})
        self.scope = _validate.choice("scope", scope, Scope)
        self.accounting = _validate.choice("accounting", accounting, Accounting)
        self.box = Box(lower, upper)
        self.value_bound = public_bound("value_bound", value_bound)
        self.rows, self.columns = values.shape
        self.logits = Logits.of(keys.shape[1], self.box, eps_s=eps_s, degree=degree, scale=scale)
        self.net = self.logits.net(eps_0)
        # An entry is computed from two structures, the vector from all of them.
        self._structures = 2 if self._is_part else self.columns + 1
        tightly = self.accounting is Accounting.TIGHT
        failure = self.net.failure_per_point(p_f / self._structures)
        self.copies = checked_copies(copies, 1 if tightly else tails.copies_needed(failure))
        check_softmax_size(
            self.rows,
            self.kernel.features,
            copies=self.copies,
            columns=self.columns + 1,
            limit=memory_limit,
        )
        composed, whole, nodes = (
            self._tight_nodes(budget, noise) if tightly else self._paper_nodes(budget, c, noise)
        )
        source = self._promise(
            composed,
            requested=budget.total,
            mechanisms=self._mechanisms_of(self._structures, nodes),
            entropy=entropy,
            counted=counted,
            scope=self._scope_text(whole),
            whole=self._mechanisms_of(self.columns + 1, nodes) if self._is_part else None,
        )
        self._sums = self._grow(keys, values, nodes, source)
        self._warn_if_useless(1 - p_f)

    @property
    def kernel(self) -> Taylor:
        """The feature map P."""
        return self.logits.kernel

    @property
    def upper(self) -> float:
        """R, the right end of the range of each coordinate."""
        return self.box.upper

    @property
    def _is_part(self) -> bool:
        """Whether the guarantee covers one column only, and not the object."""
        return self.scope is Scope.ENTRY

    def _mechanisms_of(
        self, structures: int, noise: SoftmaxNoise
    ) -> list[tuple[accounting.Mechanism, int]]:
        """Return the nodes of so many columns, the denominator one of them."""
        return softmax_mechanisms(
            noise,
            features=self.kernel.features,
            levels=levels_for(self.rows),
            copies=self.copies,
            columns=structures,
            private_columns=structures - 1,
        )

    def _grow(
        self, keys: Floats, values: Floats, noise: SoftmaxNoise, entropy: Entropy
    ) -> SoftmaxForest:
        """Build the trees of all columns, the last of which has weights one: the denominator."""
        return SoftmaxForest.grow(
            self.box.shifted(keys),
            np.concatenate([values, np.ones((self.rows, 1))], axis=1),
            kernel=self.kernel,
            upper=self.box.side,
            bounds=np.append(np.full(self.columns, self.value_bound), 1.0),
            private_columns=self.columns,
            noise=noise,
            copies=self.copies,
            entropy=entropy,
        )

    def _scope_text(self, whole: Privacy) -> str:
        """Return what the guarantee covers; an entry's says what the whole object costs."""
        if not self._is_part:
            return WHOLE
        return f"{ENTRY}{whole}),"

    def _paper_nodes(
        self, budget: Budget, c: float | str, noise: Noise
    ) -> tuple[Privacy, Privacy, SoftmaxNoise]:
        """Return what the paper's split composes to: in scope, in whole, and the noise."""
        size = {"features": self.kernel.features, "levels": levels_for(self.rows)}
        one = budget.share(self._structures * self.copies)

        def composed_at(c: float, columns: int) -> Privacy:
            budgets = paper_budgets(one, c=c, **size)
            column, denominator = (
                paper_composition(budgets, one, private_total=private, **size)
                for private in (True, False)
            )
            return accounting.basic([(column, columns * self.copies), (denominator, self.copies)])

        in_scope = self._structures - 1
        self.c = settled_c(c, lambda c: composed_at(c, in_scope), budget.total)
        return (
            check_composition(composed_at(self.c, in_scope), budget.total),
            composed_at(self.c, self.columns),
            paper_budgets(one, c=self.c, **size).noise(noise),
        )

    def _tight_nodes(self, budget: Budget, noise: Noise) -> tuple[Privacy, Privacy, SoftmaxNoise]:
        """Return what the least noise in the budget costs: in scope, in whole, and that noise."""
        self.c = None
        share = levels_for(self.rows) * MOMENTS * self.copies
        in_scope, in_whole = (
            share * (self.kernel.features * structures + structures - 1)
            for structures in (self._structures, self.columns + 1)
        )
        account = tight_account(noise, budget.total, in_scope)
        node = account.noise
        # The whole may spend more of δ, in proportion.
        delta = min(budget.total.delta * in_whole / in_scope, 0.5)
        spent = accounting.tight([(node.mechanism, in_whole)], delta=delta)
        if math.isinf(spent):
            raise BudgetExceeded(
                "Expected the whole structure, which an entry is a part of, to have a guarantee; "
                "the truncated tails of all columns exceed any: use a smaller delta."
            )
        whole = replace_privacy(spent, delta)
        return account.composed, whole, SoftmaxNoise(node, node)

    def _warn_if_useless(self, confidence: float) -> None:
        _, denominator = self.sums_error_bound(confidence)
        if denominator > self.rows:
            warn_noise(
                f"The denominator's error bound, {denominator:.3g}, exceeds the number of rows, "
                f"{self.rows}: answers of this structure are noise."
            )

    @property
    def nbytes(self) -> int:
        """Bytes of noisy state."""
        return self._sums.nbytes

    def sums(self, Q: ArrayLike) -> tuple[Floats, Floats]:  # noqa: N803
        """Return the noisy AV, shape (m, d_v), and D, shape (m,), neither divided nor clamped.

        Args:
            Q: queries, shape (m, d); clipped to [0, upper] and snapped to the net.
        """
        queries = self._queries(Q)
        answers = self._shifted_sums(queries) * self.logits.unshifted(queries)[:, None]
        return answers[:, :-1], answers[:, -1]

    def _queries(self, queries: ArrayLike) -> Floats:
        return self.net.snap(finite("Q", queries, shape=(None, self.kernel.dim)))

    def _shifted_sums(self, queries: Floats) -> Floats:
        """Return the sums over keys that begin at zero, shape (m, d_v + 1), D the last."""
        return np.asarray(np.median(self._sums.query(queries), axis=1))

    def variance(self, Q: ArrayLike) -> tuple[Floats, Floats]:  # noqa: N803
        """Return the exact noise variances of one copy's `sums`: of AV (m, d_v) and of D (m,).

        A quotient has none that is exact: divide by D for its first order.
        """
        queries = self._queries(Q)
        both = self._sums.variance(queries) * self.logits.unshifted(queries)[:, None] ** 2
        return both[:, :-1], both[:, -1]

    def query(self, Q: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy attention rows, shape (m, d_v), clamped to their public ranges."""
        shifted = self._shifted_sums(self._queries(Q))
        numerator, denominator = shifted[:, :-1], shifted[:, -1]
        most = self.rows * math.exp(self.kernel.largest_logit)
        safe = np.clip(denominator, self.rows, most)
        return np.clip(numerator / safe[:, None], -self.value_bound, self.value_bound)

    @property
    def relative_error(self) -> float:
        """ε' of kernel and snapping, relative to A|V| and D; the output's is 2ε'/(1 - ε')."""
        return self.logits.snapped_error(self.net)

    def sums_error_bound(self, confidence: float) -> tuple[float, float]:
        """Return bounds on the noise and tree errors of all answers of AV and of D, however chosen.

        Without the relative part `relative_error`·A|V| and `relative_error`·D. In entry scope the
        probability is that of one fixed column and D. With a `lower` end below zero: of shifted
        sums, which are at least as large.
        """
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        at_each_point = self.net.failure_per_point((1 - confidence) / self._structures)
        single = tails.single_failure_for(self.copies, at_each_point)
        numerator, denominator = (
            float(tails.tail_bound(self._sums.noise_sums(column), single))
            + self._sums.tree_error(column)
            for column in (0, self.columns)
        )
        return numerator, denominator

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of all outputs together, however the queries are chosen.

        In entry scope: of all outputs of one fixed column.

        With |N̂ - N| ≤ ε'·R_w·D + ζ_v, |D̂ - D| ≤ ε'·D + ζ_d and D ≥ n, the output is off by at most
        (2ε'·R_w·n + ζ_v + R_w·ζ_d)/((1 - ε')·n - ζ_d), and never by more than 2R_w, the clamps'.
        """
        numerator, denominator = self.sums_error_bound(confidence)
        relative, bound, rows = self.relative_error, self.value_bound, float(self.rows)
        left = (1 - relative) * rows - denominator
        if left <= 0:
            return 2 * bound
        return min(
            2 * bound, (2 * relative * bound * rows + numerator + bound * denominator) / left
        )
