"""Private cross-attention (Algorithm 1, the main theorem), accounted as in the paper or tightly.

And what it would need for data that is too large to build it for.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from discreet import _validate, accounting
from discreet._typing import Floats
from discreet._validate import warn
from discreet.errors import BudgetExceeded
from discreet.paper.bounds import Box, Logits, Net, copies_needed, single_failure_for, tail_bound
from discreet.paper.design import Nodes
from discreet.paper.forest import all_depths, levels_for, node_count
from discreet.paper.options import AttentionOptions, Budget, Scope, replace_privacy, takes
from discreet.paper.softmax import (
    MOMENTS,
    SoftmaxAccount,
    SoftmaxDesign,
    SoftmaxStructure,
    SumsState,
    paper_budgets,
)
from discreet.paper.structure import WHOLE, Promise, check_rows, finite, kept, release
from discreet.privacy import Privacy

# How the scope of one entry begins; what the whole object costs follows.
ENTRY = "one fixed entry (column) of the answers, for ever (not the whole structure, which is "

# A denominator this many standard deviations of its noise is clear of it.
_CLEAR = 5.0
_MOST_ROWS = 2**200


@dataclass(frozen=True)
class AttentionState(SumsState):
    """Softmax sums of all columns of the values, and of the denominator, which is the last.

    Attributes:
        net: that queries are snapped to.
        scope: what the guarantee covers.
    """

    net: Net
    scope: Scope

    @property
    def structures(self) -> int:
        """How many columns the guarantee covers, the denominator one of them."""
        return _structures(self.scope, self.sums.design.private)

    @property
    def covered(self) -> Nodes:
        """The nodes of a row that the guarantee covers."""
        return self.sums.design.mechanisms(self.sums.noise, self.structures - 1)

    @property
    def whole(self) -> Nodes:
        """All nodes of a row."""
        return super().covered


def _structures(scope: Scope, columns: int) -> int:
    """Return from how many columns an answer is computed: an entry from two, a vector from all."""
    return 2 if scope is Scope.ENTRY else columns + 1


class DPCrossAttention(SoftmaxStructure):
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
    """

    state: AttentionState

    net: Net = kept("state.net", "The net that queries are snapped to.")
    scope: Scope = kept("state.scope", "What the guarantee covers.")
    rows: int = kept("state.sums.trees.rows", "The public number of rows: n.")
    columns: int = kept("state.sums.design.private", "The columns of the values: d_v.")
    value_bound: float = kept("state.bound", "R_w, that values and answers are clipped to.")

    @takes(AttentionOptions)
    def __init__(
        self,
        K: ArrayLike,  # noqa: N803
        V: ArrayLike,  # noqa: N803
        options: AttentionOptions,
    ) -> None:
        keys = finite("K", K, shape=(None, None))
        values = finite("V", V, shape=(None, None))
        check_rows({"K": keys, "V": values})
        self.state, self.promise = _built(keys, values, options)
        self._warn_if_useless(1 - options.p_f)

    def _warn_if_useless(self, confidence: float) -> None:
        """Warn if answers will be noise; from public parameters only."""
        denominator = self._column_bound(self.columns, confidence)
        if denominator > self.rows:
            warn(
                f"The denominator's error bound, {denominator:.3g}, exceeds the number of rows, "
                f"{self.rows}: answers of this structure are noise.",
                UserWarning,
            )

    def sums(self, Q: ArrayLike) -> tuple[Floats, Floats]:  # noqa: N803
        """Return the noisy AV, shape (m, d_v), and D, shape (m,), neither divided nor clamped.

        Args:
            Q: queries, shape (m, d); clipped to [0, upper] and snapped to the net.
        """
        queries = self._inside("Q", Q)
        answers = self._shifted_sums(queries) * self.logits.unshifted(queries)[:, None]
        return answers[:, :-1], answers[:, -1]

    def _shifted_sums(self, queries: Floats) -> Floats:
        """Return the sums over keys that begin at zero, shape (m, d_v + 1), D the last."""
        return np.asarray(np.median(self.state.sums.query(queries), axis=1))

    def variance(self, Q: ArrayLike) -> tuple[Floats, Floats]:  # noqa: N803
        """Return the exact noise variances of one copy's `sums`: of AV (m, d_v) and of D (m,).

        A quotient has none that is exact: divide by D for its first order.

        Args:
            Q: as for `sums`.
        """
        queries = self._inside("Q", Q)
        both = self.state.sums.variance(queries) * self.logits.unshifted(queries)[:, None] ** 2
        return both[:, :-1], both[:, -1]

    def query(self, Q: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy attention rows, shape (m, d_v), clamped to their public ranges.

        Args:
            Q: as for `sums`.
        """
        shifted = self._shifted_sums(self._inside("Q", Q))
        numerator, denominator = shifted[:, :-1], shifted[:, -1]
        most = self.rows * math.exp(self.kernel.largest_logit)
        safe = np.clip(denominator, self.rows, most)
        return np.clip(numerator / safe[:, None], -self.value_bound, self.value_bound)

    def sums_error_bound(self, confidence: float) -> tuple[float, float]:
        """Return bounds on the noise and tree errors of all answers of AV and of D, however chosen.

        Without the relative part `relative_error`·A|V| and `relative_error`·D. In entry scope the
        probability is that of one fixed column and D. With a `lower` end below zero: of shifted
        sums, which are at least as large.

        Args:
            confidence: the probability with which both hold, at least.
        """
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        return self._column_bound(0, confidence), self._column_bound(self.columns, confidence)

    def _column_bound(self, column: int, confidence: float) -> float:
        """Return a bound on the noise and tree errors of one column's sums, D the last."""
        at_each_point = self.net.failure_per_point((1 - confidence) / self.state.structures)
        single = single_failure_for(self.copies, at_each_point)
        sums = self.state.sums
        return float(tail_bound(sums.noise_sums(column), single)) + sums.tree_error(column)

    def _bound(self, confidence: float) -> float:
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


def _built(
    keys: Floats, values: Floats, options: AttentionOptions
) -> tuple[AttentionState, Promise]:
    """Return the state of a cross-attention, and what it costs."""
    (rows, columns), scope = values.shape, Scope(options.scope)
    logits = options.logits(keys.shape[1])
    net, structures = logits.net(options.eps_0), _structures(scope, columns)
    copies = options.copies_on(net, structures)
    bounds = (*[options.value_bound] * columns, 1.0)  # the last: the denominator's
    design = SoftmaxDesign(logits.kernel, logits.box.side, bounds, columns, rows, copies)
    design.check_size(options.memory_limit)
    account = design.account(options, structures - 1)
    whole = design.mechanisms(account.noise, columns)
    covers = WHOLE
    if scope is Scope.ENTRY:
        covers = f"{ENTRY}{_of_whole(design, account, options)}),"
    noisy, promise = release(
        design.exact(
            logits.box.shifted(keys), np.append(values, np.ones((rows, 1)), axis=1), account.noise
        ),
        options,
        composed=account.composed,
        whole=whole,
        scope=covers,
    )
    sums = design.released(noisy, account.noise)
    return AttentionState(options.composition, sums, logits, account.c, net, scope), promise


def _of_whole(design: SoftmaxDesign, account: SoftmaxAccount, options: AttentionOptions) -> Privacy:
    """Return what the whole object costs, if the guarantee covers one entry of it."""
    budget = options.budget
    if account.c is not None:
        return design.composed(budget.share(2 * design.copies), account.c, design.private)
    in_scope, in_whole = (
        sum(count for _, count in design.mechanisms(account.noise, private))
        for private in (1, design.private)
    )
    # The whole may spend more of δ, in proportion.
    delta = min(budget.total.delta * in_whole / in_scope, 0.5)
    spent = accounting.tight([(account.noise.features.mechanism, in_whole)], delta=delta)
    if math.isinf(spent):
        raise BudgetExceeded(
            "Expected the whole structure, which an entry is a part of, to have a guarantee; "
            "the truncated tails of all columns exceed any: use a smaller delta."
        )
    return replace_privacy(spent, delta)


@dataclass(frozen=True)
class Needs:
    """Bytes of state for the rows at hand, and the number of rows from which answers are clear."""

    state_bytes: int
    rows: int


def attention_needs(
    *,
    rows: int,
    key_dim: int,
    value_dim: int,
    largest_logit: float,
    epsilon: float,
    delta: float,
    c: float = 0.1,
    eps_s: float = 0.05,
    p_f: float = 0.1,
) -> Needs:
    """Return what `DPCrossAttention` (whole vector, the paper's accounting) would need.

    From the formulas of Algorithm 1 alone, for the typical noise of a denominator at the worst
    query: for data that is too large to build it for.

    Args:
        rows: n.
        key_dim: d.
        value_dim: d_v.
        largest_logit: R², the largest of ⟨q, k⟩/d.
        epsilon: of the whole.
        delta: half of it for truncation, half for composition.
        c: the paper's constant.
        eps_s: relative error of the kernel.
        p_f: how often any answer may miss its bound.
    """
    upper = math.sqrt(_validate.real("largest_logit", largest_logit, above=0))
    logits = Logits.of(key_dim, Box(0.0, upper), eps_s=eps_s)
    kernel, net = logits.kernel, logits.net(None)
    structures = value_dim + 1
    copies = copies_needed(net.failure_per_point(p_f / structures))
    numbers = (
        node_count(all_depths(levels_for(rows))) * kernel.features * MOMENTS * copies * structures
    )
    share = Budget(epsilon, delta / 2, delta / 2).share(structures * copies)

    def noise(count: int) -> float:
        """Return the standard deviation of one copy's denominator at the worst query."""
        levels = levels_for(count)
        node = paper_budgets(share, c=c, features=kernel.features, levels=levels).features
        # Laplace noise for a change of two (a replaced row), in units of a weight.
        variance = 2 * (2 / node.epsilon) ** 2
        # Σ Γ⁴ over all features is at most that of the full exponential series, I_0(2R²/d)^d.
        ranges = float(special.i0(2 * largest_logit / key_dim)) ** key_dim
        return 0.5 * math.sqrt(ranges * 7 * levels * variance)

    needed = 2
    while needed < _CLEAR * noise(needed) and needed < _MOST_ROWS:
        needed *= 2
    return Needs(8 * numbers, needed)
