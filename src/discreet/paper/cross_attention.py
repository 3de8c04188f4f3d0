"""Private cross-attention (Algorithm 3, the main theorem), accounted as in the paper or tightly."""

import math
from enum import StrEnum
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
from discreet.paper.node import Noise, tight_node_noise
from discreet.paper.softmax_forest import (
    MOMENTS,
    SoftmaxForest,
    SoftmaxNoise,
    check_softmax_size,
    paper_budgets,
    paper_composition,
    snapped_error,
    softmax_mechanisms,
    softmax_net,
)
from discreet.paper.structure import (
    MEMORY_LIMIT,
    WHOLE,
    Budget,
    Structure,
    check_composition,
    check_rows,
    finite,
    public_bound,
    replace_privacy,
    warn_noise,
)
from discreet.privacy import Privacy


class Scope(StrEnum):
    """What one guarantee covers: the whole output vector, or one fixed entry of it for ever."""

    VECTOR = "vector"
    ENTRY = "entry"


class Accounting(StrEnum):
    """How the noise is set: by the paper's theorems, or by the privacy loss distribution."""

    PAPER = "paper"
    TIGHT = "tight"


class DPCrossAttention(Structure):
    """Rows of Attn(Q, K, V) = D⁻¹AV, A_ij = exp(⟨Q_i, K_j⟩/d): a softmax structure for each column.

    Algorithm 3, Theorem "Softmax cross-attention": (epsilon, delta + delta_prime)-private for keys
    and values together, any number of adaptive queries. The denominator's weights are all one, so
    its weight bound is 1 and its s_w = n is public. Answers are clamped to what is public: D to
    [n, n·exp(R²)] and outputs to ±value_bound.

    Args:
        K: keys, shape (n, d); clipped to [0, upper].
        V: values, shape (n, d_v); clipped to ±value_bound.
        upper: R, the right end of the range of each coordinate.
        value_bound: R_w.
        epsilon: for what `scope` covers and all queries.
        delta: for truncation.
        delta_prime: for advanced composition; the total is delta + delta_prime.
        c: the paper's constant (only for accounting="paper").
        eps_s: relative error of the kernel; sets the degree and the net.
        p_f: how often any answer at all may miss the bound.
        scope: "vector" covers the object; "entry" covers one fixed column of the output only.
        accounting: "paper" splits the budget as the paper does and takes a median of l copies;
            "tight" gives every node the least noise whose composition is (epsilon, delta +
            delta_prime), with one copy and a union bound over the net instead of the median.
        noise: which law the nodes get.
        entropy: where the noise comes from; by default the operating system.
        memory_limit: in bytes.
        **counted: ledger, dataset and analyst, to be counted (`discreet.ledger`).
    """

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
        c: float,
        eps_s: float,
        p_f: float,
        scope: str = Scope.VECTOR,
        accounting: str = Accounting.PAPER,
        noise: Noise = Noise.TRUNCATED_LAPLACE,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta, delta_prime)
        _validate.real("c", c, above=0, at_most=1e9)
        _validate.real("p_f", p_f, above=0, below=1)
        keys = finite("K", K, shape=(None, None))
        values = finite("V", V, shape=(None, None))
        check_rows({"K": keys, "V": values})
        self.scope = _validate.choice("scope", scope, Scope)
        self.accounting = _validate.choice("accounting", accounting, Accounting)
        self.upper = public_bound("upper", upper)
        self.value_bound = public_bound("value_bound", value_bound)
        self.rows, self.columns = values.shape
        self.kernel = Taylor.on_box(keys.shape[1], upper=self.upper, eps_s=eps_s)
        self.net = softmax_net(keys.shape[1], self.upper, eps_s)
        # An entry is computed from two structures, the vector from all of them.
        self._structures = 2 if self._is_part else self.columns + 1
        tightly = self.accounting is Accounting.TIGHT
        failure = self.net.failure_per_point(p_f / self._structures)
        self.copies = 1 if tightly else tails.copies_needed(failure)
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
            check_composition(composed, budget.total),
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
            keys,
            np.concatenate([values, np.ones((self.rows, 1))], axis=1),
            kernel=self.kernel,
            upper=self.upper,
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
        return (
            "one fixed entry (column) of the answers, for ever (not the whole structure, which is "
            f"{whole}),"
        )

    def _paper_nodes(
        self, budget: Budget, c: float, noise: Noise
    ) -> tuple[Privacy, Privacy, SoftmaxNoise]:
        """Return what the paper's split composes to: in scope, in whole, and the noise."""
        size = {"features": self.kernel.features, "levels": levels_for(self.rows)}
        one = budget.share(self._structures * self.copies)
        budgets = paper_budgets(one, c=c, **size)
        column, denominator = (
            paper_composition(budgets, one, private_total=private, **size)
            for private in (True, False)
        )
        composed, whole = (
            accounting.basic([(column, columns * self.copies), (denominator, self.copies)])
            for columns in (self._structures - 1, self.columns)
        )
        return composed, whole, budgets.noise(noise)

    def _tight_nodes(self, budget: Budget, noise: Noise) -> tuple[Privacy, Privacy, SoftmaxNoise]:
        """Return what the least noise within the budget costs: in scope, in whole, and that noise.

        Half of δ is for truncation, half for composition: the split hardly matters.
        """
        share = levels_for(self.rows) * MOMENTS
        in_scope, in_whole = (
            share * (self.kernel.features * structures + structures - 1)
            for structures in (self._structures, self.columns + 1)
        )
        target = budget.total
        node = tight_node_noise(
            noise, target=target, delta=target.delta / 2 / in_scope, count=in_scope
        )
        # Composed again from the noise that was found, not just echoed.
        composed, whole = (
            replace_privacy(accounting.tight([(node.mechanism, count)], delta=delta), delta)
            for count, delta in (
                (in_scope, target.delta),
                (in_whole, min(target.delta * in_whole / in_scope, 0.5)),
            )
        )
        return composed, whole, SoftmaxNoise(node, node)

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
        queries = self.net.snap(finite("Q", Q, shape=(None, self.kernel.dim)))
        answers = np.median(self._sums.query(queries), axis=1)
        return answers[:, :-1], answers[:, -1]

    def query(self, Q: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy attention rows, shape (m, d_v), clamped to their public ranges."""
        numerator, denominator = self.sums(Q)
        most = self.rows * math.exp(self.kernel.largest_logit)
        safe = np.clip(denominator, self.rows, most)
        return np.clip(numerator / safe[:, None], -self.value_bound, self.value_bound)

    @property
    def relative_error(self) -> float:
        """ε' of kernel and snapping, relative to A|V| and D; the output's is 2ε'/(1 - ε')."""
        return snapped_error(self.kernel, self.net)

    def sums_error_bound(self, confidence: float) -> tuple[float, float]:
        """Return bounds on the noise and tree errors of all answers of AV and of D, however chosen.

        Without the relative part `relative_error`·A|V| and `relative_error`·D. In entry scope the
        probability is that of one fixed column and D.
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
