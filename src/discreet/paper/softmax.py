"""Weighted softmax sums wᵀexp(Xy/d): DPTreeSoftmax (Algorithm 3) and its adaptive form (7).

By the law of cosines ⟨P(x), P(y)⟩ = ½(‖P(x)‖² + ‖P(y)‖² - ‖P(x) - P(y)‖²). With
P_wx = Σ w_i·‖P(x_i)‖², s_w = Σ w_i and Value = Σ_j Σ_i w_i·|P(x_i)_j - P(y)_j|² the answer is
½(P_wx + s_w·‖P(y)‖² - Value). Value comes from r DPTreeDistance (p = 2), one for each feature; P_wx
from the same trees at query zero, which is post-processing; s_w from one more DPTreeDistance over
points that are all one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet import accounting
from discreet._typing import Floats
from discreet.features.taylor import Taylor
from discreet.paper.bounds import (
    Box,
    Logits,
    Net,
    NoiseSum,
    single_failure_for,
    tail_bound,
)
from discreet.paper.design import (
    NodeNoise,
    Nodes,
    check_composition,
    compose_equal,
    node_noise,
    resolved_c,
    tight_account,
)
from discreet.paper.distance import DistanceForest, moment_sums, to_unit
from discreet.paper.forest import ExactTrees, Forest, all_depths, levels_for, node_count
from discreet.paper.options import (
    AttentionOptions,
    Budget,
    Noise,
    SoftmaxAdaptiveOptions,
    SoftmaxOptions,
    replace_privacy,
    takes,
)
from discreet.paper.structure import (
    Promise,
    State,
    Structure,
    check_size,
    finite,
    kept,
    release,
    weighted_points,
)
from discreet.privacy import Privacy

MOMENTS = 3  # p = 2: weights, weighted sums, weighted squares


@dataclass(frozen=True)
class NodeBudgets:
    """(ε, δ) of one node of the feature trees, and of one node of the s_w trees."""

    features: Privacy
    totals: Privacy

    def noise(self, kind: Noise) -> "SoftmaxNoise":
        """Return noise that spends just this."""
        return SoftmaxNoise(
            *(
                node_noise(kind, epsilon=part.epsilon, delta=part.delta)
                for part in (self.features, self.totals)
            )
        )


@dataclass(frozen=True)
class SoftmaxNoise:
    """The noise of one node of the feature trees, and of one node of the s_w trees."""

    features: NodeNoise
    totals: NodeNoise


def paper_budgets(one: Budget, *, c: float, features: int, levels: int) -> NodeBudgets:
    """Return Algorithm 3's split of one structure's budget, down to the nodes."""
    share = levels * MOMENTS
    factor = c / (3 * math.sqrt(features * math.log(2 / one.prime)))
    return NodeBudgets(
        replace_privacy(factor * one.epsilon / share, one.delta / (3 * features) / share),
        replace_privacy(one.epsilon / 3 / share, one.delta / 3 / share),
    )


def paper_composition(
    budgets: NodeBudgets, one: Budget, *, features: int, levels: int, private_total: bool
) -> Privacy:
    """Return what the paper's theorems give for one structure with these nodes."""
    share = levels * MOMENTS
    line = accounting.basic([(budgets.features, share)])
    parts = [(compose_equal(line, features, delta_prime=one.prime / 2), 1)]
    if private_total:
        parts.append((accounting.basic([(budgets.totals, share)]), 1))
    return accounting.basic(parts)


@dataclass(frozen=True)
class SoftmaxAccount:
    """The noise of all nodes, what those in scope compose to, and the c that led there, if any."""

    noise: SoftmaxNoise
    composed: Privacy
    c: float | None = None


