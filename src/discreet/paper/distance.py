"""Weighted distances from moments: on a line (Algorithms 4, 5) and in d dimensions (6).

Σ w_i·|y - x_i|^p over the points on one side of y is a polynomial in y whose coefficients are sums
of w_i·x_i^q: one tree for each moment q = 0, ..., p, and for each coordinate. Points are divided by
the side of their interval and weights by `weight_bound`, so that everything below happens in [0, 1]
(see `design`).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet import accounting
from discreet._typing import Floats, Integers
from discreet.paper.bounds import (
    Box,
    Net,
    NoiseSum,
    public_bound,
    single_failure_for,
    tail_bound,
)
from discreet.paper.design import (
    Account,
    Accountant,
    NodeNoise,
    Nodes,
    check_composition,
    compose_equal,
    design,
    node_noise,
    plain_accountant,
    resolved_c,
)
from discreet.paper.forest import (
    ExactTrees,
    Forest,
    all_depths,
    leaf_of,
    levels_for,
    node_count,
    scatter,
)
from discreet.paper.options import (
    DistanceOptions,
    Estimator,
    HighDimAdaptiveOptions,
    HighDimOptions,
    Noise,
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

    def noise_sum(self, scale: float, lines: int = 1) -> tuple[NoiseSum, float]:
        """Return the noise of scale·(the worst answer of so many lines), and its rounding.

        Args:
            scale: by which an answer is multiplied.
            lines: coordinates that are added up.
        """
        worst = self.forest.worst(left=1.0, right=mirror_sign(self.power))
        weights = tuple(scale * weight * worst.weight for weight in self.noise_weights)
        rounding = lines * worst.rounding * scale * math.fsum(self.noise_weights)
        counts = (lines * worst.count,) * len(weights)
        return NoiseSum(self.noise.law, weights, counts), rounding

    def variance(self, positions: Floats) -> Floats:
        """Return the exact noise variance of each coordinate's answer, shape of `positions`."""
        inside = np.clip(positions, 0.0, 1.0)
        binomials = np.abs(self._signed_binomials[0])
        squares = np.sum((binomials * _powers(inside, self.power)[..., ::-1]) ** 2, axis=-1)
        nodes = self.forest.variance(inside, left=1.0, right=mirror_sign(self.power))
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
    """Return (-1)^p: the sign of what lies right of y, if that on the left has one."""
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


