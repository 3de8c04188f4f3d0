"""Two data sets, releases of both, and the statistic that tells them apart best.

Each release becomes a `Draw`: a number that is large if the unit seems to be there. Where what is
seen is exact sums plus noise of known laws, that number is the logarithm of the likelihood ratio,
which no other statistic beats. Where it is not, a direction is learned from some of the releases,
and the others are judged by it.
"""

import copy
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import IOBase
from typing import Any, Protocol

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.accounting import Mechanism
from discreet.audit.levels import Levels, grain, levels
from discreet.audit.looking import (
    Part,
    Seen,
    kurtosis,
    log_ratio,
    mechanisms,
    seen,
    squared_distance,
)
from discreet.errors import (
    InvalidInput,
    MostlyNoiseWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
)
from discreet.noise import Entropy
from discreet.noise.exact import IntegerLaw
from discreet.privacy import Neighbours
from discreet.testing import Silent

# What is said where that is not so, and noise or chance may be the reason.
ONE_SIZE = (
    "Expected all releases to have one and the same size. If it follows from noise, give a `view` "
    "that makes equally many numbers of each; if it follows from the data, it tells of somebody."
)

# From data, and a source of noise or None, to a release.
Build = Callable[[Any, Entropy | None], Any]


@contextmanager
def few_rows() -> Iterator[None]:
    """Ignore what the library warns of where rows are few: here they are, on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MostlyNoiseWarning)
        warnings.filterwarnings("ignore", "The denominator's error bound", UserWarning)
        yield


@contextmanager
def leaks_known() -> Iterator[None]:
    """Ignore what each build warns of again: it was said of the first ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", NotPrivateWarning)
        yield


@dataclass(frozen=True)
class Draw:
    """What one release looks like.

    Attributes:
        score: large if the unit seems to be there; above 0 if that is more likely than not.
        squared: the squared distance of the two exact releases in units of the noise; 0 if that is
            not known.
        squares: the sum of squares of its noise, in units of what is claimed.
        fourths: what the sum of fourth powers is on average, if the noise has the laws claimed.
        numbers: how many numbers of known noise there are.
        mark: a hash of the noise; 0 if it is not known.
        chance: ln of the probability that noise of another release is the same, at most.
        beyond: the squared distance of what was not looked at, since the look ended before.
        levels: how small the noise of each number is (`audit.levels`); None if it is not known.
        grain: all of its noise is a multiple of that; 1 as a rule.
    """

    score: float
    squared: float = 0.0
    squares: float = 0.0
    fourths: float = 0.0
    numbers: int = 0
    mark: int = 0
    chance: float = 0.0
    beyond: float = 0.0
    levels: Levels | None = None
    grain: int = 1

    @property
    def apart(self) -> float:
        """The squared distance of all that came out."""
        return self.squared + self.beyond


class Experiment(Protocol):
    """Releases of two data sets, one at a time."""

    @property
    def additive(self) -> bool:
        """Whether scores are likelihood ratios of noise of known laws."""
        ...

    @property
    def fixed(self) -> bool:
        """Whether both sides are equally far apart in every release."""
        ...

    def draw(self, side: int, entropy: Entropy | None) -> Draw:
        """Return one release of the data with the unit, or of those without.

        Args:
            side: 1 if the unit is there, else 0.
            entropy: where the noise comes from.
        """
        ...

    def mechanisms(self, times: float) -> list[tuple[Mechanism, int]]:
        """Return what tells both sides apart, for the accountant; nothing if that is not known.

        Args:
            times: what the noise is multiplied by.
        """
        ...


