"""What somebody sees who has a release: noisy numbers, and the law of the noise on each.

Of a release that is sums plus noise, the best test of two data sets is known: the likelihood ratio
of what is seen. For Gaussian noise it projects what is seen on the difference of the two exact
sums. `docs/audit.md`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.accounting import DiscreteLaplace as LaplaceMechanism
from discreet.accounting import Gaussian, Mechanism, Receipt
from discreet.errors import InvalidInput
from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace
from discreet.noise.correlated import Reading, StateNoise, Strategy
from discreet.noise.exact import SMALLEST_SCALE, IntegerLaw
from discreet.paper.distance import DistanceState
from discreet.paper.softmax import SumsState
from discreet.paper.structure import Structure
from discreet.paper.tree import TreeState
from discreet.privacy import Guarantee, Neighbours
from discreet.readers.attention.bundle import Memories
from discreet.readers.registry import MECHANISMS
from discreet.sums.container import settings_of
from discreet.sums.release import Release, Released
from discreet.sums.settings import law_of
from discreet.text import Corpus

# The logarithm of a ratio of likelihoods that is not finite: one side cannot make what was seen.
_NEVER = 1e6


@dataclass(frozen=True, eq=False)
class Part:
    """Numbers with noise of one law, each drawn by itself.

    Attributes:
        values: what is seen, shape (n,).
        law: of the noise that is said to be on each; None if it is not known, or not added.
    """

    values: Floats
    law: IntegerLaw | None

    @classmethod
    def of(cls, values: Integers, law: IntegerLaw | None) -> "Part":
        """Return numbers of any shape as a part."""
        return cls(np.asarray(values, dtype=np.float64).ravel(), law)


@dataclass(frozen=True, eq=False)
class Seen:
    """A release as numbers, and what is promised of it.

    Attributes:
        parts: all of what is seen.
        guarantee: what is promised.
        receipt: the mechanisms that it is made of; None if it has none.
        told: what else it says of itself, under the names of its file; as texts.
    """

    parts: tuple[Part, ...]
    guarantee: Guarantee
    receipt: Receipt | None = None
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def additive(self) -> bool:
        """Whether all of it is exact numbers plus noise of known laws."""
        return all(part.law is not None for part in self.parts)

    @property
    def vector(self) -> Floats:
        """All numbers in a row, each in units of its noise where that is known."""
        units = [1.0 if each.law is None else math.sqrt(each.law.variance) for each in self.parts]
        scaled = [each.values / unit for each, unit in zip(self.parts, units, strict=True)]
        return np.concatenate(scaled)


def log_ratio(law: IntegerLaw, noise: Floats, shift: Floats) -> float:
    """Return ln(likelihood of noise - shift / likelihood of noise), of all numbers together.

    Args:
        law: of the noise on each.
        noise: what is seen less one exact value, shape (n,).
        shift: the other exact value less that one, shape (n,).
    """
    if isinstance(law, RoundedGaussian):
        return float(shift @ (noise - shift / 2)) / law.sigma**2
    moved = np.flatnonzero(shift)
    one, other = np.abs(noise[moved]), np.abs(noise[moved] - shift[moved])
    if isinstance(law, TruncatedLaplace) and np.any(other > law.bound):
        return -_NEVER
    if isinstance(law, TruncatedLaplace) and np.any(one > law.bound):
        return _NEVER
    return float(np.sum(one - other)) / _scale(law)


def squared_distance(law: IntegerLaw, shift: Floats) -> float:
    """Return the squared length of a shift, in units of the standard deviation of the noise."""
    scale = law.sigma**2 if isinstance(law, RoundedGaussian) else law.variance
    return float(shift @ shift) / scale


def mechanisms(
    law: IntegerLaw, shift: Floats, times: float, neighbours: Neighbours
) -> list[tuple[Mechanism, int]]:
    """Return what a shift of numbers with noise amounts to, for the accountant.

    Laplace noise whose tails are cut off is taken for whole, and noise that no account can hold for
    the least that one can: both are less than it tells.

    Args:
        law: of the noise on each.
        shift: how far the unit moves each.
        times: what the noise is multiplied by.
        neighbours: what the two sides are.
    """
    scale = max(_scale(law) * times, SMALLEST_SCALE)
    if isinstance(law, RoundedGaussian):
        length = float(np.linalg.norm(shift))
        found = Gaussian(sigma=scale, sensitivity=length, neighbours=neighbours) if length else None
        return [] if found is None else [(found, 1)]
    steps, counts = np.unique(np.abs(shift[shift != 0]).astype(np.int64), return_counts=True)
    return [
        (LaplaceMechanism(scale=scale, sensitivity=step, neighbours=neighbours), count)
        for step, count in zip(steps.tolist(), counts.tolist(), strict=True)
    ]


def kurtosis(law: IntegerLaw) -> float:
    """Return E[Z⁴]/E[Z²]² of noise, or more: what its squares vary by.

    Of Laplace noise with q = e^(-1/scale): 3 + (1 + 4q + q²)/(2q); tails that are cut off make it
    less.

    Args:
        law: of the noise.
    """
    return 3.0 if isinstance(law, RoundedGaussian) else 5 + math.cosh(1 / _scale(law))


def _scale(law: IntegerLaw) -> float:
    """Return σ of Gaussian noise, or b of Laplace noise, whole or with tails that are cut off."""
    if isinstance(law, RoundedGaussian):
        return law.sigma
    if isinstance(law, DiscreteLaplace):
        return law.scale
    if isinstance(law, TruncatedLaplace):
        return law.sensitivity / law.epsilon
    return _validate.reject_argument("law", law, "one of discreet.noise")


def seen(release: Any, *, view: Any = None) -> Seen:  # noqa: ANN401 (whatever was released)
    """Return a release as numbers.

    Args:
        release: a memory, regression, classifier, table, corpus, structure or estimator of
            discreet; several releases of one receipt, as a list, or all states of a stream, in
            their order; or `Seen`.
        view: of what is none of these, or of a part of it: from the release to an array. What it
            returns is said to have no known noise.
    """
    if isinstance(release, Seen):
        return release
    guarantee, receipt = promise_of(release)
    told = _told(release, guarantee, receipt)
    if view is not None:
        return Seen((Part(_numbers(view(release)), None),), guarantee, receipt, told)
    parts = _parts(getattr(release, "release_", release))
    return Seen(tuple(parts), guarantee, receipt, told)


def _numbers(viewed: Any) -> Floats:  # noqa: ANN401 (whatever a view returns)
    """Return what a view shows as numbers, or raise `InvalidInput`."""
    try:
        values = np.asarray(viewed, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        values = np.zeros(0)
    if not values.size or not np.all(np.isfinite(values)):
        raise InvalidInput(
            "Expected `view` to return finite numbers: write as numbers whatever else can be seen, "
            "since what is not finite for one data set only tells them apart."
        )
    return values


def _told(release: Any, guarantee: Guarantee, receipt: Receipt | None) -> dict[str, str]:  # noqa: ANN401
    """Return what a release says of itself besides noisy numbers, but for its random name."""
    said: dict[str, Any] = {"guarantee": guarantee}
    if receipt is not None:
        said |= {"mechanisms": receipt.mechanisms, "leaks": receipt.leaks, "unit": receipt.unit}
    release = getattr(release, "release_", release)
    several = release if isinstance(release, (list, tuple, Memories)) else [release]
    for place, each in enumerate(several):
        if isinstance(each, Release):
            start = f"{place}." if len(several) > 1 else ""
            settings = settings_of(each.released)
            arrays = each.released.layout.arrays()
            said |= {f"{start}{name}": it for name, it in settings.items() if name != "release"}
            said |= {f"{start}{name}": (it.shape, it.tobytes()) for name, it in arrays.items()}
    return {name: repr(it) for name, it in said.items()}


def promise_of(release: Any) -> tuple[Guarantee, Receipt | None]:  # noqa: ANN401
    """Return what is promised to whoever has the whole of a release.

    Args:
        release: with a guarantee, and a receipt if it has one.
    """
    if isinstance(release, (list, tuple)) and release:
        promises = [promise_of(each) for each in release]
        if len({receipt.id for _, receipt in promises if receipt is not None}) > 1:
            raise InvalidInput(
                "Expected several releases of one receipt. Of others, promise what they come to "
                "together (discreet.combine), and give a `view`."
            )
        return promises[0]
    release = getattr(release, "release_", release)
    guarantee = getattr(release, "whole_guarantee", getattr(release, "guarantee", None))
    if not isinstance(guarantee, Guarantee):
        _validate.reject_argument(
            "build", "...", "a function that returns a release, which has a `guarantee`"
        )
    receipt = getattr(release, "receipt", None)
    return guarantee, receipt if isinstance(receipt, Receipt) else None


def _parts(release: Any) -> list[Part]:  # noqa: ANN401
    """Return the numbers of a release, or raise `InvalidInput`."""
    if isinstance(release, (list, tuple)):
        return _of_several(_once(release))
    if isinstance(release, Memories):
        return [part for each in release for part in _released(each.released)]
    if isinstance(release, Release):
        once = {each.answers for each in MECHANISMS if each.reads_once}
        return _released(release.released, sums=type(release) in once)
    if isinstance(release, Structure):
        return _nodes(release)
    if isinstance(release, Corpus):
        tables = [release.parts.table, release.parts.words]
        return [part for each in tables if each is not None for part in _released(each)]
    return _validate.reject_argument(
        "build", "...", "a function that returns a release of discreet, unless there is a `view`"
    )


def _of_several(releases: Sequence[Any]) -> list[Part]:
    """Return the numbers of releases that nobody drew noise for twice."""
    if len(releases) > 1 and any(_stream_of(each) for each in releases):
        return _states(releases)
    return [part for each in releases for part in _parts(each)]


def _once(releases: Sequence[Any]) -> list[Any]:
    """Return releases without copies of each other, which say nothing new."""
    once: dict[object, Any] = {}
    for each in releases:
        key: object = id(each)
        if isinstance(each, Release):
            arrays = (each.released.state, *each.released.others)
            key = (type(each), each.released.release, *(part.tobytes() for part in arrays))
        once.setdefault(key, each)
    return list(once.values())


def _stream_of(release: Any) -> StateNoise | None:  # noqa: ANN401
    """Return the noise of a stream's state; None of all else."""
    return release.released.stream if isinstance(release, Release) else None