@dataclass(frozen=True)
class SoftmaxDesign:
    """Trees for softmax sums before there are rows or noise in them: all that is public.

    The first columns of weights have a private sum s_w, which is released with noise; the others
    are constant, equal to their bound, so that their sum is public: spend nothing.

    Attributes:
        kernel: the feature map P.
        upper: R, the right end of the range of each coordinate of (shifted) points.
        bounds: of the weights in each column.
        private: how many columns have a private sum.
        rows: n.
        copies: l.
    """

    kernel: Taylor
    upper: float
    bounds: tuple[float, ...]
    private: int
    rows: int
    copies: int

    @property
    def ranges(self) -> Floats:
        """Γ_α, the range of each feature."""
        return self.kernel.feature_bounds(self.upper)

    @property
    def size(self) -> dict[str, int]:
        """What the paper's split depends on: r and L."""
        return {"features": self.kernel.features, "levels": levels_for(self.rows)}

    @property
    def nodes_of_a_tree(self) -> int:
        """How many nodes of a tree a row touches: of each level and moment, in all copies."""
        return levels_for(self.rows) * MOMENTS * self.copies

    def columns(self, private: int) -> int:
        """Return how many columns there are with so many private ones."""
        return private + len(self.bounds) - self.private

    def check_size(self, limit: int) -> None:
        """Check the size of all trees before any is allocated."""
        factors = {
            "nodes": node_count(all_depths(levels_for(self.rows))),
            "features": self.kernel.features,
            "moments": MOMENTS,
            "copies": self.copies,
            "columns": len(self.bounds),
        }
        check_size(factors, limit=limit)

    def mechanisms(self, noise: SoftmaxNoise, private: int) -> Nodes:
        """Return all nodes that a row touches in so many private columns, and the public ones."""
        share = self.nodes_of_a_tree
        return [
            (noise.features.mechanism, share * self.kernel.features * self.columns(private)),
            (noise.totals.mechanism, share * private),
        ]

    def composed(self, one: Budget, c: float, private: int) -> Privacy:
        """Return what the theorems give for so many private columns, and the public ones.

        Args:
            one: the share of one copy of one column.
            c: the paper's constant.
            private: how many.
        """
        size = self.size
        budgets = paper_budgets(one, c=c, **size)
        parts = [
            (paper_composition(budgets, one, private_total=total, **size), columns * self.copies)
            for total, columns in ((True, private), (False, self.columns(0)))
            if columns
        ]
        return accounting.basic(parts)

    def account(self, options: SoftmaxOptions | AttentionOptions, private: int) -> SoftmaxAccount:
        """Return the noise that was asked for: the least in the budget, or by Algorithm 3.

        Args:
            options: with the budget.
            private: how many private columns it covers, and all public ones.
        """
        budget = options.budget
        if options.tight:
            nodes = self.nodes_of_a_tree * (self.kernel.features * self.columns(private) + private)
            found = tight_account(options.noise, budget.total, nodes)
            return SoftmaxAccount(SoftmaxNoise(found.noise, found.noise), found.composed)
        one = budget.share(self.columns(private) * self.copies)
        c = resolved_c(options.c, lambda c: self.composed(one, c, private), budget.total)
        composed = check_composition(self.composed(one, c, private), budget.total)
        noise = paper_budgets(one, c=c, **self.size).noise(options.noise)
        return SoftmaxAccount(noise, composed, c)

    def exact(self, points: Floats, weights: Floats, noise: SoftmaxNoise) -> list[ExactTrees]:
        """Return the trees of the features and those of s_w.

        Args:
            points: shape (n, d).
            weights: shape (n, columns).
            noise: that they will get.
        """
        bounds = np.array(self.bounds)
        units = to_unit(weights, -bounds, bounds)
        features = self.kernel(np.clip(points, 0.0, self.upper)) / self.ranges
        parts = (
            (features, units, noise.features),
            (np.ones((self.rows, 1)), units[:, : self.private], noise.totals),
        )
        return [
            ExactTrees(moment_sums(at, weighed, 2, node.unit), node.law, self.copies)
            for at, weighed, node in parts
        ]

    def released(self, noisy: Sequence[Forest], noise: SoftmaxNoise) -> "SoftmaxForest":
        """Return the reader of the noisy trees; of those for s_w only its estimate is kept."""
        features, ones = noisy
        at_zero = DistanceForest(ones, noise.totals, 2, self.rows).query(np.zeros((1, 1)))
        return self.restored(features, self.bounds[: self.private] * at_zero[0, 0], noise)

    def restored(
        self, features: Forest, private_totals: Floats, noise: SoftmaxNoise
    ) -> "SoftmaxForest":
        """Return the reader of released numbers, and work out the rest.

        Args:
            features: the noisy trees of the features.
            private_totals: the noisy s_w of the first columns, shape (copies, private).
            noise: that they have.
        """
        trees = DistanceForest(features, noise.features, 2, self.rows)
        bounds = np.array(self.bounds)
        at_zero = trees.query(np.zeros((1, self.kernel.features)))[0]  # (features, copies, columns)
        offset = bounds * np.einsum("f,fcw->cw", self.ranges**2, at_zero)
        totals = np.broadcast_to(self.rows * bounds, (self.copies, len(bounds))).copy()
        totals[:, : self.private] = private_totals
        offset.flags.writeable = totals.flags.writeable = False
        return SoftmaxForest(self, noise, trees, offset, totals)