@dataclass(frozen=True, eq=False)
class Known:
    """Releases whose exact values are known: for each number, with the unit and without.

    Attributes:
        build: makes a release.
        data: without the unit, and with it.
        exact: what is released of each if there is no noise.
        view: see `seen`.
    """

    build: Build
    data: tuple[Any, Any]
    exact: tuple[tuple[Part, ...], tuple[Part, ...]]

    @property
    def additive(self) -> bool:
        """Always."""
        return True

    @property
    def fixed(self) -> bool:
        """Always: exact releases follow from the data."""
        return True

    @property
    def squared(self) -> float:
        """The squared distance of the two exact releases, in units of the noise."""
        return math.fsum(
            squared_distance(one.law, other.values - one.values)
            for one, other in zip(*self.exact, strict=True)
            if one.law is not None
        )

    def mechanisms(self, times: float) -> list[tuple[Mechanism, int]]:
        """Return what tells both sides apart, for the accountant: how far each number moves.

        Args:
            times: what the noise is multiplied by.
        """
        return [
            pair
            for one, other in zip(*self.exact, strict=True)
            if one.law is not None
            for pair in mechanisms(one.law, other.values - one.values, times, Neighbours.ADD_REMOVE)
        ]

    def draw(self, side: int, entropy: Entropy | None) -> Draw:
        """Return one release of the data with the unit, or of those without.

        Args:
            side: 1 if the unit is there, else 0.
            entropy: where the noise comes from.
        """
        parts = seen(self.build(self.data[side], entropy)).parts
        check_same(parts, self.exact[side])
        score, noises = 0.0, list[Noisy]()
        for part, without, with_unit in zip(parts, *self.exact, strict=True):
            if part.law is None:
                raise InvalidInput("Expected the same kind of release each time.")
            shift = with_unit.values - without.values
            score += log_ratio(part.law, part.values - without.values, shift)
            exact = with_unit if side else without
            noises.append((part.law, part.values - exact.values))
        largest = max(float(np.max(np.abs(part.values), initial=0.0)) for part in parts)
        return measured(score, self.squared, noises, largest=largest)


# Noise, and the law that is claimed of it.
Noisy = tuple[IntegerLaw, Floats]


def measured(
    score: float,
    squared: float,
    noises: Sequence[Noisy],
    *,
    beyond: float = 0.0,
    largest: float = 0.0,
) -> Draw:
    """Return a draw with what its noise looks like.

    Args:
        score: of the release.
        squared: the squared distance of both sides, as far as was looked.
        noises: the noise on all numbers, and the law of each.
        beyond: the rest of that distance.
        largest: number that was seen, if noise is the difference of such.
    """
    return Draw(
        score,
        squared,
        squares=math.fsum(float(noise @ noise) / law.variance for law, noise in noises),
        fourths=math.fsum(len(noise) * kurtosis(law) for law, noise in noises),
        numbers=sum(len(noise) for _, noise in noises),
        mark=hash(b"".join(noise.tobytes() for _, noise in noises)),
        chance=math.fsum(len(noise) * likeliest(law) for law, noise in noises),
        beyond=beyond,
        levels=np.concatenate([levels(law, noise) for law, noise in noises], axis=1),
        grain=grain([noise for _, noise in noises], largest),
    )


def likeliest(law: IntegerLaw) -> float:
    """Return ln of the largest probability that one number has: that of zero.

    Args:
        law: of the number.
    """
    return math.log(float(law.pmf(np.zeros(1, dtype=np.int64))[0]))


@dataclass(frozen=True, eq=False)
class Unknown:
    """Releases of which nobody knows what is exact in them, and what noise.

    Attributes:
        build: makes a release.
        data: without the unit, and with it.
        view: see `seen`.
    """

    build: Build
    data: tuple[Any, Any]
    view: Callable[[Any], Any] | None

    @property
    def additive(self) -> bool:
        """Never."""
        return False

    @property
    def fixed(self) -> bool:
        """Nobody knows."""
        return False

    def mechanisms(self, times: float) -> list[tuple[Mechanism, int]]:  # noqa: ARG002
        """Return nothing: it is not known how far both sides are apart.

        Args:
            times: what the noise is multiplied by.
        """
        return []


