"""Public ranges and what follows from them: boxes, nets, logits, tails of noise, copies.

All functions of public numbers. The paper bounds one copy by Chebyshev and boosts by the median;
the bounds here are the best of Chebyshev and Chernoff, with true constants.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from discreet import _validate
from discreet._typing import Floats
from discreet.features.taylor import Taylor
from discreet.noise import IntegerLaw

# Bounds and answers beyond these would leave float64 when they are squared.
_LEAST, _LARGEST = 1e-100, 1e100

# Beyond, a share of the failure probability would not fit a float.
_MOST_LOG_POINTS = 600.0

# How far snapping may move a logit: a finer net would cost copies and bring nothing, and a coarser
# one would answer many queries alike.
_MOVES = 0.01, 0.1
# e to a larger power leaves float64.
_MOST_MOVE = 700.0

# The logarithm of the smallest range of a feature, squared twice, that is still a normal number.
_LEAST_LOG_RANGE = -170.0

# What the paper asks of a single copy.
SINGLE_SUCCESS = 0.99


def public_bound(name: str, value: object) -> float:
    """Return a public bound if its squares and products stay within float64."""
    return _validate.real(name, value, at_least=_LEAST, at_most=_LARGEST)


@dataclass(frozen=True)
class Box:
    """[lower, upper] in each coordinate. Points outside are clipped, silently: it is public.

    The paper's trees stand on [0, R]. Distances do not change if points and queries are shifted
    together, and softmax does not change if all keys are: so both are shifted by `lower`.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        lower = _validate.real("lower", self.lower, at_least=-_LARGEST, at_most=_LARGEST)
        if lower == 0:
            upper = public_bound("upper", self.upper)
        else:
            upper = _validate.real("upper", self.upper, above=lower, at_most=_LARGEST)
            public_bound("upper - lower", upper - lower)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def side(self) -> float:
        """R of the trees: upper - lower."""
        return self.upper - self.lower

    def shifted(self, values: Floats) -> Floats:
        """Return values, clipped, as seen from the lower end: in [0, side]."""
        return np.asarray(np.clip(values, self.lower, self.upper) - self.lower)

    def to_unit(self, values: Floats) -> Floats:
        """Return values, clipped, as parts of the side: in [0, 1]."""
        return np.asarray(self.shifted(values) / self.side)


@dataclass(frozen=True)
class Net:
    """Cell centres of a grid on [0, upper]^dim: within `radius` of every point in each coordinate.

    An answer is bounded for every point of the net at once (union bound), so an adversary who
    chooses queries after seeing answers gains nothing; queries are snapped to the net before they
    are answered, because only there does the bound hold. It lives in query space, whatever the
    number of features: ⌈upper/(2·radius)⌉^dim points.
    """

    upper: float
    radius: float
    dim: int

    def __post_init__(self) -> None:
        _validate.real("eps_0", self.radius, at_least=1e-9 * self.upper)
        if self.log_points > _MOST_LOG_POINTS:
            wanted = f"so large that the net in {self.dim} dimensions has at most e^600 points"
            _validate.reject("eps_0", self.radius, wanted)

    @property
    def cells(self) -> int:
        """Cells along each coordinate."""
        return max(1, math.ceil(self.upper / (2 * self.radius) * (1 - 1e-12)))

    @property
    def log_points(self) -> float:
        """The logarithm of |N|; the number itself may not fit a float."""
        return self.dim * math.log(self.cells)

    def failure_per_point(self, failure: float) -> float:
        """Return failure/|N|, the share of each point in the union bound."""
        return failure * math.exp(-self.log_points)

    def snap(self, queries: Floats) -> Floats:
        """Return the nearest net point of each query, which is clipped to [0, upper] first."""
        width = self.upper / self.cells
        cell = np.minimum(np.floor(np.clip(queries, 0.0, self.upper) / width), self.cells - 1)
        return np.asarray((cell + 0.5) * width)


