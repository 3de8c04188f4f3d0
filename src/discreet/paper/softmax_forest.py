"""Trees that answer weighted softmax sums, for several columns of weights and copies at once.

By the law of cosines ⟨P(x), P(y)⟩ = ½(‖P(x)‖² + ‖P(y)‖² - ‖P(x) - P(y)‖²). With
P_wx = Σ w_i·‖P(x_i)‖², s_w = Σ w_i and Value = Σ_j Σ_i w_i·|P(x_i)_j - P(y)_j|² the answer is
½(P_wx + s_w·‖P(y)‖² - Value). Value comes from r DPTreeDistance (p = 2), one for each feature; P_wx
from the same trees at query zero, which is post-processing; s_w from one more DPTreeDistance over
points that are all one.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet import accounting
from discreet._typing import Floats
from discreet.accounting import Mechanism
from discreet.features.taylor import Taylor
from discreet.noise import Entropy
from discreet.paper import tails
from discreet.paper.distance import DistanceForest, to_unit
from discreet.paper.forest import all_depths, levels_for, node_count
from discreet.paper.node import NodeNoise, Noise, node_noise
from discreet.paper.structure import (
    Budget,
    check_size,
    compose_equal,
    replace_privacy,
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


@dataclass(frozen=True)
class SoftmaxForest:
    """Noisy trees that answer softmax sums for several columns of weights and copies at once.

    Attributes:
        kernel: the feature map P.
        upper: R, the right end of the range of each coordinate of (shifted) points.
        bounds: of the weights in each column, shape (columns,).
        trees: one DPTreeDistance for each feature.
        offset: the noisy P_wx, shape (copies, columns).
        totals: the noisy s_w, shape (copies, columns); exact where it is public.
        totals_variance: noise variance of s_w in each column, shape (columns,).
        totals_noise: the noise behind the noisy totals, or None if all are public.
    """

    kernel: Taylor
    upper: float
    bounds: Floats
    trees: DistanceForest
    offset: Floats
    totals: Floats
    totals_variance: Floats
    totals_noise: NodeNoise | None

    @classmethod
    def grow(
        cls,
        points: Floats,
        weights: Floats,
        *,
        kernel: Taylor,
        upper: float,
        bounds: Floats,
        private_columns: int,
        noise: SoftmaxNoise,
        copies: int,
        entropy: Entropy,
    ) -> "SoftmaxForest":
        """Build from points (n, d) and weights (n, columns).

        The first `private_columns` columns have a private sum s_w, which is released with noise;
        the others are constant, equal to their bound, so that their sum is public: spend nothing.
        """
        inside = np.clip(points, 0.0, upper)
        ranges = kernel.feature_bounds(upper)
        trees = DistanceForest.grow(
            kernel(inside) / ranges,
            to_unit(weights, -bounds, bounds),
            power=2,
            noise=noise.features,
            copies=copies,
            entropy=entropy,
        )
        private = bounds[:private_columns]
        totals = np.empty((copies, 0))
        if private_columns:
            ones = DistanceForest.grow(
                np.ones((len(points), 1)),
                to_unit(weights[:, :private_columns], -private, private),
                power=2,
                noise=noise.totals,
                copies=copies,
                entropy=entropy,
            )
            totals = private * ones.query(np.zeros((1, 1)))[0, 0]
        totals_noise = noise.totals if private_columns else None
        return cls.of(trees, totals, totals_noise, kernel=kernel, upper=upper, bounds=bounds)

    @classmethod
    def of(
        cls,
        trees: DistanceForest,
        private_totals: Floats,
        totals_noise: NodeNoise | None,
        *,
        kernel: Taylor,
        upper: float,
        bounds: Floats,
    ) -> "SoftmaxForest":
        """Return the forest from what was released, and work out the rest.

        Args:
            trees: as in `SoftmaxForest`.
            private_totals: the noisy s_w of the first columns, shape (copies, private columns).
            totals_noise: as in `SoftmaxForest`.
            kernel: likewise.
            upper: likewise.
            bounds: likewise.
        """
        copies, private_columns = private_totals.shape
        squares = kernel.feature_bounds(upper) ** 2
        at_zero = trees.query(np.zeros((1, kernel.features)))[0]  # (features, copies, columns)
        offset = bounds * np.einsum("f,fcw->cw", squares, at_zero)
        totals = np.broadcast_to(trees.rows * bounds, (copies, len(bounds))).copy()
        totals[:, :private_columns] = private_totals
        totals_variance = np.zeros(len(bounds))
        if totals_noise is not None:
            # At zero only second moments count, and all L siblings of the first leaf.
            one = trees.forest.levels * totals_noise.variance
            totals_variance[:private_columns] = bounds[:private_columns] ** 2 * one
        return cls(kernel, upper, bounds, trees, offset, totals, totals_variance, totals_noise)

    @property
    def ranges(self) -> Floats:
        """Γ_α, the range of each feature."""
        return self.kernel.feature_bounds(self.upper)

    @property
    def nbytes(self) -> int:
        """Bytes of noisy state; the s_w trees are summed up and not kept."""
        return self.trees.forest.nodes.nbytes + self.offset.nbytes + self.totals.nbytes

    def query(self, queries: Floats) -> Floats:
        """Return the noisy sums, shape (m, copies, columns), for queries (m, d)."""
        return self.trees.forest.in_parts(self._answers, queries)

    def _answers(self, queries: Floats) -> Floats:
        features = self.kernel(np.clip(queries, 0.0, self.upper))
        distances = self.trees.query(features / self.ranges)  # (m, features, copies, columns)
        value = self.bounds * np.einsum("f,mfcw->mcw", self.ranges**2, distances)
        norms = np.sum(features**2, axis=-1)[:, None, None]
        return np.asarray(0.5 * (self.offset + self.totals * norms - value))

    def variance(self, queries: Floats) -> Floats:
        """Return the exact noise variance of one copy, shape (m, columns).

        A sibling that lies on the way to the query and on the way to zero has weight ½ in P_wx and
        -½ in Value: it cancels. So of the second-moment nodes only those below the point where the
        two paths part count, twice.
        """
        features = self.kernel(np.clip(queries, 0.0, self.upper))
        positions = np.clip(features / self.ranges, 0.0, 1.0)
        levels, node = self.trees.forest.levels, self.trees.noise.variance
        leaf = np.floor(positions * 2**levels)
        # Levels at which the query is still in the leftmost node: L minus the bits of its leaf.
        shared = levels - np.ceil(np.log2(np.minimum(leaf, 2**levels - 1) + 1))
        squares = 2 * (levels - shared) + levels * (4 * positions**2 + positions**4)
        tree_part = node * np.sum(self.ranges**4 * squares, axis=-1)
        norms = np.sum(features**2, axis=-1)
        return np.asarray(
            0.25 * (np.outer(tree_part, self.bounds**2) + np.outer(norms**2, self.totals_variance))
        )

    def noise_sums(self, column: int) -> tuple[tails.NoiseSum, ...]:
        """Return the noise of one copy's answer to the worst query, y = (R, ..., R)."""
        scale = 0.5 * self.bounds[column] * self.ranges**2
        levels = self.trees.forest.levels
        zeroth, first, second = self.trees.noise_weights
        weights = [w * s for s in scale for w in (zeroth, first, second, second)]
        parts = [tails.NoiseSum(self.trees.noise.law, tuple(weights), (levels,) * len(weights))]
        if self.totals_noise is not None and self.totals_variance[column] > 0:
            norm = float(np.sum(self.ranges**2))
            weight = 0.5 * norm * self.bounds[column] / self.totals_noise.unit
            parts.append(tails.NoiseSum(self.totals_noise.law, (weight,), (levels,)))
        return tuple(parts)

    def tree_error(self, column: int) -> float:
        """Return the error without noise of one answer, kernel and snapping apart.

        Same-leaf and rounding errors of Value and P_wx, and rounding of s_w.
        """
        line = self.trees.same_leaf_error + self.trees.rounding_error
        error = float(self.bounds[column] * np.sum(self.ranges**2)) * line
        if self.totals_noise is not None and self.totals_variance[column] > 0:
            rounding = self.trees.rows / (2 * self.totals_noise.unit)
            error += 0.5 * float(np.sum(self.ranges**2)) * self.bounds[column] * rounding
        return error


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


def check_softmax_size(rows: int, features: int, *, copies: int, columns: int, limit: int) -> None:
    """Check the size of all trees before any is allocated."""
    check_size(
        {
            "nodes": node_count(all_depths(levels_for(rows))),
            "features": features,
            "moments": MOMENTS,
            "copies": copies,
            "columns": columns,
        },
        limit=limit,
    )


def softmax_mechanisms(
    noise: SoftmaxNoise,
    *,
    features: int,
    levels: int,
    copies: int,
    columns: int,
    private_columns: int,
) -> list[tuple[Mechanism, int]]:
    """Return all nodes that a row of these columns touches: one of each level, tree and copy.

    A function of public numbers, so that it can be asked before anything is drawn.
    """
    share = levels * MOMENTS * copies
    nodes = [(noise.features.mechanism, share * features * columns)]
    if private_columns:
        nodes.append((noise.totals.mechanism, share * private_columns))
    return nodes