@dataclass(frozen=True, eq=False)
class Learned(Unknown):
    """Releases of which nothing is known but what they look like: a direction is learned from some.

    Attributes:
        direction: that tells both apart, shape (n,).
        middle: between the projections of both.
        means: of each side, in units of the noise that is claimed; None if none is.
        learnt: from so many releases of each side.
    """

    direction: Floats
    middle: float
    means: tuple[Floats, Floats] | None
    learnt: int

    def draw(self, side: int, entropy: Entropy | None) -> Draw:
        """Return one release of the data with the unit, or of those without.

        Args:
            side: 1 if the unit is there, else 0.
            entropy: where the noise comes from.
        """
        found = seen(self.build(self.data[side], entropy), view=self.view)
        vector = found.vector
        if vector.shape != self.direction.shape:
            raise InvalidInput(ONE_SIZE)
        score = float(vector @ self.direction) - self.middle
        if self.means is None:
            return Draw(score)
        # The mean of so many has noise of its own.
        noise = (vector - self.means[side]) / math.sqrt(1 + 1 / self.learnt)
        laws = [(each.law, len(each.values)) for each in found.parts if each.law is not None]
        return Draw(
            score,
            squares=float(noise @ noise),
            fourths=math.fsum(count * kurtosis(law) for law, count in laws),
            numbers=len(noise),
            mark=hash(vector.tobytes()),
            chance=math.fsum(count * likeliest(law) for law, count in laws),
        )


@dataclass(frozen=True, eq=False)
class Sized(Unknown):
    """Releases of which nothing is looked at but how many numbers they have.

    Attributes:
        sizes: of a release with the unit (`sizes_of`).
    """

    sizes: tuple[int, ...]

    def draw(self, side: int, entropy: Entropy | None) -> Draw:
        """Return whether one release has just so many numbers.

        Args:
            side: 1 if the unit is there, else 0.
            entropy: where the noise comes from.
        """
        found = seen(self.build(self.data[side], entropy), view=self.view)
        return Draw(1.0 if sizes_of(found) == self.sizes else -1.0)


def sizes_of(release: Seen) -> tuple[int, ...]:
    """Return how many numbers each part of a release has.

    Args:
        release: that was seen.
    """
    return tuple(part.values.size for part in release.parts)


def accepts_entropy(build: Callable[..., Any]) -> bool:
    """Return whether a builder's function takes a source of noise, as `entropy`.

    Args:
        build: the function.
    """
    try:
        parameters = inspect.signature(build).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        each.kind is each.VAR_KEYWORD
        or (each.name == "entropy" and each.kind is not each.POSITIONAL_ONLY)
        for each in parameters
    )


def with_entropy(build: Callable[..., Any]) -> Build:
    """Return a builder's function as one of data and a source of noise.

    It is handed a copy of the data each time: what it does to them changes no other release.

    Args:
        build: of data alone, or also of `entropy`.
    """
    if accepts_entropy(build):
        return lambda data, entropy: build(copy.deepcopy(data), entropy=entropy)
    return lambda data, _: build(copy.deepcopy(data))


def without_noise(build: Build, data: tuple[Any, Any]) -> tuple[Seen, Seen] | None:
    """Return both releases without noise; None if the builder's function has chance of its own.

    Args:
        build: makes a release, of noise from any source.
        data: without the unit, and with it.
    """
    one, again, other = (seen(build(each, Silent())) for each in (data[0], *data))
    check_same(one.parts, other.parts)
    return (one, other) if np.array_equal(one.vector, again.vector) else None


def known(build: Build, data: tuple[Any, Any]) -> Known | None:
    """Return the experiment whose exact values are known; None if there are none.

    That is, if what is seen is no sum and noise, or the builder's function has chance of its own.

    Args:
        build: makes a release, of noise from any source.
        data: without the unit, and with it.
    """
    exact = without_noise(build, data)
    if exact is None or not all(each.additive for each in exact):
        return None
    return Known(build, data, (exact[0].parts, exact[1].parts))