@dataclass(frozen=True)
class Logits:
    """Keys in a box, queries in [0, upper]^d, and the kernel for them.

    Keys lie in the box, which is shifted to begin at zero: that multiplies the weights of a query
    by exp(-scale·lower·Σ_j y_j), all alike, which softmax does not see and sums are divided by.

    Attributes:
        box: of the keys; its lower end is at most zero.
        kernel: P, on [0, side]^d.
        reach: how far a logit moves if each coordinate of the query moves by one: scale·d·side.
    """

    box: Box
    kernel: Taylor
    reach: float

    @classmethod
    def of(
        cls,
        dim: int,
        box: Box,
        *,
        eps_s: float | None = None,
        degree: int | None = None,
        scale: float | None = None,
    ) -> "Logits":
        """Return the logits of the paper, scale 1/d, or of another scale or degree."""
        _validate.real("lower", box.lower, at_most=0)  # queries are not shifted
        public_bound("upper", box.upper)
        kernel = Taylor.on_box(
            dim,
            upper=box.side,
            eps_s=eps_s,
            degree=degree,
            scale=scale,
            query_upper=box.upper,
        )
        _check_features(kernel, box.side)
        return cls(box, kernel, box.side if scale is None else scale * dim * box.side)

    def net(self, eps_0: float | None) -> Net:
        """Return the net on [0, upper]^d; by default, snapping moves a logit by at most ε_s.

        If there is a degree and no ε_s: by the kernel's error, but not less than a hundredth nor
        more than a tenth.
        """
        error = self.kernel.eps_s
        if eps_0 is None:
            least, most = _MOVES
            moved = min(max(self.kernel.error, least), most) if error is None else error
            eps_0 = moved / self.reach
        return Net(self.box.upper, eps_0, self.kernel.dim)

    def snapped_error(self, net: Net) -> float:
        """Return (1 + ε_s)·e^(reach·ε_0) - 1: snapping moves a logit that far; errors multiply."""
        moved = self.reach * net.radius
        if moved > _MOST_MOVE:
            return math.inf
        return (1 + self.kernel.error) * math.exp(moved) - 1

    def inside(self, queries: Floats) -> Floats:
        """Return queries, clipped to [0, upper]."""
        return np.clip(queries, 0.0, self.box.upper)

    def unshifted(self, queries: Floats) -> Floats:
        """Return exp(scale·lower·Σ_j y_j) for each query: what shifted sums are multiplied by."""
        total = self.inside(queries).sum(axis=-1)
        return np.asarray(np.exp(self.kernel.scale * self.box.lower * total))


def _check_features(kernel: Taylor, side: float) -> None:
    """Raise `InvalidInput` if a feature's range would vanish in float64.

    Without making features, of which there may be more than fit in memory: the smallest range of
    degree j is that of a single coordinate's power, (R·√scale)^j/√j!.
    """
    base = math.log(side) + 0.5 * math.log(kernel.scale)
    degree = kernel.degree or 0
    smallest = min(j * base - 0.5 * math.lgamma(j + 1) for j in range(degree + 1))
    if smallest < _LEAST_LOG_RANGE:
        _validate.reject("degree", degree, "smaller for logits as small as these: features vanish")


@dataclass(frozen=True)
class NoiseSum:
    """Σ c_i·Z_i with independent Z_i of one law; each weight c_i occurs `counts` times.

    A count need not be whole where it stands for nodes of other weights, as a bound.
    """

    law: IntegerLaw
    weights: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        squares = (n * c * c for c, n in zip(self.weights, self.counts, strict=True))
        return self.law.variance * math.fsum(squares)

    @property
    def largest_weight(self) -> float:
        """The largest |c_i|."""
        return max(abs(c) for c in self.weights)

    def log_moment(self, tilt: float) -> float:
        """Return an upper bound on ln E[e^(tilt·sum)]."""
        terms = (
            n * self.law.log_moment(tilt * c)
            for c, n in zip(self.weights, self.counts, strict=True)
        )
        return math.fsum(terms)


def tail_bound(parts: tuple[NoiseSum, ...], failure: float) -> float:
    """Return a t with Pr[|sum of all parts| > t] ≤ failure; the parts are independent."""
    if failure >= 1:
        return 0.0
    chebyshev = math.sqrt(math.fsum(part.variance for part in parts) / failure)
    ends = [part.law.largest_tilt / part.largest_weight for part in parts if part.largest_weight]
    if not ends:
        return 0.0
    # For a Gaussian the best tilt is √(2·ln(2/f))/σ; the end of a Laplace's range may be smaller.
    natural = math.sqrt(2 * math.log(2 / failure) / math.fsum(part.variance for part in parts))
    highest = min(*ends, 10 * natural)

    def chernoff(tilt: float) -> float:
        moment = math.fsum(part.log_moment(tilt) for part in parts)
        return (moment + math.log(2 / failure)) / tilt

    grid = highest * np.linspace(0.02, 0.999, 40)
    best = float(grid[int(np.argmin([chernoff(float(tilt)) for tilt in grid]))])
    found = optimize.minimize_scalar(
        chernoff, bounds=(best * 0.8, min(best * 1.2, highest * 0.9999)), method="bounded"
    )
    return min(chebyshev, chernoff(best), float(found.fun))


def median_failure(copies: int, single_failure: float) -> float:
    """Return the probability that the median of `copies` is off although each fails rarely.

    The median (of an even number: the mean of the middle two) is within the bound of the good
    copies unless at least half of them, rounded up, fail: an exact binomial tail.
    """
    return float(stats.binom.sf(math.ceil(copies / 2) - 1, copies, single_failure))


def copies_needed(failure: float) -> int:
    """Return the fewest copies, each good with probability 0.99, whose median fails that rarely."""
    failure = _validate.real("failure per net point", failure, above=0, below=1)
    copies = 1
    while median_failure(copies, 1 - SINGLE_SUCCESS) > failure:
        copies += 1
    return copies


def single_failure_for(copies: int, failure: float) -> float:
    """Return how often one copy may fail so that the median fails with at most `failure`.

    Pr[Bin(l, f) ≥ k] = I_f(k, l - k + 1), the regularised incomplete beta function, inverted.
    """
    least = math.ceil(copies / 2)
    return float(special.betaincinv(least, copies - least + 1, failure)) * (1 - 1e-9)
