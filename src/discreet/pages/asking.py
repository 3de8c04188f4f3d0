"""How good a memory's answers are, by its own word: it is asked, which costs nothing.

Questions point everywhere (or where the public rows do that the memory was built with), so they
say what to expect of a question about which nothing is known. Questions that many rows are like
have smaller errors.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from discreet._typing import Floats
from discreet.accounting import gaussian_sigma
from discreet.errors import MostlyNoiseWarning, NotCoveredWarning
from discreet.features.kernel import Evidence
from discreet.noise import RoundedGaussian
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.reader import WITHIN
from discreet.testing import Seeded

_QUESTIONS = 200
_LENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Error:
    """The ± of a number of an answer: the median of many questions, 1.96 standard errors.

    Attributes:
        at: the length of questions, or the ε.
        error: noise and kernel together.
        noise: the part that the noise makes.
    """

    at: float
    error: float
    noise: float


def by_length(memory: Memory) -> tuple[Error, ...]:
    """Return the errors of longer and longer questions."""
    directions = _directions(memory)
    found = []
    for share in _LENGTHS:
        length = share * memory.kernel.query_norm
        error, noise = _errors(memory, length * directions)
        found.append(Error(length, _typical(error), _typical(noise)))
    return tuple(found)


def by_epsilon(memory: Memory) -> tuple[Error, ...]:
    """Return the errors of the longest questions, had ε been another: about.

    The noise on sums is in proportion to σ(ε, δ); the kernel's part stays.
    """
    error, noise = _errors(memory, memory.kernel.query_norm * _directions(memory))
    # A bound is added to the noise, an estimate is independent of it.
    power = 1 if memory.kernel.evidence is Evidence.CERTIFICATE else 2
    kernel = np.maximum(error**power - noise**power, 0.0)
    guarantee, most = memory.guarantee, memory.released.layout.value_norm
    own = gaussian_sigma(epsilon=guarantee.epsilon, delta=guarantee.delta)
    found = []
    for factor in _EPSILONS:
        epsilon = factor * guarantee.epsilon
        times = gaussian_sigma(epsilon=epsilon, delta=guarantee.delta) / own
        other = np.minimum(((times * noise) ** power + kernel) ** (1 / power), 2 * most)
        found.append(Error(epsilon, _typical(other), _typical(np.minimum(times * noise, 2 * most))))
    return tuple(found)


def _errors(memory: Memory, queries: Floats) -> tuple[Floats, Floats]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCoveredWarning)  # their errors say so
        warnings.simplefilter("ignore", MostlyNoiseWarning)  # the page says so
        _, error = memory.attend(queries, stderr=True)
    return error, memory.noise_stderr(queries)


def _typical(stderr: Floats) -> float:
    return WITHIN * float(np.median(stderr))


def _directions(memory: Memory) -> Floats:
    """Return questions of length one, shape (*heads, m, d): the same in every run."""
    kernel, heads = memory.kernel, memory.released.layout.heads
    known = kernel.public_sample
    if known is not None:
        points = np.asarray(known, dtype=float)[:_QUESTIONS]
    else:
        law = RoundedGaussian(sigma=2.0**20)
        points = law.sample((_QUESTIONS, kernel.dim), entropy=Seeded(0)).astype(float)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.broadcast_to(points, (*heads, *points.shape))