def _states(states: Sequence[Any]) -> list[Part]:
    """Return all states of a stream as fresh draws, whose noise is drawn by itself."""
    noises = [_stream_of(each) for each in states]
    steps = [None if each is None else each.step for each in noises]
    sums = all(each is not None and each.reading == Reading() for each in noises)
    if not sums or steps != list(range(1, len(states) + 1)):
        raise InvalidInput(
            "Expected one state of a stream, or all of them from the first step on, each of all "
            "rows so far: of others give a `view`."
        )
    first = states[0].released
    [strategy] = {each.continual.strategy for each in noises if each is not None}
    found = []
    for at, scale in enumerate(first.scales):
        totals = [(each.released.state, *each.released.others)[at] for each in states]
        law = law_of(first.layout, scale / math.sqrt(Reading().variance(strategy, 1)))
        found.append(Part(fresh_draws(totals, strategy).ravel(), law))
    return found


def _released(released: Released[Any], *, sums: bool = True) -> list[Part]:
    """Return the noisy sums of one layer; what was made of sums in rounds has no noise of a law."""
    laws = [law_of(released.layout, each) if sums else None for each in released.scales]
    arrays = (released.state, *released.others)
    return [Part.of(array, law) for array, law in zip(arrays, laws, strict=True)]


def _nodes(structure: Structure) -> list[Part]:
    """Return the noisy nodes of trees; sums of nodes that are kept beside them are left out."""
    state = structure.state
    if isinstance(state, TreeState):
        return [Part.of(state.forest.nodes, state.noise.law)]
    if isinstance(state, DistanceState):
        return [Part.of(state.trees.forest.nodes, state.trees.noise.law)]
    if isinstance(state, SumsState):
        return [Part.of(state.sums.trees.forest.nodes, state.sums.trees.noise.law)]
    raise InvalidInput("Expected a structure of discreet.paper.")


def fresh_draws(totals: Sequence[Integers], strategy: Strategy) -> Floats:
    """Return all states of a stream as what rows add to the fresh draws of its steps, and these.

    Invertible: it is another way to write the states. The noise of a step is w = z - Σ m_k·w_(t-k),
    so w + Σ m_k·w_(t-k) is z, but for rounding. `docs/privacy.md`, "Streams".

    Args:
        totals: the state after each step, all of them, in lattice units.
        strategy: of the noise.

    Returns:
        Shape (steps, numbers).
    """
    flat = np.stack([np.asarray(each, dtype=np.float64).ravel() for each in totals])
    steps = np.diff(flat, axis=0, prepend=np.zeros((1, flat.shape[1])))
    weights = strategy.coefficients(len(steps))
    later, earlier = np.indices((len(steps), len(steps)))
    matrix = np.where(later >= earlier, weights[np.abs(later - earlier)], 0.0)
    return np.asarray(matrix @ steps)


def together(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts as a tuple, those without numbers left out."""
    return tuple(part for part in parts if part.values.size)
