"""Ways to answer Σ w_i·‖y - x_i‖_p^p privately: the paper's trees, and what else there is.

Points lie in [0, 1]^d and weights in [-1, 1]; both are private and one row is replaced. All methods
have the same (ε, δ) in total; all but `one_by_one` answer any number of queries. The noise is drawn
from seeds: for measurements by the owner, NOT PRIVATE.

The real data comes with scikit-learn and matplotlib, between public bounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import numpy as np

from discreet import paper
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.paper import oracle
from discreet.testing import Seeded
from discreet_benchmarks.paper.attention import normals, sigma

# Cosines of a series: so many that what is left out does not show.
_TERMS = 512
_WAVES = np.arange(1, _TERMS) * math.pi

METRES = 2048.0  # no hill of that region is higher
HILLS = "hills"


@dataclass(frozen=True, eq=False)
class Distances:
    """A data set and queries.

    Attributes:
        points: shape (n, d), in [0, 1].
        weights: shape (n,), in [-1, 1].
        queries: shape (m, d), in [0, 1].
        power: p.
        epsilon: of the whole.
        delta: of the whole.
    """

    points: Floats
    weights: Floats
    queries: Floats
    power: int = 1
    epsilon: float = 1.0
    delta: float = 1e-6

    @cached_property
    def truth(self) -> Floats:
        """The exact answers, shape (m,)."""
        return oracle.high_dim_distance(self.points, self.weights, self.queries, self.power)

    @property
    def spread(self) -> float:
        """The standard deviation of the exact answers: the error of the best constant."""
        return float(np.std(self.truth))

    def error(self, answers: Floats) -> float:
        """Return the root mean square error."""
        return float(np.sqrt(np.mean((answers - self.truth) ** 2)))

    @cached_property
    def waves(self) -> list[Floats]:
        """Σ w·cos(kπx) and Σ w·sin(kπx) of each coordinate, shape (2, k): with no noise yet."""
        return [wave_sums(column, self.weights) for column in self.points.T]

    @property
    def dim(self) -> int:
        """How many coordinates there are."""
        return int(self.points.shape[1])

    def gaussian(self, change: float, shape: int | tuple[int, ...], seed: int) -> Floats:
        """Return Gaussian noise for a replaced row that changes what is released by so much."""
        return change * sigma(self.epsilon, self.delta) * normals(shape, seed)


Method = Callable[[Distances, int], Floats]


def trees(**options: Any) -> Method:  # noqa: ANN401
    """Return a method that asks DPTreeDistance (d = 1) or DPTreeHighDim, with these options."""

    def ask(data: Distances, seed: int) -> Floats:
        return tree(data, seed, **options).query(
            data.queries[:, 0] if data.dim == 1 else data.queries
        )

    return ask


def tree(
    data: Distances,
    seed: int,
    *,
    c: float | str = "largest",
    **options: Any,  # noqa: ANN401
) -> paper.DPTreeDistance | paper.DPTreeHighDim:
    """Return the paper's structure; c counts where there are coordinates to compose."""
    settings = {
        "p": data.power,
        "upper": 1.0,
        "weight_bound": 1.0,
        "epsilon": data.epsilon,
        "entropy": Seeded(seed),
        **options,
    }
    if data.dim == 1:
        return paper.DPTreeDistance(data.points[:, 0], data.weights, delta=data.delta, **settings)
    half = data.delta / 2
    return paper.DPTreeHighDim(
        data.points, data.weights, delta=half, delta_prime=half, c=c, **settings
    )