@dataclass(frozen=True)
class SoftmaxForest:
    """Noisy trees that answer softmax sums for several columns of weights and copies at once.

    Attributes:
        design: all that is public about them.
        noise: of their nodes.
        trees: one DPTreeDistance for each feature.
        offset: the noisy P_wx, shape (copies, columns).
        totals: the noisy s_w, shape (copies, columns); exact where it is public.
    """

    design: SoftmaxDesign
    noise: SoftmaxNoise
    trees: DistanceForest
    offset: Floats
    totals: Floats

    @property
    def totals_variance(self) -> Floats:
        """The noise variance of s_w in each column, shape (columns,); zero where it is public."""
        # At zero only second moments count, and all L siblings of the first leaf.
        one = self.trees.forest.levels * self.noise.totals.variance
        bounds = np.array(self.design.bounds)
        return np.where(np.arange(len(bounds)) < self.design.private, bounds**2 * one, 0.0)

    @property
    def nbytes(self) -> int:
        """Bytes of noisy state; the s_w trees are summed up and not kept."""
        return self.trees.forest.nodes.nbytes + self.offset.nbytes + self.totals.nbytes

    def query(self, queries: Floats) -> Floats:
        """Return the noisy sums, shape (m, copies, columns), for queries (m, d)."""
        return self.trees.forest.in_parts(self._answers, queries)

    def _answers(self, queries: Floats) -> Floats:
        features, ranges = self._features(queries), self.design.ranges
        distances = self.trees.query(features / ranges)  # (m, features, copies, columns)
        value = self.design.bounds * np.einsum("f,mfcw->mcw", ranges**2, distances)
        norms = np.sum(features**2, axis=-1)[:, None, None]
        return np.asarray(0.5 * (self.offset + self.totals * norms - value))

    def _features(self, queries: Floats) -> Floats:
        return np.asarray(self.design.kernel(np.clip(queries, 0.0, self.design.upper)))

    def variance(self, queries: Floats) -> Floats:
        """Return the exact noise variance of one copy, shape (m, columns).

        A sibling that lies on the way to the query and on the way to zero has weight ½ in P_wx and
        -½ in Value: it cancels. So of the second-moment nodes only those below the point where the
        two paths part count, twice.
        """
        features, ranges = self._features(queries), self.design.ranges
        positions = np.clip(features / ranges, 0.0, 1.0)
        levels, node = self.trees.forest.levels, self.trees.noise.variance
        leaf = np.floor(positions * 2**levels)
        # Levels at which the query is still in the leftmost node: L minus the bits of its leaf.
        shared = levels - np.ceil(np.log2(np.minimum(leaf, 2**levels - 1) + 1))
        squares = 2 * (levels - shared) + levels * (4 * positions**2 + positions**4)
        tree_part = node * np.sum(ranges**4 * squares, axis=-1)
        norms, bounds = np.sum(features**2, axis=-1), np.array(self.design.bounds)
        return np.asarray(
            0.25 * (np.outer(tree_part, bounds**2) + np.outer(norms**2, self.totals_variance))
        )

    def noise_sums(self, column: int) -> tuple[NoiseSum, ...]:
        """Return the noise of one copy's answer to the worst query, y = (R, ..., R)."""
        bound, squares = self.design.bounds[column], self.design.ranges**2
        levels, totals = self.trees.forest.levels, self.noise.totals
        zeroth, first, second = self.trees.noise_weights
        weights = [w * s for s in 0.5 * bound * squares for w in (zeroth, first, second, second)]
        parts = [NoiseSum(self.trees.noise.law, tuple(weights), (levels,) * len(weights))]
        if column < self.design.private:
            weight = 0.5 * float(np.sum(squares)) * bound / totals.unit
            parts.append(NoiseSum(totals.law, (weight,), (levels,)))
        return tuple(parts)

    def tree_error(self, column: int) -> float:
        """Return the error without noise of one answer, kernel and snapping apart.

        Same-leaf and rounding errors of Value and P_wx, and rounding of s_w.
        """
        bound, squares = self.design.bounds[column], float(np.sum(self.design.ranges**2))
        error = bound * squares * (self.trees.same_leaf_error + self.trees.rounding_error)
        if column < self.design.private:
            rounding = self.trees.rows / (2 * self.noise.totals.unit)
            error += 0.5 * squares * bound * rounding
        return error