def moment_sums(points: Floats, weights: Floats, power: int, unit: int) -> Integers:
    """Return what all rows add to their leaves, in lattice units: exact, and private.

    Args:
        points: in [0, 1], shape (n, coordinates); clipped to it.
        weights: in [-1, 1], shape (n, columns); likewise.
        power: p.
        unit: lattice steps that stand for one.

    Returns:
        Integers, shape (coordinates, N, columns, p + 1).
    """
    levels, lanes = levels_for(len(points)), (weights.shape[1], power + 1)
    leaves = np.zeros((points.shape[1], 2**levels, *lanes), dtype=np.int64)
    rows = max(1, _TERMS_AT_A_TIME // (points.shape[1] * math.prod(lanes)))
    for start in range(0, len(points), rows):
        t = np.clip(points[start : start + rows], 0.0, 1.0)
        u = np.clip(weights[start : start + rows], -1.0, 1.0)
        scatter(leaves, leaf_of(t, levels), _moment_terms(t, u, power, unit))
    return leaves


def _moment_terms(points: Floats, weights: Floats, power: int, unit: int) -> Integers:
    """Return what each row adds, shape (n, coordinates, columns, p + 1): |term| ≤ unit, exactly."""
    moments = _powers(points, power)[:, :, None, :]
    terms: Floats = weights[:, None, :, None] * moments * unit
    return np.rint(terms).astype(np.int64)


@dataclass(frozen=True)
class DistanceState(State):
    """Moment trees of all coordinates, and of copies of them.

    Attributes:
        trees: the noisy nodes, and how they are read.
        box: where points lie.
        weight_bound: R_w.
        c: the paper's constant; None where there is none.
        net: that queries are snapped to, if they are.
    """

    trees: DistanceForest
    box: Box
    weight_bound: float
    c: float | None = None
    net: Net | None = None

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return int(self.trees.forest.nodes.shape[0])

    @property
    def copies(self) -> int:
        """How many noisy trees there are of each."""
        return self.trees.forest.copies

    @property
    def scale(self) -> float:
        """R_w·R^p, by which normalised distances are multiplied."""
        return answer_scale(self.weight_bound, self.box, self.trees.power)

    @property
    def covered(self) -> Nodes:
        """One node of each released level of each moment, coordinate and copy."""
        each = (self.trees.power + 1) * self.dim * self.copies
        return [(self.trees.noise.mechanism, each * len(self.trees.forest.depths))]

    @property
    def nbytes(self) -> int:
        """Bytes of noisy nodes."""
        return self.trees.forest.nodes.nbytes


def answer_scale(weight_bound: float, box: Box, power: int) -> float:
    """Return R_w·R^p, if it fits."""
    return public_bound(
        "weight_bound * upper**p", weight_bound * float(np.float64(box.side) ** power)
    )


class _Distances(Structure):
    """What distances in one and in many dimensions have in common: a line is one coordinate."""

    state: DistanceState

    box: Box = kept("state.box", "The interval of points and queries, in each coordinate.")
    upper: float = kept("state.box.upper", "The right end of the interval, in each coordinate.")
    power: int = kept("state.trees.power", "The power of the distances: p.")
    weight_bound: float = kept("state.weight_bound", "R_w, that weights are clipped to.")
    estimator: Estimator = kept("state.trees.forest.estimator", "How the nodes are read.")

    def _positions(self, queries: Floats) -> Floats:
        """Return queries, shape (m, d), as parts of the interval; snapped, if there is a net."""
        net = self.state.net
        if net is None:
            return self.box.to_unit(queries)
        return net.snap(self.box.shifted(queries)) / self.box.side

    def _answers(self, queries: Floats) -> Floats:
        """Return the noisy sums, shape (m,), for queries (m, d)."""
        return self.state.trees.forest.in_parts(self._medians, self._positions(queries))

    def _medians(self, positions: Floats) -> Floats:
        """Return the median over copies of the sums over coordinates, shape (m,)."""
        lines = self.state.trees.query(positions)[..., 0]
        return np.asarray(self.state.scale * np.median(lines.sum(axis=1), axis=1))

    def _variances(self, queries: Floats) -> Floats:
        """Return the variances of one copy's answers, shape (m,), for queries (m, d)."""
        lines = self.state.trees.variance(self._positions(queries))
        return np.asarray(self.state.scale**2 * lines.sum(axis=1))

    @property
    def deterministic_error(self) -> float:
        """The error without noise, worst case: points in the query's own leaves, and rounding.

        With a net, snapping too: n·R_w·d·ε_0 by the Lipschitz lemma.
        """
        trees, dim, net = self.state.trees, self.state.dim, self.state.net
        line = trees.same_leaf_error + trees.rounding_error
        snapping = 0.0 if net is None else trees.rows * self.weight_bound * dim * net.radius
        return float(dim * self.state.scale * line + snapping)

    def _bound(self, confidence: float) -> float:
        """Return a bound on the error of one query, or of all if there is a net."""
        part, rounding = self.state.trees.noise_sum(self.state.scale, self.state.dim)
        failure, net = 1 - confidence, self.state.net
        if net is not None:
            failure = single_failure_for(self.state.copies, net.failure_per_point(failure))
        return tail_bound((part,), failure) + rounding + self.deterministic_error


class DPTreeDistance(_Distances):
    """Σ_i w_i·|y - x_i|^p on [lower, upper]: p + 1 trees, each at (ε/(p+1), δ/(p+1)).

    Algorithms 4 and 5, Theorem "DPTreeDistance": (epsilon, delta)-private.

    Args:
        x: points, shape (n,); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
    """

    @takes(DistanceOptions)
    def __init__(self, x: ArrayLike, weights: ArrayLike, options: DistanceOptions) -> None:
        points, signed = weighted_points("x", x, weights, dimensions=1)
        accountant = plain_accountant(
            options.budget, composition=options.composition, each=options.p + 1
        )
        self.state, self.promise = _built(
            points[:, None], signed, options, power=options.p, accountant=accountant
        )

    def query(self, y: ArrayLike) -> Floats:
        """Return the noisy sum for each query, shape (m,).

        Args:
            y: in [lower, upper] (clipped to it), shape (m,).
        """
        return self._answers(finite("y", y, shape=(None,))[:, None])

    def variance(self, y: ArrayLike) -> Floats:
        """Return the exact noise variance of each answer, shape (m,).

        Args:
            y: as for `query`.
        """
        return self._variances(finite("y", y, shape=(None,))[:, None])


class DPTreeHighDim(_Distances):
    """Σ_i w_i·‖y - x_i‖_p^p on [lower, upper]^d: d DPTreeDistance at (cε/√(d·ln(1/δ')), δ/d).

    Algorithm 6, Theorem "DPTreeHighDim": (epsilon, delta + delta_prime)-private if c is small
    enough, by the composition theorem with its own constants; one that is not raises
    `BudgetExceeded`.

    Args:
        X: points, shape (n, d); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
    """

    dim: int = kept("state.dim", "The number of coordinates: d.")
    copies: int = kept("state.copies", "How many copies a median is taken of: l.")
    c: float | None = kept("state.c", "The paper's constant; None with tight accounting.")

    @takes(HighDimOptions)
    def __init__(
        self,
        X: ArrayLike,  # noqa: N803
        weights: ArrayLike,
        options: HighDimOptions,
    ) -> None:
        points, signed = weighted_points("X", X, weights, dimensions=2)
        accountant, c = _high_dim_accountant(options, dim=points.shape[1], power=options.p)
        self.state, self.promise = _built(
            points, signed, options, power=options.p, accountant=accountant, c=c
        )

    def query(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the noisy sum for each query, shape (m,).

        Args:
            Y: rows in [lower, upper]^d (clipped to it), shape (m, d).
        """
        return self._answers(finite("Y", Y, shape=(None, self.dim)))

    def variance(self, Y: ArrayLike) -> Floats:  # noqa: N803
        """Return the exact noise variance of a single copy's answers, shape (m,).

        Args:
            Y: as for `query`.
        """
        return self._variances(finite("Y", Y, shape=(None, self.dim)))


class DPTreeHighDimAdaptive(DPTreeHighDim):
    """The same for p = 1 and all queries at once: the median of l copies at (ε/l, δ/l, δ'/l).

    Section "Adaptive Query". Queries are snapped to a net, where the bound holds for all points at
    once with probability 1 - p_f.

    Args:
        X: points, shape (n, d); clipped to [lower, upper].
        weights: shape (n,); clipped to ±weight_bound.
    """

    net: Net = kept("state.net", "The net that queries are snapped to.")

    @takes(HighDimAdaptiveOptions)
    def __init__(
        self,
        X: ArrayLike,  # noqa: N803
        weights: ArrayLike,
        options: HighDimAdaptiveOptions,
    ) -> None:
        points, signed = weighted_points("X", X, weights, dimensions=2)
        side = options.box.side
        radius = side / 16 if options.eps_0 is None else options.eps_0
        net = Net(side, radius, points.shape[1])
        copies = options.copies_on(net)
        accountant, c = _high_dim_accountant(options, dim=net.dim, power=1, copies=copies)
        self.state, self.promise = _built(
            points, signed, options, power=1, accountant=accountant, c=c, copies=copies, net=net
        )


def _high_dim_accountant(
    options: HighDimOptions | HighDimAdaptiveOptions, *, dim: int, power: int, copies: int = 1
) -> tuple[Accountant, float | None]:
    """Return what trees with so many levels cost, tightly or by Algorithm 6; and its c."""
    budget, trees = options.budget, (power + 1) * dim * copies
    if options.tight:
        return plain_accountant(budget, composition=options.composition, each=trees), None
    one = budget.share(copies)

    def line_at(c: float) -> Privacy:
        factor = c / math.sqrt(dim * math.log(1 / one.prime))
        return replace_privacy(factor * one.epsilon, one.delta / dim)

    def composed_at(c: float) -> Privacy:
        lines = compose_equal(line_at(c), dim, delta_prime=one.prime)
        return accounting.basic([(lines, copies)])

    c = resolved_c(options.c, composed_at, budget.total)
    line, composed = line_at(c), check_composition(composed_at(c), budget.total)

    def account(kind: Noise, height: int) -> Account:
        share = height * (power + 1)
        noise = node_noise(kind, epsilon=line.epsilon / share, delta=line.delta / share)
        return Account(noise, height * trees, composed)

    return account, c


def _built(
    points: Floats,
    weights: Floats,
    options: DistanceOptions | HighDimAdaptiveOptions,
    *,
    power: int,
    accountant: Accountant,
    c: float | None = None,
    copies: int = 1,
    net: Net | None = None,
) -> tuple[DistanceState, Promise]:
    """Return the state of moment trees over points (n, d) and weights (n,), and what it costs."""
    levels, box, bound = levels_for(len(points)), options.box, options.weight_bound
    answer_scale(bound, box, power)  # must fit
    check_size(
        {
            "nodes": node_count(all_depths(levels)),
            "coordinates": points.shape[1],
            "moments": power + 1,
            "copies": copies,
        },
        limit=options.memory_limit,
    )
    chosen = design(
        levels,
        estimator=options.estimator,
        branching=options.branching,
        noise=options.noise,
        accountant=accountant,
        right=mirror_sign(power),
    )
    noise = chosen.account.noise
    unit_weights = to_unit(weights[:, None], -bound, bound)
    leaves = moment_sums(box.to_unit(points), unit_weights, power, noise.unit)
    [forest], promise = release(
        [ExactTrees(leaves, noise.law, copies, chosen.forest, chosen.depths)],
        options,
        composed=chosen.account.composed,
        whole=chosen.account.mechanisms,
    )
    trees = DistanceForest(forest, noise, power, len(points))
    return DistanceState(options.composition, trees, box, bound, c, net), promise