def check_same(some: Sequence[Part], others: Sequence[Part]) -> None:
    """Raise `InvalidInput` unless two releases have the same shape: whose would tell them apart.

    Args:
        some: of one release.
        others: of another.
    """
    shapes = [[each.values.shape for each in parts] for parts in (some, others)]
    if shapes[0] != shapes[1]:
        raise InvalidInput(ONE_SIZE)


def learned(
    build: Build,
    data: tuple[Any, Any],
    view: Callable[[Any], Any] | None,
    samples: tuple[Sequence[Seen], Sequence[Seen]],
    exact: tuple[Seen, Seen] | None = None,
) -> Learned:
    """Return the experiment whose direction is learned from some releases.

    The difference of the releases without noise, or of the means, in units of how far releases of
    one side spread. Of means, without the numbers in which both look alike: most may tell nothing.

    Args:
        build: makes a release.
        data: without the unit, and with it.
        view: see `seen`.
        samples: releases without the unit, and with it.
        exact: both without noise, where that is known.
    """
    if len({sizes_of(each) for side in samples for each in side}) > 1:
        raise InvalidInput(ONE_SIZE)
    vectors = [np.stack([each.vector for each in side]) for side in samples]
    means = [side.mean(axis=0) for side in vectors]
    count = min(len(side) for side in vectors)
    spread = np.sqrt(sum(side.var(axis=0) for side in vectors) / 2)
    spread = np.where(spread > 0, spread, max(float(spread.max()), 1.0) * 1e-9)
    ends = means if exact is None else [each.vector for each in exact]
    apart = (ends[1] - ends[0]) / spread
    # So much is found between two sides that are the same, in the largest of so many numbers.
    chance = math.sqrt(2 / count) * math.sqrt(2 * math.log(2 * len(apart)))
    clear = np.abs(apart) > chance
    some = exact is None and bool(clear.any())
    direction = np.where(clear, apart, 0.0) / spread if some else apart / spread
    middle = float((means[0] + means[1]) @ direction / 2)
    claimed = all(each.additive for side in samples for each in side)
    return Learned(
        build, data, view, direction, middle, (means[0], means[1]) if claimed else None, count
    )


def told_apart(some: Sequence[Seen], others: Sequence[Seen]) -> list[str]:
    """Return in what releases of two data sets differ whatever their noise is: names, sorted.

    Args:
        some: releases of one data set.
        others: of the other.
    """
    names = {name for each in (*some, *others) for name in each.told}
    sides = [
        {name: {each.told.get(name) for each in side} for name in names} for side in (some, others)
    ]
    # Settings that were found with noise have several values on either side.
    alone = [name for name in names if all(len(side[name]) == 1 for side in sides)]
    return sorted(name for name in alone if sides[0][name] != sides[1][name])


def checked_pair(neighbours: Any) -> tuple[Any, Any]:  # noqa: ANN401 (two data sets of any kind)
    """Return two data sets.

    Args:
        neighbours: a pair.

    Raises:
        InvalidInput: it is none, or they can be read only once.
    """
    if not isinstance(neighbours, (tuple, list)) or len(neighbours) != 2:
        raise InvalidInput("Expected neighbours to be a pair: two data sets that differ in a unit.")
    for each in neighbours:
        if isinstance(each, Iterator | IOBase):
            raise InvalidInput(
                "Expected data sets that can be read many times: a list of a generator's chunks, "
                "or a path in place of an open file."
            )
    return neighbours[0], neighbours[1]


def check_functions(build: Any, view: Any = None) -> None:  # noqa: ANN401 (of any type, until now)
    """Raise `InvalidInput` unless a builder's functions can be called.

    Args:
        build: from data to a release.
        view: from a release to numbers; None for none.
    """
    if not callable(build):
        _validate.reject_argument("build", build, "a function, from data to a release")
    if view is not None and not callable(view):
        _validate.reject_argument("view", view, "a function, from a release to numbers")
