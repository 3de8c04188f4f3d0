"""Predicted errors of answers, where nothing is known of the rows but how many there are.

All of it is a function of public numbers. Rows that are spread evenly in a few directions, around a
common mean, stand in for the private ones; where there are public rows, these tell what rows have
in common.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.features.kernel import answer_length, log_mean_weight

# Recommended temperatures have logits between these.
_LEAST_LOGIT, _LARGEST_LOGIT = 0.1, 20.0

# Where rows vary in eight directions or more no sharper logits are recommended than this (in more
# directions less, by their square root), but for what public rows show all to have in common: what
# a query finds there depends on assumptions above all.
_SHARPEST = 6.0

# Rows are taken to vary in so many directions, or in this share of all if that is more (sentence
# embeddings in 384 dimensions do), and values to depend on no more than so many.
_DIRECTIONS, _SHARE = 8.0, 1 / 8

# Answers that differ by less than this times their error are not recommended.
_CLEAR_OF_ERROR = 0.8

# So many public rows tell what rows have in common, and how well some of them stand for the others.
_SAMPLE, _HALVED = 500, 300

# Rows that answer one query are taken to have such an inner product, over their bounds: they lie in
# groups, and not evenly. It takes so many reference points to learn one number of theirs.
_ALIKE, _POINTS_A_NUMBER = 2 / 3, 8

# Points leave no less than this of the kernel's error; rows among public ones are explained with
# such a ridge.
_LEAST_LEFT, _RIDGE = 0.02, 0.1


class Goal(StrEnum):
    """What answers are for; the recommended temperature follows from it."""

    RANK = "rank"
    """The largest number of an answer counts: votes, classes, nearest things."""
    AVERAGE = "average"
    """The numbers themselves count: ratings, rates, regression."""

    @classmethod
    def parse(cls, goal: object) -> "Goal":
        """Return the goal of that name, or raise `InvalidInput`."""
        if isinstance(goal, str) and goal in {str(each) for each in cls}:
            return cls(goal)
        return _validate.reject_argument("goal", goal, f"one of {[str(each) for each in cls]}")


# How much what is averaged away counts against errors. Votes survive errors that leave the largest
# number the largest, so for them blur counts more.
_BLUR = {Goal.RANK: 4.0, Goal.AVERAGE: 0.5}


@dataclass(frozen=True, eq=False)
class Sample:
    """What public rows tell about keys and queries that are like them.

    Attributes:
        products: inner products of some of them, over the bounds of keys and queries, shape (n, n).
    """

    products: Floats

    @classmethod
    def of(cls, rows: Floats) -> "Sample":
        """Return what the first 500 of some public rows tell, over their bound; clipped to it."""
        some = rows[:_SAMPLE]
        some = some / np.maximum(np.linalg.norm(some, axis=1, keepdims=True), 1.0)
        return cls(some @ some.T)

    @cached_property
    def common(self) -> float:
        """The mean product of two rows, at least zero: what they have in common."""
        return max(self._mean(self.products), 0.0)

    @cached_property
    def square(self) -> float:
        """The mean squared length."""
        return float(np.mean(np.diag(self.products)))

    def nearness(self, logit: float) -> float:
        """Return the mean weight of rows, over that of a row at the largest logit."""
        shorter = (1 - np.diag(self.products)[:, None]) / 2
        return self._mean(np.exp(logit * (self.products + shorter - 1)))

    def unexplained(self, logit: float) -> float:
        """Return which share of the kernel's error is left where rows like these are the reference.

        Half of them are the points. The errors of two other rows' weights are as alike as their
        kernel is; what the points explain of it is K_BA·(K_AA + λ)⁻¹·K_AB. Root mean square, over
        pairs that one query attends to.
        """
        some = self.products[:_HALVED, :_HALVED]
        half = np.diag(some) / 2
        kernel = np.exp(logit * (some - half[:, None] - half))
        points, across, rows = kernel[::2, ::2], kernel[::2, 1::2], kernel[1::2, 1::2]
        fitted = np.linalg.solve(points + _RIDGE * np.eye(len(points)), across)
        weights = rows - np.eye(len(rows))  # a row does not ask about itself
        pairs = (weights.T @ weights) * (1 - np.eye(len(rows)))
        left = float(np.sum(pairs * (rows - across.T @ fitted)) / np.sum(pairs * rows))
        return math.sqrt(min(max(left, _LEAST_LEFT**2), 1.0))

    def _mean(self, pairs: Floats) -> float:
        """Return the mean over pairs of different rows."""
        count = len(pairs)
        return float(np.sum(pairs) - np.trace(pairs)) / (count * (count - 1))


@dataclass(frozen=True, kw_only=True)
class ErrorModel:
    """Predicts the size of answers, and of all their errors, for rows that nobody has seen.

    Errors and signals are those of one number of an answer, over the length of values. They are
    right within a factor of two where rows vary around zero in about eight directions, or where
    there is a sample; `docs/errors.md` says how far off they were elsewhere.

    Attributes:
        rows: how many there are.
        dim: width of keys.
        value_dim: width of values.
        tau: weight of the denominator, over the length of values.
        multiplier: noise of a number of the state, over what one row adds to it at most.
        weight_error: standard error of one weight, over the largest, of the kernel.
        common: the mean product of two rows over their bounds; zero if they are centred.
        sample: public rows like them, if there are any.
        points: how many usual points they are read near (`reference`); zero if features are read
            as they are.
        reference: what a caller's points tell, if there are any.
    """

    rows: int
    dim: int
    value_dim: int
    tau: float
    multiplier: float
    weight_error: float
    common: float = 0.0
    sample: Sample | None = None
    points: int = 0
    reference: Sample | None = None

    @property
    def directions(self) -> float:
        """In how many directions rows vary."""
        return min(float(self.dim), max(_DIRECTIONS, self.dim * _SHARE))

    def with_common(self, common: float) -> "ErrorModel":
        """Return the same for rows that have so much in common, and nothing else known."""
        return replace(self, common=common, sample=None)

    def apart(self, logit: float) -> float:
        """Return the logit that is left when what all rows have in common is taken out."""
        common = self.common if self.sample is None else self.sample.common
        return logit * max(1 - common, 1e-6)

    def nearness(self, logit: float) -> float:
        """Return the mean of e^(logit - t) over rows: the share of them that a query attends to."""
        if self.sample is not None:
            return self.sample.nearness(logit)
        apart = self.apart(logit)
        return math.exp(log_mean_weight(apart, self.directions) - apart)

    def lean(self, logit: float) -> float:
        """Return by how much answers follow a query: 0, all are the same, to 1, its nearest row."""
        return answer_length(self.apart(logit), self.directions)

    @property
    def value_spread(self) -> float:
        """How much one number of values differs, if they are spread evenly in their ball."""
        return 1 / math.sqrt(self.value_dim + 2)

    def signal(self, logit: float) -> float:
        """Return how much answers differ from query to query if keys tell values apart: at best.

        A query lies along each of D directions by 1/√D of its length, so answers that depend on
        eight of them follow it by √(8/D).
        """
        along = math.sqrt(min(_DIRECTIONS / self.directions, 1.0))
        return self.lean(logit) * self.value_spread * along

    def noise(self, logit: float) -> float:
        """Return the standard error that the noise makes.

        A numerator has noise e^t·multiplier·√(1 + τ²), in units of the length of values; the mass
        that it is divided by is e^t·rows·nearness, and has noise itself.
        """
        numerator = self.multiplier * math.hypot(1, self.tau)
        mass = self.rows * self.nearness(logit)
        return numerator / mass * math.hypot(1, self.signal(logit) / self.tau)

    def kernel(self, logit: float) -> float:
        """Return the standard error that the kernel makes; in proportion to `weight_error`.

        The errors of two rows' weights are as alike as their kernel κ is large, times how far it is
        from one (random features are exact where rows are alike): the variance of an answer is
        Σ_ij a_i·a_j·κ_i·κ_j·(cosh x_ij - 1) over the squared mass, with a = value - answer.
        """
        near, lean = self.nearness(logit), self.lean(logit)
        unlike = 1 - math.exp(-self.apart(logit))
        shorter = 0.0 if self.sample is None else logit * (1 - self.sample.square) / 4
        alike = math.sqrt((lean + lean**2 + 1 / (self.rows * near)) / near)
        read = self.value_spread * math.exp(-shorter) * self.unexplained(logit)
        return self.weight_error * read * unlike * alike

    def unexplained(self, logit: float) -> float:
        """Return which share of the kernel's error is left where it is read near points.

        Evenly spread points learn what rows are like degree by degree: the mean, the slope, and so
        on. Two rows with the logit x between them are alike in the polynomials of degree l by
        e^-x·x^l/l!, of which there are as many as there are spherical harmonics.
        """
        if not self.points:
            return 1.0
        common = self.common if self.sample is None else self.sample.common
        logits = logit * (common + (1 - common) * _ALIKE)
        # There are about one over the squared error of a weight features to learn from.
        known = min(self.points, 1 / self.weight_error**2 if self.weight_error else math.inf)
        left, share, budget = 1.0, math.exp(-logits), known / _POINTS_A_NUMBER
        for degree in range(1, 2 + int(budget)):
            harmonics = _harmonics(self.dim, degree - 1)
            left -= share * min(budget / harmonics, 1.0) if harmonics else 0.0
            share *= logits / degree
            budget -= harmonics
            if budget <= 0 or (degree > logits and share < _LEAST_LEFT**2 / 10):
                break
        usual = math.sqrt(min(max(left, _LEAST_LEFT**2), 1.0))
        return usual if self.reference is None else min(usual, self.reference.unexplained(logit))

    def error(self, logit: float) -> float:
        """Return noise and kernel together; no answer is off by more than values are long."""
        return min(math.hypot(self.noise(logit), self.kernel(logit)), 1.0)

    def error_of(self, attended: float) -> float:
        """Return the error of an answer that so many rows make up, all as near as rows can be."""
        near, number = attended / self.rows, 1 / math.sqrt(self.value_dim)
        noise = self.multiplier * math.hypot(1, self.tau) / attended
        noise *= math.hypot(1, number / self.tau)
        # The same as `kernel`, where answers follow the query to the end.
        kernel = self.weight_error * self.value_spread * math.sqrt((2 + 1 / attended) / near)
        return math.hypot(noise, kernel)

    def hidden(self, logit: float) -> float:
        """Return the `weight_error` at which the kernel's error is as large as the noise."""
        return self.noise(logit) / replace(self, weight_error=1.0).kernel(logit)

    def risk(self, logit: float, goal: Goal) -> float:
        """Return what is averaged away and both errors, squared, over how much values differ."""
        blur = _BLUR[goal] * (1 - self.lean(logit)) ** 2
        return blur + (math.hypot(self.noise(logit), self.kernel(logit)) / self.value_spread) ** 2

    def recommended_scale(self, reach: float, goal: Goal) -> float:
        """Return the scale of the least `risk` at which answers are clear of their error.

        Where none is, the clearest. No sharper than is of use.

        Args:
            reach: key_norm·query_norm, the logit at scale one.
            goal: what answers are for.
        """
        from scipy import optimize  # here, because it takes long to load

        largest = _LARGEST_LOGIT
        if self.sample is not None:
            largest = min(_SHARPEST / self.apart(1.0), _LARGEST_LOGIT)
        elif self.dim > _DIRECTIONS:
            largest = _SHARPEST * math.sqrt(_DIRECTIONS / self.directions)
        # The risk may have more than one low: a grid finds the lowest, and is then refined.
        grid = np.geomspace(_LEAST_LOGIT, largest, 60)
        best = int(np.argmin([self.risk(float(logit), goal) for logit in grid]))
        between = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)]))
        logit = float(optimize.minimize_scalar(self.risk, bounds=between, args=(goal,)).x)
        if self.risk(largest, goal) <= self.risk(logit, goal):
            logit = largest
        if self._surplus(logit) < 0:
            top = int(np.argmax([self._surplus(float(each)) for each in grid]))
            clearest = float(grid[top])
            logit = (
                float(optimize.brentq(self._surplus, clearest, logit, xtol=1e-6))
                if clearest < logit and self._surplus(clearest) > 0
                else min(clearest, logit)
            )
        # Three digits are enough, and look better on a card.
        return float(f"{logit / reach:.3g}")

    def _surplus(self, logit: float) -> float:
        """Return by how much answers are clearer of their error than they have to be (log)."""
        return math.log(self.signal(logit) / self.error(logit) / _CLEAR_OF_ERROR)


def _harmonics(dim: int, degree: int) -> int:
    """Return how many spherical harmonics of a degree there are in so many dimensions."""
    below = math.comb(dim + degree - 3, degree - 2) if degree >= 2 and dim > 1 else 0
    return math.comb(dim + degree - 1, degree) - below if dim > 1 else int(degree < 2)