def histogram(cells: int) -> Method:
    """Return a method that releases the weight in each of so many cells of each coordinate.

    A replaced row changes a coordinate's cells by at most 2 in L2 norm (the same cell, another
    sign), and all of them by 2·√d. Distances are read from the cells' middles.
    """

    def ask(data: Distances, seed: int) -> Floats:
        middles = (np.arange(cells) + 0.5) / cells
        own = np.minimum((data.points * cells).astype(int), cells - 1)
        noise = data.gaussian(2 * math.sqrt(data.dim), (data.dim, cells), seed)
        answers = np.zeros(len(data.queries))
        for j in range(data.dim):
            sums = np.bincount(own[:, j], data.weights, cells) + noise[j]
            for at in range(0, len(answers), 10):  # bounds the memory of one step
                apart = np.abs(data.queries[at : at + 10, j, None] - middles)
                answers[at : at + 10] += (apart if data.power == 1 else apart**data.power) @ sums
        return answers

    return ask


def cosines(data: Distances, seed: int) -> Floats:
    """Release Σ w·cos(kπx) and Σ w·sin(kπx) of each coordinate, weighed by a series of |t|^p.

    On [-1, 1] |t|^p = Σ_k c_k·cos(kπt), and cos(kπ(y - x)) = cos·cos + sin·sin. With √|c_k| on either
    side a row's numbers have squared norm Σ|c_k| in each coordinate, and so have a query's: noise of
    2σ·d·Σ|c_k|, whatever n and the number of queries are. (For p = 1 and d = 1 that is what a single
    query costs.) The zeroth number, Σ w, is the same for all coordinates and released once.
    """
    series = cosine_series(data.power)
    scale = np.sqrt(np.abs(series))
    scale[0] *= math.sqrt(data.dim)
    change = 2 * math.sqrt(scale[0] ** 2 + data.dim * float(np.sum(scale[1:] ** 2)))
    total = scale[0] * data.weights.sum() + data.gaussian(change, 1, seed)[0]
    answers = np.full(len(data.queries), data.dim * series[0] / scale[0] * total)
    signs = np.sign(series[1:]) * scale[1:]
    noise = data.gaussian(change, (data.dim, 2, _TERMS - 1), seed + 2**32)
    for j in range(data.dim):
        sums = scale[1:] * data.waves[j] + noise[j]
        phases = data.queries[:, j, None] * _WAVES
        answers += np.cos(phases) @ (signs * sums[0]) + np.sin(phases) @ (signs * sums[1])
    return answers


@cache
def cosine_series(power: int) -> Floats:
    """Return c_0, c_1, ... of |t|^p = Σ c_k·cos(kπt) on [-1, 1].

    With I_p = ∫_0^1 t^p·cos(kπt) dt: I_0 = 0, I_1 = ((-1)^k - 1)/(kπ)², and by parts twice
    I_p = (p·(-1)^k - p(p-1)·I_{p-2})/(kπ)².
    """
    k = np.arange(1, _TERMS)
    signs, squares = (-1.0) ** k, (k * math.pi) ** 2
    before, integral = np.zeros(len(k)), (signs - 1) / squares
    low = power % 2
    integral = integral if low else before
    for p in range(low + 2, power + 1, 2):
        integral = (p * signs - p * (p - 1) * integral) / squares
    return np.concatenate([[1 / (power + 1)], 2 * integral])


def wave_sums(points: Floats, weights: Floats) -> Floats:
    """Return Σ w·cos(kπx) and Σ w·sin(kπx), shape (2, k): equal points are added up first."""
    values, where = np.unique(points, return_inverse=True)
    sums = np.bincount(where, weights, len(values))
    totals = np.zeros((2, len(_WAVES)))
    for at in range(0, len(values), 4096):  # bounds the memory of one step
        phases = values[at : at + 4096, None] * _WAVES
        totals += sums[at : at + 4096] @ np.cos(phases), sums[at : at + 4096] @ np.sin(phases)
    return totals


