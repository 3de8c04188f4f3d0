"""What every integer noise law offers."""

import abc
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _validate
from discreet._typing import Integers
from discreet.noise.entropy import Entropy, SystemEntropy

# Scales in lattice units. Below one half a law is almost a point mass and rounding dominates it;
# above 2^40 sums of a few thousand draws would leave int64 and float64's exact integers.
SMALLEST_SCALE = 0.5
LARGEST_SCALE = 2.0**40

# How many draws are made at a time: the working set then stays inside the processor's cache.
BATCH = 1 << 15

_MOST_DRAWS = 1 << 40


class IntegerLaw(abc.ABC):
    """A symmetric law on the integers, for noise on a lattice."""

    def __getstate__(self) -> dict[str, object]:
        """Return the parameters; tables that samplers have made are made again where needed."""
        return {name: vars(self)[name] for name in self.__dataclass_fields__}  # type: ignore[attr-defined]

    def sample(self, size: int | tuple[int, ...], *, entropy: Entropy | None = None) -> Integers:
        """Return independent draws.

        Args:
            size: shape of the result.
            entropy: where the bits come from; by default a fresh `SystemEntropy`.
        """
        shape = size if isinstance(size, tuple) else (size,)
        shape = tuple(_validate.whole("size", length, at_least=0) for length in shape)
        _validate.whole("size", math.prod(shape), at_least=0, at_most=_MOST_DRAWS)
        source = SystemEntropy() if entropy is None else entropy
        _validate.instance("entropy", source, Entropy)
        return source.realise(self._draw, math.prod(shape)).reshape(shape)

    def _draw(self, count: int, entropy: Entropy) -> Integers:
        """Return `count` draws, made in batches from the candidates that `_batch` accepts."""
        drawn = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            wanted = min(count - done, BATCH)
            accepted = self._batch(wanted, entropy)[:wanted]
            drawn[done : done + len(accepted)] = accepted
            done += len(accepted)
        return drawn

    @abc.abstractmethod
    def _batch(self, wanted: int, entropy: Entropy) -> Integers:
        """Return some independent draws, usually about `wanted`; fewer or more are both fine.

        How many are returned must be independent of their values.
        """

    @property
    @abc.abstractmethod
    def variance(self) -> float:
        """The variance, in squared lattice units."""

    @abc.abstractmethod
    def pmf(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each of the given integers."""

    @property
    @abc.abstractmethod
    def largest_tilt(self) -> float:
        """The moment generating function exists for |tilt| below this."""

    @abc.abstractmethod
    def log_moment(self, tilt: float) -> float:
        """Return ln E[e^(tilt·Z)], or an upper bound on it: for Chernoff bounds on sums."""

    @property
    def total_variation(self) -> float:
        """Distance between this law and what `sample` draws, per draw.

        Zero: the samplers are exact. (A draw beyond ±2^62 would not fit; its probability is below
        exp(-2^21) at every allowed scale, far below the smallest float64.) A sampler with distance
        η over all its draws would cost (1 + e^ε)·η of δ; see `accounting.with_sampler_error`.
        """
        return 0.0