@dataclass(frozen=True)
class SumsState(State):
    """Trees for softmax sums, of any number of columns and copies.

    Attributes:
        sums: the noisy trees, and how they are read.
        logits: where points and queries lie, and the kernel.
        c: the paper's constant; None with tight accounting.
        net: that queries are snapped to, if they are.
    """

    sums: SoftmaxForest
    logits: Logits
    c: float | None
    net: Net | None

    @property
    def bound(self) -> float:
        """R_w, of all weights that are private."""
        return self.sums.design.bounds[0]

    @property
    def covered(self) -> Nodes:
        """All nodes of a row."""
        return self.sums.design.mechanisms(self.sums.noise, self.sums.design.private)

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes and of what was summed up of them."""
        return self.sums.nbytes


class SoftmaxStructure(Structure):
    """What structures of softmax sums have in common."""

    state: SumsState

    logits: Logits = kept("state.logits", "Where points and queries lie, and the kernel.")
    kernel: Taylor = kept("state.logits.kernel", "The feature map P.")
    box: Box = kept("state.logits.box", "The range of each coordinate of the points.")
    upper: float = kept("state.logits.box.upper", "R, the right end of that range.")
    copies: int = kept("state.sums.design.copies", "How many copies a median is taken of: l.")
    c: float | None = kept("state.c", "The paper's constant; None with tight accounting.")

    @property
    def relative_error(self) -> float:
        """ε' of the kernel, and of snapping if there is a net, relative to |w|ᵀexp(Xy/d).

        That of an attention's outputs is 2ε'/(1 - ε').
        """
        net = self.state.net
        return self.kernel.error if net is None else self.logits.snapped_error(net)

    def _inside(self, name: str, queries: ArrayLike) -> Floats:
        """Return queries, clipped to [0, upper], and snapped if there is a net."""
        inside = self.logits.inside(finite(name, queries, shape=(None, self.kernel.dim)))
        return inside if self.state.net is None else self.state.net.snap(inside)


class DPTreeSoftmax(SoftmaxStructure):
    """wᵀexp(Xy/d) for y in [0, upper]^d: r DPTreeDistance on features, and one for s_w.

    Algorithm 3, Theorem "Softmax query": (epsilon, delta + delta_prime)-private if c is small
    enough; one that is not raises `BudgetExceeded`. The kernel's error is eps_s·|w|ᵀexp(Xy/d): with
    the absolute values of the weights, because errors do not cancel when weights do.

    Args:
        X: points, shape (n, d); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
    """

    weight_bound: float = kept("state.bound", "R_w, that weights are clipped to.")

    @takes(SoftmaxOptions)
    def __init__(
        self,
        X: ArrayLike,  # noqa: N803
        weights: ArrayLike,
        options: SoftmaxOptions,
    ) -> None:
        points, signed = weighted_points("X", X, weights, dimensions=2)
        logits = options.logits(points.shape[1])
        self.state, self.promise = _built(points, signed, options, logits)

    def query(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy sum for each query, shape (m,).

        Args:
            Y: rows in [0, upper]^d (clipped to it), shape (m, d).
        """
        queries = self._inside("Y", Y)
        shifted = np.median(self.state.sums.query(queries)[..., 0], axis=1)
        return np.asarray(shifted * self.logits.unshifted(queries))

    def variance(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the exact noise variance of a single copy's answers, shape (m,).

        Args:
            Y: as for `query`.
        """
        queries = self._inside("Y", Y)
        return self.state.sums.variance(queries)[:, 0] * self.logits.unshifted(queries) ** 2

    @property
    def deterministic_error(self) -> float:
        """The error without noise, worst case: kernel, points in the query's leaves, rounding.

        Of shifted sums, which are at least as large as the answers.
        """
        rows = self.state.sums.trees.rows
        largest = rows * self.weight_bound * math.exp(self.kernel.largest_logit)
        return self.relative_error * largest + self.state.sums.tree_error(0)

    def _bound(self, confidence: float) -> float:
        """Return a bound on the error of one query, or of all if there is a net."""
        failure, net = 1 - confidence, self.state.net
        if net is not None:
            failure = single_failure_for(self.copies, net.failure_per_point(failure))
        return tail_bound(self.state.sums.noise_sums(0), failure) + self.deterministic_error


class DPTreeSoftmaxAdaptive(DPTreeSoftmax):
    """The same for all queries at once: the median of l DPTreeSoftmax at (ε/l, δ/l, δ'/l).

    Algorithm 7, Theorem "Adaptive query Softmax data structure". Queries are snapped to a net of
    radius ε_0 = ε_s/R, where the bound holds for all points at once with probability 1 - p_f.

    Args:
        X: points, shape (n, d); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
    """

    net: Net = kept("state.net", "The net that queries are snapped to.")

    @takes(SoftmaxAdaptiveOptions)
    def __init__(
        self,
        X: ArrayLike,  # noqa: N803
        weights: ArrayLike,
        options: SoftmaxAdaptiveOptions,
    ) -> None:
        points, signed = weighted_points("X", X, weights, dimensions=2)
        logits = options.logits(points.shape[1])
        net = logits.net(options.eps_0)
        copies = options.copies_on(net)
        self.state, self.promise = _built(points, signed, options, logits, copies=copies, net=net)


def _built(
    points: Floats,
    weights: Floats,
    options: SoftmaxOptions,
    logits: Logits,
    *,
    copies: int = 1,
    net: Net | None = None,
) -> tuple[SumsState, Promise]:
    """Return the state of softmax trees over points (n, d) and weights (n,), and what it costs."""
    kernel, side, bounds = logits.kernel, logits.box.side, (options.weight_bound,)
    design = SoftmaxDesign(kernel, side, bounds, private=1, rows=len(points), copies=copies)
    design.check_size(options.memory_limit)
    account = design.account(options, private=1)
    noisy, promise = release(
        design.exact(logits.box.shifted(points), weights[:, None], account.noise),
        options,
        composed=account.composed,
        whole=design.mechanisms(account.noise, 1),
    )
    sums = design.released(noisy, account.noise)
    return SumsState(options.composition, sums, logits, account.c, net), promise