def moments(data: Distances, seed: int) -> Floats:
    """Release Σ w·u^q of each coordinate, u = x - ½, for even p: all that a query needs.

    Row numbers are at most 2^-q, so that a replaced row changes all by 2·√(1 + d·Σ_q 4^-q).
    """
    powers = np.arange(data.power + 1)
    change = 2 * math.sqrt(1 + data.dim * float(np.sum(4.0 ** -powers[1:])))
    total = data.weights.sum() + data.gaussian(change, 1, seed)[0]
    noise = data.gaussian(change, (data.dim, data.power), seed + 2**32)
    answers = np.zeros(len(data.queries))
    binomials = np.array([math.comb(data.power, q) for q in powers]) * (-1.0) ** powers
    for j in range(data.dim):
        u, y = data.points[:, j] - 0.5, data.queries[:, j] - 0.5
        sums = np.array([data.weights @ u**q for q in powers])
        sums[0] = total
        sums[1:] += noise[j]
        answers += y[:, None] ** (data.power - powers) @ (binomials * sums)
    return answers


def one_by_one(data: Distances, seed: int) -> Floats:
    """Add Gaussian noise to the answers of all m queries at once; after them the budget is spent.

    A replaced row changes an answer by at most 2·Σ_j max(y_j, 1 - y_j)^p.
    """
    each = 2 * np.sum(np.maximum(data.queries, 1 - data.queries) ** data.power, axis=1)
    noise = data.gaussian(float(np.linalg.norm(each)), len(each), seed)
    return data.truth + noise


@dataclass(frozen=True, eq=False)
class Data:
    """Points in [0, 1]^d and weights in [-1, 1].

    Attributes:
        name: of the data set.
        about: what points and weights are, and their public bounds.
        points: shape (n, d).
        weights: shape (n,).
    """

    name: str
    about: str
    points: Floats
    weights: Floats


def data_sets(*, every: int = 1) -> list[Data]:
    """Return all of them, smallest first; without scikit-learn, say what to install.

    Args:
        every: of the largest, take only every so many rows.
    """
    datasets = _scikit_learn_datasets()
    diabetes = datasets.load_diabetes(scaled=False)
    cancer = datasets.load_breast_cancer()
    digits = datasets.load_digits()
    heights, places = elevations()
    hills, places = heights[::every] / METRES, places[::every]
    return [
        Data(
            "diabetes",
            "body mass index in [10, 60], weighed by the progress of the disease over 350",
            _scaled(diabetes.data[:, 2:3], 10, 60),
            np.clip(diabetes.target / 350, -1, 1),
        ),
        _counted(
            "breast cancer",
            "mean radius in [0, 30] and mean texture in [0, 40] of cell nuclei",
            np.concatenate(
                [_scaled(cancer.data[:, k : k + 1], 0, most) for k, most in ((0, 30), (1, 40))],
                axis=1,
            ),
        ),
        _counted(
            "digits",
            "ink of an image, a share of its 64 pixels",
            _scaled(digits.data.sum(axis=1)[:, None], 0, 1024),
        ),
        _counted(HILLS, f"elevation in [0, {METRES:.0f}] metres", hills[:, None]),
        _counted(
            f"{HILLS}, 2-d",
            "the same, and how far north, a share of the map",
            np.stack([hills, places], axis=1),
        ),
    ]


def _scikit_learn_datasets() -> ModuleType:
    try:
        from sklearn import datasets
    except ImportError:
        raise InvalidInput(
            "Expected scikit-learn, with which some of the data comes: pip install 'discreet[sklearn]'."
        ) from None
    return datasets  # type: ignore[no-any-return] # scikit-learn has no types


def elevations() -> tuple[Floats, Floats]:
    """Return the elevations of a map that comes with matplotlib, in metres, and how far north."""
    from matplotlib import cbook

    path = cbook.get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)
    with np.load(str(path)) as file:
        heights = np.asarray(file["elevation"], dtype=np.float64)
    north = np.linspace(1, 0, heights.shape[0])
    return heights.reshape(-1), np.repeat(north, heights.shape[1])


def _scaled(values: Floats, low: float, high: float) -> Floats:
    return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0))


def _counted(name: str, about: str, points: Floats) -> Data:
    return Data(name, f"{about}, weight 1", points, np.ones(len(points)))
