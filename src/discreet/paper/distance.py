"""Weighted distances from moments (Algorithms 4 and 5), for all coordinates at once.

Σ w_i·|y - x_i|^p over the points on one side of y is a polynomial in y whose coefficients are sums
of w_i·x_i^q: one tree for each moment q = 0, ..., p. Points are divided by `upper` and weights by
`weight_bound`, so that everything below happens in [0, 1] (see `node`).
"""

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.ledger.account import Counted
from discreet.noise import Entropy
from discreet.paper import tails
from discreet.paper.box import Box
from discreet.paper.design import Design, Estimator, design, estimator_of, plain_accountant
from discreet.paper.forest import Forest, all_depths, leaf_of, levels_for, node_count, scatter
from discreet.paper.node import NodeNoise, Noise
from discreet.paper.structure import (
    MEMORY_LIMIT,
    Accounting,
    Budget,
    Structure,
    check_size,
    finite,
    public_bound,
    weighted_points,
)

_TERMS_AT_A_TIME = 2**20  # bounds the memory of one step of the build


@dataclass(frozen=True)
class DistanceForest:
    """Noisy moment trees: answers Σ_i u_i·|y - t_i|^p for every coordinate, copy and column.

    Attributes:
        forest: the noisy nodes.
        noise: their law.
        power: p.
        rows: the public number of rows.
    """

    forest: Forest
    noise: NodeNoise
    power: int
    rows: int

    @classmethod
    def grow(
        cls,
        points: Floats,
        weights: Floats,
        *,
        power: int,
        noise: NodeNoise,
        copies: int = 1,
        entropy: Entropy,
        kind: type[Forest] = Forest,
        depths: tuple[int, ...] | None = None,
    ) -> "DistanceForest":
        """Build from points in [0, 1], shape (n, coordinates), weights in [-1, 1], (n, columns)."""
        levels = levels_for(len(points))
        lanes = (weights.shape[1], power + 1)
        leaves = np.zeros((points.shape[1], 2**levels, *lanes), dtype=np.int64)
        rows = max(1, _TERMS_AT_A_TIME // (points.shape[1] * math.prod(lanes)))
        for start in range(0, len(points), rows):
            t = np.clip(points[start : start + rows], 0.0, 1.0)
            u = np.clip(weights[start : start + rows], -1.0, 1.0)
            scatter(leaves, leaf_of(t, levels), moment_terms(t, u, power, noise.unit))
        forest = kind.grow(leaves, noise.law, copies, entropy, depths)
        return cls(forest, noise, power, len(points))

    @property
    def _signed_binomials(self) -> tuple[Floats, Floats]:
        """The weights of left and right moments: C(p, q)·(-1)^q and C(p, q)·(-1)^(p-q)."""
        q = np.arange(self.power + 1)
        binomials = np.array([math.comb(self.power, k) for k in q], dtype=np.float64)
        return binomials * (-1.0) ** q, binomials * (-1.0) ** (self.power - q)

    def query(self, positions: Floats) -> Floats:
        """Return the noisy distances to positions in [0, 1].

        Args:
            positions: shape (m, coordinates).

        Returns:
            Shape (m, coordinates, copies, columns).
        """
        inside = np.clip(positions, 0.0, 1.0)
        left, right = self.forest.query(inside)
        on_left, on_right = self._signed_binomials
        powers = _powers(inside, self.power)[..., ::-1]  # y^(p-q)
        weigh = powers[:, :, None, None, :]
        total = np.sum(weigh * (on_left * left + on_right * right), axis=-1)
        return np.asarray(total / self.noise.unit)

    @property
    def noise_weights(self) -> tuple[float, ...]:
        """How much one node of each moment weighs in an answer at y = 1: C(p, q) units."""
        return tuple(math.comb(self.power, q) / self.noise.unit for q in range(self.power + 1))

    def noise_sum(self, scale: float, lines: int = 1) -> tuple[tails.NoiseSum, float]:
        """Return the noise of scale·(the worst answer of so many lines), and its rounding.

        Args:
            scale: by which an answer is multiplied.
            lines: coordinates that are added up.
        """
        worst = self.forest.worst(left=1.0, right=self.mirrored)
        weights = tuple(scale * weight * worst.weight for weight in self.noise_weights)
        rounding = lines * worst.rounding * scale * math.fsum(self.noise_weights)
        counts = (lines * worst.count,) * len(weights)
        return tails.NoiseSum(self.noise.law, weights, counts), rounding

    @property
    def mirrored(self) -> float:
        """The sign of what lies right of y, if that on the left has one: (-1)^p, in all moments."""
        return mirror_sign(self.power)

    def variance(self, positions: Floats) -> Floats:
        """Return the exact noise variance of each coordinate's answer, shape of `positions`."""
        inside = np.clip(positions, 0.0, 1.0)
        binomials = np.abs(self._signed_binomials[0])
        squares = np.sum((binomials * _powers(inside, self.power)[..., ::-1]) ** 2, axis=-1)
        nodes = self.forest.variance(inside, left=1.0, right=self.mirrored)
        return np.asarray(nodes * squares * self.noise.variance)

    @property
    def same_leaf_error(self) -> float:
        """n·N^-p: points in the query's own leaf are not counted, and each is that near."""
        return self.rows * 2.0 ** (-self.power * self.forest.levels)

    @property
    def rounding_error(self) -> float:
        """Half a lattice step for each row and moment, with weights that sum to 2^p at y = 1."""
        return self.rows * 2.0**self.power / (2 * self.noise.unit)


def mirror_sign(power: int) -> float:
    """Return (-1)^p."""
    return (-1.0) ** power


def _powers(values: Floats, power: int) -> Floats:
    """Return 1, t, ..., t^power along a new last axis, by products: the same in any batch."""
    stacked = [np.ones_like(values)]
    for _ in range(power):
        stacked.append(stacked[-1] * values)
    return np.stack(stacked, axis=-1)


def to_unit(values: Floats, low: Floats | float, high: Floats | float) -> Floats:
    """Clip values to their public range, then divide by its upper end: within [-1, 1], silently."""
    return np.asarray(np.clip(values, low, high) / high)


def answer_scale(weight_bound: float, upper: float, power: int) -> float:
    """Return R_w·R^p, by which normalised distances are multiplied, if it fits."""
    return public_bound("weight_bound * upper**p", weight_bound * float(np.float64(upper) ** power))


def moment_terms(points: Floats, weights: Floats, power: int, unit: int) -> Integers:
    """Return what each row adds to its leaves, in lattice units: |term| ≤ unit, exactly.

    Args:
        points: in [0, 1], shape (n, coordinates).
        weights: in [-1, 1], shape (n, columns).
        power: p.
        unit: lattice steps that stand for one.

    Returns:
        Integers, shape (n, coordinates, columns, p + 1).
    """
    moments = _powers(points, power)[:, :, None, :]
    terms: Floats = weights[:, None, :, None] * moments * unit
    return np.rint(terms).astype(np.int64)


def grown(
    chosen: Design,
    points: Floats,
    weights: Floats,
    *,
    power: int,
    copies: int = 1,
    entropy: Entropy,
) -> DistanceForest:
    """Return the trees of a design over points in [0, 1] and weights in [-1, 1]."""
    return DistanceForest.grow(
        points,
        weights,
        power=power,
        noise=chosen.account.noise,
        copies=copies,
        entropy=entropy,
        kind=chosen.forest,
        depths=chosen.depths,
    )


class DPTreeDistance(Structure):
    """Σ_i w_i·|y - x_i|^p on [lower, upper]: p + 1 trees, each at (ε/(p+1), δ/(p+1)).

    Algorithms 4 and 5, Theorem "DPTreeDistance": (epsilon, delta)-private.

    Args:
        x: points, shape (n,); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
        p: an integer power ≥ 1.
        upper: right end of the interval.
        lower: its left end; zero in the paper.
        weight_bound: R_w.
        epsilon: for the whole structure and all queries.
        delta: likewise.
        accounting: as for `DPTree`, and so are `estimator`, `branching` and `noise`.
        estimator: likewise.
        branching: likewise.
        noise: likewise.
        entropy: where the noise comes from; by default the operating system.
        memory_limit: in bytes.
        **counted: ledger, dataset and analyst, to be counted (`discreet.ledger`).
    """

    def __init__(
        self,
        x: ArrayLike,
        weights: ArrayLike,
        *,
        p: int,
        upper: float,
        weight_bound: float,
        epsilon: float,
        delta: float,
        lower: float = 0.0,
        accounting: str = Accounting.PAPER,
        estimator: str = Estimator.PAPER,
        branching: int | None = None,
        noise: Noise | None = None,
        entropy: Entropy | None = None,
        memory_limit: int = MEMORY_LIMIT,
        **counted: Unpack[Counted],
    ) -> None:
        budget = Budget(epsilon, delta)
        points, signed = weighted_points("x", x, weights, dimensions=1)
        self.power = _validate.whole("p", p, at_least=1, at_most=200)
        self.box = Box(lower, upper)
        self.weight_bound = public_bound("weight_bound", weight_bound)
        self._scale = answer_scale(self.weight_bound, self.box.side, self.power)
        self.accounting = _validate.choice("accounting", accounting, Accounting)
        levels = levels_for(len(points))
        check_size(
            {"nodes": node_count(all_depths(levels)), "moments": self.power + 1},
            limit=memory_limit,
        )
        chosen = design(
            levels,
            estimator=estimator,
            branching=branching,
            noise=noise,
            accountant=plain_accountant(budget, composition=self.accounting, each=self.power + 1),
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
            self.box.to_unit(points[:, None]),
            to_unit(signed[:, None], -self.weight_bound, self.weight_bound),
            power=self.power,
            entropy=source,
        )

    @property
    def upper(self) -> float:
        """The right end of the interval."""
        return self.box.upper

    @property
    def estimator(self) -> Estimator:
        """How the nodes are read."""
        return estimator_of(self._trees.forest)

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self._trees.forest.nodes.nbytes

    def query(self, y: ArrayLike) -> Floats:
        """Return the noisy sum for each y in [lower, upper] (clipped to it), shape (m,)."""
        trees = self._trees
        return trees.forest.in_parts(
            lambda at: self._scale * trees.query(at)[:, 0, 0, 0], self._positions(y)
        )

    def _positions(self, y: ArrayLike) -> Floats:
        return self.box.to_unit(finite("y", y, shape=(None,))[:, None])

    def variance(self, y: ArrayLike) -> Floats:
        """Return the exact noise variance of each answer, shape (m,)."""
        return self._scale**2 * self._trees.variance(self._positions(y))[:, 0]

    @property
    def deterministic_error(self) -> float:
        """The error without noise, worst case: points in the query's own leaf, and rounding."""
        return self._scale * (self._trees.same_leaf_error + self._trees.rounding_error)

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of one query, with at least this probability."""
        confidence = _validate.real("confidence", confidence, above=0, below=1)
        part, rounding = self._trees.noise_sum(self._scale)
        return tails.tail_bound((part,), 1 - confidence) + rounding + self.deterministic_error
