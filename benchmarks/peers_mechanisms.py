"""Other private ways to the same sums, with the noise that the same promise asks of them.

All of them answer sums of [v; τ] over rows, weighed by K(q, k) = exp(scale·⟨q, k⟩ - largest), which
is at most one; τ weighs the denominator. If keys and queries have length one and `largest` is the
scale, K is the Gaussian kernel exp(-scale·‖q - k‖²/2).

Noise is drawn from seeds: for measurements, NOT PRIVATE. Where a rival has something to choose, the
callers pick what is best on exact answers, which nobody could do privately.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.accounting import gaussian_sigma

Floats = NDArray[np.float64]

ADD_REMOVE, REPLACE = "add_remove", "replace"
ROWS_AT_ONCE = 1_000
QUERIES_AT_ONCE = 64


@dataclass(frozen=True)
class Weights:
    """K(q, k) = exp(scale·⟨q, k⟩ - largest).

    Attributes:
        scale: logit = scale·⟨q, k⟩.
        largest: the largest logit that may be, so that K is at most one.
    """

    scale: float
    largest: float

    def of(self, queries: Floats, keys: Floats) -> Floats:
        """Return the weights, shape (m, n)."""
        return np.exp(self.scale * (queries @ keys.T) - self.largest)

    def gain(self, points: Floats) -> Floats:
        """Return g(x): K(q, k) is g(q)·g(k) times the Gaussian kernel of q and k. At most one."""
        return np.exp((self.scale * np.sum(points**2, axis=1) - self.largest) / 2)


@dataclass(frozen=True)
class Sums:
    """Answers to some queries.

    Attributes:
        numerator: Σ K(q, k)·v, shape (m, c).
        denominator: Σ K(q, k), shape (m,).
    """

    numerator: Floats
    denominator: Floats

    def attention(self, length: float, least: float = 0.0) -> Floats:
        """Return quotients no longer than values can be; denominators are at least so large."""
        safe = np.maximum(self.denominator, max(least, np.finfo(float).tiny))
        found = self.numerator / safe[:, None]
        too_long = np.linalg.norm(found, axis=1, keepdims=True) / length
        return found / np.maximum(too_long, 1.0)

    def less(self, middle: float) -> "Sums":
        """Return sums of values that are less by `middle` in every column."""
        return Sums(self.numerator - middle * self.denominator[:, None], self.denominator)

    def noisy(self, noise: Floats, tau: float) -> "Sums":
        """Return sums of [v; τ] with noise added, shape (m, c + 1)."""
        return Sums(self.numerator + noise[:, :-1], self.denominator + noise[:, -1] / tau)


@dataclass(frozen=True)
class Promise:
    """What is promised, and how far one row can move what a mechanism adds noise to.

    Lengths are those of values: ‖v‖₂, or ‖v‖₁ where noise is Laplace. Bounds are the least that
    hold for all keys, values and frequencies: nobody has more noise than the promise asks for.
    """

    epsilon: float
    delta: float
    neighbours: str = ADD_REMOVE

    @property
    def sigma(self) -> float:
        """Gaussian noise that hides a change of one: the analytic mechanism, tight."""
        return gaussian_sigma(epsilon=self.epsilon, delta=self.delta)

    @property
    def replaces(self) -> bool:
        """Whether a row is replaced; else it is added or removed."""
        return self.neighbours == REPLACE

    def of_answer(self, tau: float, length: float) -> float:
        """Return the L2 change of the answer to one query, [Σ K·v; τ·Σ K].

        A replaced row moves it by K·[v; τ] - K'·[v'; τ], whose length is convex in K and K': at
        most that of two opposite values with both weights one, or of one row alone.
        """
        alone = math.hypot(length, tau)
        return max(2 * length, alone) if self.replaces else alone

    def of_function(self, tau: float, length: float) -> float:
        """Return the change of all answers together, in the norm of the kernel's own space.

        Two rows are [v; τ]⊗φ(k), of inner product K(k, k')·(⟨v, v'⟩ + τ²), with K from 0 to 1.
        """
        alone = math.hypot(length, tau)
        return max(2 * length, math.sqrt(2) * alone) if self.replaces else alone

    def of_waves(self, features: int, tau: float, length: float) -> float:
        """Return the L1 change of sums of (cos, sin)⊗[v; τ] over so many pairs.

        A pair is (cos, sin), of L1 length √2 at the most.
        """
        alone = math.sqrt(2) * features * (length + tau)
        return 2 * alone if self.replaces else alone

    def of_waves_squared(self, features: int, tau: float, length: float) -> float:
        """Return the L2 change of the same: a pair has length one."""
        alone = math.sqrt(features) * math.hypot(length, tau)
        return 2 * alone if self.replaces else alone

    def of_rows(self, weight: float, length: float, radius: float) -> float:
        """Return the L2 change of [weight·k; v] for keys within a radius.

        How many rows there are is told, so this cannot be private when a row is added or removed.
        Instead of that a row's content is replaced by nothing: the nearest promise that can be
        kept, and the kindest.
        """
        alone = math.hypot(weight * radius, length)
        return 2 * alone if self.replaces else alone

    def of_counts(self) -> float:
        """Return the L1 change of counts of rows in cells."""
        return 2.0 if self.replaces else 1.0


def exact(queries: Floats, keys: Floats, values: Floats, weights: Weights) -> Sums:
    """Return sums without noise."""
    numerators, denominators = [], []
    for part in slices(len(queries), QUERIES_AT_ONCE):
        found = weights.of(queries[part], keys)
        numerators.append(found @ values)
        denominators.append(found.sum(axis=1))
    return Sums(np.concatenate(numerators), np.concatenate(denominators))


# --- noise for each question ----------------------------------------------------------------------


def question_spread(promise: Promise, questions: int, tau: float, length: float) -> float:
    """Return the deviation of answers that are paid for one by one.

    The Gaussian mechanism for each of so many adaptive questions; together they are one with √Q
    times the deviation, which is the best composition that there is.
    """
    return promise.sigma * math.sqrt(questions) * promise.of_answer(tau, length)


def process(queries: Floats, columns: int, weights: Weights, seed: int) -> Floats:
    """Return a Gaussian process with the kernel as covariance (Hall, Rinaldo, Wasserman 2013).

    A row moves the whole function by no more than `Promise.of_function`, so that all queries
    together have the noise of one. It cannot be given away: each new answer is drawn given all
    earlier ones, so somebody must keep the rows and everything that was ever asked.
    """
    values, vectors = np.linalg.eigh(weights.of(queries, queries))
    root = vectors * np.sqrt(np.maximum(values, 0))
    return root @ np.random.default_rng(seed).normal(size=(len(queries), columns))


# --- random features with Laplace noise -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Waves:
    """Random Fourier features in the manner of LSQ (Wagner, Naamad and Mishra, ICML 2023).

    Sums of features over rows have Laplace noise, so that they are ε-differentially private with
    δ = 0, for any number of queries. Here features are pairs (cos⟨ω, x⟩, sin⟨ω, x⟩) in place of the
    published √2·cos(⟨ω, x⟩ + b): as exact with half the variance of the noise.

    Attributes:
        frequencies: shape (d, r).
        sums: exact sums of features times [v; 1], cosines first, shape (2, r, c + 1).
        weights: whose gains rows and queries have, beside the Gaussian kernel.
    """

    frequencies: Floats
    sums: Floats
    weights: Weights

    @classmethod
    def of(
        cls, keys: Floats, values: Floats, weights: Weights, *, features: int, seed: int
    ) -> "Waves":
        """Return the sums of so many pairs over all rows, without noise."""
        rng = np.random.default_rng(seed)
        frequencies = math.sqrt(weights.scale) * rng.normal(size=(keys.shape[1], features))
        # Single precision: errors of 1e-6 are far below those of features, and half the time.
        single = frequencies.astype(np.float32)
        sums = np.zeros((2, features, values.shape[1] + 1))
        for rows in slices(len(keys), ROWS_AT_ONCE):
            angles = keys[rows].astype(np.float32) @ single
            gains = weights.gain(keys[rows])[:, None]
            weighed = (gains * np.hstack([values[rows], np.ones_like(gains)])).astype(np.float32)
            sums += np.stack([np.cos(angles).T @ weighed, np.sin(angles).T @ weighed])
        return cls(frequencies, sums, weights)

    def mapped(self, queries: Floats) -> Floats:
        """Return what reads the sums, over the number of pairs that are read: (2, m, r)."""
        angles = queries @ self.frequencies
        return self.weights.gain(queries)[:, None] * np.stack([np.cos(angles), np.sin(angles)])


def read_waves(mapped: Floats, sums: Floats, features: int) -> Floats:
    """Return what the first so many pairs answer, from sums or from noise: shape (m, c + 1)."""
    both = mapped[:, :, :features] @ sums[:, :features]
    return both.sum(axis=0) / features


def laplace(size: tuple[int, ...], seed: int) -> Floats:
    """Return Laplace noise of scale one."""
    return np.random.default_rng(seed).laplace(size=size)


# --- counts at public points ----------------------------------------------------------------------


def counts(keys: Floats, one_hot: Floats, points: Floats) -> Floats:
    """Return how many rows of each class have which point as their nearest, shape (p, c)."""
    found = np.zeros((len(points), one_hot.shape[1]))
    squares = np.sum(points**2, axis=1) / 2
    for rows in slices(len(keys), ROWS_AT_ONCE):
        nearest = np.argmax(keys[rows] @ points.T - squares, axis=1)
        np.add.at(found, nearest, one_hot[rows])
    return found


def read_counts(queries: Floats, points: Floats, found: Floats, weights: Weights) -> Sums:
    """Return sums as if all rows were at their points."""
    weighed = weights.of(queries, points) @ found
    return Sums(weighed, weighed.sum(axis=1))


# --- noise on each row ----------------------------------------------------------------------------


def noisy_rows(
    keys: Floats,
    values: Floats,
    promise: Promise,
    *,
    weight: float,
    length: float,
    radius: float,
    seed: int,
) -> tuple[Floats, Floats]:
    """Return rows that have Gaussian noise, each by itself; they may be given away.

    Args:
        keys: within `radius` of zero.
        values: no longer than `length`.
        promise: see `Promise.of_rows` for what it means here.
        weight: of keys beside values: how the noise is shared.
        length: of values, at most.
        radius: of keys, at most.
        seed: of the noise.
    """
    spread = promise.sigma * promise.of_rows(weight, length, radius)
    rng = np.random.default_rng(seed)
    return (
        keys + spread / weight * rng.normal(size=keys.shape),
        values + spread * rng.normal(size=values.shape),
    )


def within(rows: Floats, radius: float, *, on_sphere: bool) -> Floats:
    """Return rows no longer than the radius; exactly so long if they are known to be."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) / radius
    return rows / (np.maximum(lengths, 1e-12) if on_sphere else np.maximum(lengths, 1.0))


def slices(count: int, size: int) -> Iterator[slice]:
    """Return consecutive parts of so many rows."""
    return (slice(start, start + size) for start in range(0, count, size))
