"""Noise number by number: what is exact in one place hides in the mean of all.

Each number's noise z becomes a level: the probability that noise of its law is as small or smaller.
If the noise is what the receipt says, a level is at most u with a probability of at most u, and its
sign is even; so counts of small levels are binomial, whatever the law is.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from discreet._typing import Floats
from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace
from discreet.noise.exact import IntegerLaw
from discreet.testing import Seeded

Levels = NDArray[np.float32]

# So many numbers are looked at one by one, of so many releases at least.
_KEPT, _LEAST_RELEASES = 2**22, 16

# Pairs of so many numbers are looked at: of all, if there are no more.
_PAIRED = 2_048

# From here on, float64 does not hold every integer.
_EXACT = 2.0**52

# Noise of no law here is a multiple of the same number more often than that.
_MULTIPLE = 0.8


def levels(law: IntegerLaw, noise: Floats) -> Levels:
    """Return P(|Z| ≤ |z|) and the sign of z for noise z that is said to be of a law.

    Args:
        law: that is claimed, of Z.
        noise: integers, or nearly, shape (n,).

    Returns:
        Shape (2, n).
    """
    size = np.rint(np.abs(noise))
    if isinstance(law, RoundedGaussian):
        inside = special.erf((size + 0.5) / (law.sigma * math.sqrt(2)))
    else:
        inside = _inside_laplace(law, size)
    return np.stack([inside, np.sign(noise)]).astype(np.float32)


def normal_levels(noise: Floats) -> Levels:
    """Return levels of noise that is said to be normal, of variance one.

    Args:
        noise: of any shape.

    Returns:
        Two arrays of that shape.
    """
    return np.stack([special.erf(np.abs(noise) / math.sqrt(2)), np.sign(noise)]).astype(np.float32)


def _inside_laplace(law: IntegerLaw, size: Floats) -> Floats:
    if isinstance(law, TruncatedLaplace):
        rate, edge = law.epsilon / law.sensitivity, float(law.bound)
    elif isinstance(law, DiscreteLaplace):
        rate, edge = 1 / law.scale, math.inf
    else:
        raise TypeError("Expected a law of discreet.noise.")

    def whole(most: Floats | float) -> Floats:
        return np.asarray(1 - 2 * np.exp(-rate * (most + 1)) / (1 + math.exp(-rate)))

    return whole(np.minimum(size, edge)) / whole(edge)


def grain(noise: Sequence[Floats], largest: float) -> int:
    """Return the number that all noise is a multiple of; 1 as a rule, 0 if there is none.

    Args:
        noise: on all numbers.
        largest: number that was seen: beyond 2^52 the last bits are lost, and the answer is 1.
    """
    whole = np.concatenate([np.abs(each) for each in noise]) if noise else np.zeros(0)
    if not largest < _EXACT or np.any(whole != np.rint(whole)) or np.any(whole >= _EXACT):
        return 1
    return int(np.gcd.reduce(whole.astype(np.int64), initial=0))


def keeps(number: int, numbers: int) -> bool:
    """Return whether the noise of a release is kept number by number: of all, there is no room.

    Args:
        number: of the release.
        numbers: how many it has.
    """
    return number < max(_KEPT // max(numbers, 1), _LEAST_RELEASES)


def stacked(found: Sequence[Levels]) -> Levels:
    """Return levels of releases as one array, shape (2, releases, n); empty if sizes differ.

    Args:
        found: shape (2, n) each.
    """
    if not found or len({each.shape for each in found}) > 1:
        return np.zeros((2, 0, 0), dtype=np.float32)
    return np.stack(found, axis=1)


def oddities(found: Levels, grains: Sequence[int] = (1,), *, doubt: float) -> tuple[str, ...]:
    """Return in words where noise is not what the receipt says; nothing where it may be.

    Args:
        found: levels of some releases, shape (2, releases, n).
        grains: of each (`grain`).
        doubt: the probability that something is said of noise that is what it should be.
    """
    if not found.size:
        return ()
    table, signs = found
    part = doubt / 4
    said = []
    if count := _small(table, part):
        said.append(f"the noise of {_of(count, table.shape[1], 'number')} is too small")
    if count := _small(table.T, part):
        said.append(f"the noise of {_of(count, table.shape[0], 'release')} is too small")
    if count := _paired(signs, part):
        said.append(f"{count:,} pairs of numbers have noise that goes together")
    step = int(np.gcd.reduce(np.asarray(grains, dtype=np.int64)))
    if step != 1 and table.size * math.log(_MULTIPLE) < math.log(part):
        said.append(f"all noise is a multiple of {step:,} units: the rest is exact")
    return tuple(said)


def _of(count: int, all_of_them: int, noun: str) -> str:
    return f"{count:,} of {all_of_them:,} {noun}s"


def _small(table: Levels, doubt: float) -> int:
    """Return how many columns have noise that is surely smaller than is said.

    By how many of their levels are in the lower half, and by the largest of them.
    """
    rows, columns = table.shape
    half = stats.binom.sf(np.count_nonzero(table <= 0.5, axis=0) - 1, rows, 0.5)
    with np.errstate(divide="ignore"):
        largest = rows * np.log(table.max(axis=0).astype(np.float64))
    least = math.log(doubt / (2 * columns))
    return int(np.count_nonzero((half < math.exp(least)) | (largest < least)))


def _paired(signs: Levels, doubt: float) -> int:
    """Return how many pairs of numbers have signs that go together too often (Hoeffding)."""
    rows, columns = signs.shape
    if columns > _PAIRED:
        some = np.argsort(Seeded(0).words(columns))[:_PAIRED]  # as good as any others
        signs, columns = signs[:, some], _PAIRED
    pairs = columns * (columns - 1) // 2
    if not pairs:
        return 0
    together = np.abs(signs.T @ signs)
    most = math.sqrt(2 * rows * math.log(2 * pairs / doubt))
    np.fill_diagonal(together, 0)
    return int(np.count_nonzero(together > most)) // 2
