"""A lower bound on ε by experiment: `audit`. What it can show, and what not: `docs/audit.md`.

Many releases of two data sets that differ in one unit are built, and a test says of each which it
was. How often that is right bounds ε from below. A bound above what is promised refutes the
promise. One below it proves nothing: that is what proofs are for.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special, stats

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.accounting import Disclosure, Gaussian, tight
from discreet.accounting.gaussian import LARGEST_EPSILON
from discreet.accounting.promise import Promise
from discreet.audit import bounds
from discreet.audit.bounds import Test
from discreet.audit.experiments import (
    ONE_SIZE,
    Build,
    Draw,
    Experiment,
    Known,
    Sized,
    accepts_entropy,
    check_functions,
    checked_pair,
    few_rows,
    leaks_known,
    learned,
    sizes_of,
    told_apart,
    with_entropy,
    without_noise,
)
from discreet.audit.levels import keeps, oddities, stacked
from discreet.audit.looking import Seen, seen
from discreet.audit.report import Audit, Noise
from discreet.audit.workers import map_forked
from discreet.errors import InvalidInput
from discreet.privacy import NOT_PRIVATE
from discreet.testing import Seeded

# How much of the doubt is for the size of the noise; and noise is said not to be normal only if
# that is surer than this.
_NOISE_SHARE, _SHAPE_DOUBT = 0.01, 1e-3

# Of what is learned from: half of all builds where a direction is, a fifth where a threshold is.
_LEARNING, _CHOOSING = 0.5, 0.2
_LEAST_BUILDS = 40

# Sums on a lattice are no further apart than is allowed for but for rounding of that figure; and an
# account gives no more than is promised but for the same.
_ROUNDING_OF_SUMS = 1 + 1e-6

# Distances that differ by so little are equal but for rounding.
_EQUAL = 1e-9

# So many more releases of each side are asked where few say of themselves what tells them apart:
# that many agree by chance in fewer than one audit of a million.
_ASKED_AGAIN = 8

# Noise that is so much smaller than is said is none; and that is the same twice by such a chance.
_NO_NOISE, _BY_CHANCE = 1e-3, 1e-6


def audit(
    build: Callable[..., Any],
    neighbours: tuple[Any, Any],
    *,
    builds: int = 500,
    confidence: float = 0.99,
    view: Callable[[Any], Array] | None = None,
    name: str = "your function",
    seed: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Audit:
    """Return a lower bound on ε of a builder's whole pipeline, by experiment. NOT PRIVATE.

    `build` is called many times with each of two data sets that differ in one unit, at the bounds,
    where it shows most: two rows of which one has the longest key and value, and one row without
    it, say. So it should be quick: a few rows will do, for sums hide a row no better if there are
    many. Use made-up data: what an audit prints depends on them.

    If `build` takes an argument `entropy` and hands it on, the exact sums are known, and some
    hundred builds tell most of ε. If not, half of the builds are used to learn where to look, and
    only gross leaks are seen (and noise that is smaller than the release says).

    Args:
        build: from data to a release: whatever preprocessing there is, included.
        neighbours: two data sets, without the unit and with it (or with it and with another).
        builds: how many releases of both together.
        confidence: how often the bound is right, at least.
        view: what is looked at, from a release to an array, if it is no release of discreet or only
            a part of it counts.
        name: of what is audited, for people.
        seed: of noise for tests of audits; None for that of the operating system.
        workers: how many processes; None for one for each processor.
        progress: whether to show a bar.

    Returns:
        The lower bound, what is promised, whether that holds, and how it was found.

    Raises:
        InvalidInput: what `build` returns is no release, or its size follows from noise.

    Example:
        >>> import discreet, numpy as np
        >>> def build(rows, entropy=None):
        ...     keys = rows / np.abs(rows).max()  # by the data: not private
        ...     return discreet.build(keys, keys, epsilon=1, delta=1e-5, scale=1.0, entropy=entropy)
        >>> found = discreet.audit.audit(
        ...     build, (np.ones((9, 1)), np.array([[1.0]] * 9 + [[50.0]])), builds=100
        ... )
        >>> found.holds
        False
    """
    data = checked_pair(neighbours)
    check_functions(build, view)
    builds = _validate.whole("builds", builds, at_least=_LEAST_BUILDS)
    run = Run(builds=builds, confidence=confidence, seed=seed, workers=workers, progress=progress)
    made, began = with_entropy(build), time.monotonic()
    with few_rows():
        first, again = ([seen(made(each, None), view=view) for each in data] for _ in range(2))
        with leaks_known():
            found = _audited(
                build,
                made,
                data,
                view=view,
                run=run,
                begun=(first, again),
                name=name,
                began=began,
            )
    return replace(found, reasons=found.reasons + taken_from_rows(first))


def taken_from_rows(releases: Sequence[Seen]) -> tuple[str, ...]:
    """Return in words what releases themselves say was taken from the rows; nothing as a rule.

    Args:
        releases: that were seen.
    """
    leaks = {str(leak): None for each in releases if each.receipt for leak in each.receipt.leaks}
    if not leaks:
        return ()
    return (f"{' and '.join(leaks)} taken from the rows, as the release itself says: not covered",)


def _audited(
    build: Callable[..., Any],
    made: Build,
    data: tuple[Any, Any],
    *,
    view: Callable[[Any], Any] | None,
    run: "Run",
    begun: tuple[Sequence[Seen], Sequence[Seen]],
    name: str,
    began: float,
) -> Audit:
    """Return what is found, given two releases of each data set."""
    first, again = begun
    promise = claim(first)
    if len({sizes_of(each) for side in begun for each in side}) > 1:
        return _by_size(Sized(made, data, view, sizes_of(first[1])), promise, run, name, began)
    exact, learned_for = None, "it was looked at by a `view`, whose noise nobody knows"
    if view is None:
        exact, learned_for = _exact(build, made, data)
    if exact is not None and all(each.additive for each in exact):
        sums = Known(made, data, (exact[0].parts, exact[1].parts))
        reasons = at_sight(made, data, list(zip(first, again, strict=True)))
        return run.audit(sums, promise, name=name, began=began, reasons=reasons)
    experiment, samples = _learn(made, data, view, run, exact)
    reasons = _reasons(first, *samples)
    left = replace(run, used=sum(map(len, samples)))
    found = left.audit(experiment, promise, name=name, began=began, reasons=reasons)
    return replace(found, learned_for=learned_for)


def _exact(
    build: Callable[..., Any], made: Build, data: tuple[Any, Any]
) -> tuple[tuple[Seen, Seen] | None, str]:
    """Return both releases without noise, if they can be had; and why these are not enough."""
    if not accepts_entropy(build):
        return None, "your function takes no argument `entropy`"
    exact = without_noise(made, data)
    if exact is None:
        return None, "your function does not hand `entropy` on, or has chance of its own"
    return exact, "a release of this kind is not sums and noise, but made in rounds or of several"


def _by_size(sizes: Sized, promise: Promise, run: "Run", name: str, began: float) -> Audit:
    """Return what sizes of releases tell, which are not all the same.

    Raises:
        InvalidInput: not enough: they may follow from noise.
    """
    found = run.audit(sizes, promise, name=name, began=began)
    if found.holds:
        raise InvalidInput(ONE_SIZE)
    return replace(found, reasons=("how many numbers there are tells both data sets apart",))


def at_sight(
    build: Build, data: tuple[Any, Any], begun: Sequence[Sequence[Seen]]
) -> tuple[str, ...]:
    """Return what refutes the promise of releases before anything is counted.

    What was found with noise may differ between a few releases by chance: then more are asked.

    Args:
        build: makes a release.
        data: without the unit, and with it.
        begun: two or more releases of each, with real noise.
    """
    if told_apart(*begun):
        begun = [
            [*side, *(seen(build(each, None)) for _ in range(_ASKED_AGAIN))]
            for side, each in zip(begun, data, strict=True)
        ]
    return _reasons([side[0] for side in begun], *begun)


def too_little(promise: Promise) -> tuple[str, ...]:
    """Return in words that the noise of the receipt does not give what is promised, if so.

    Args:
        promise: with μ, if the receipt is of Gaussians.
    """
    if promise.mu is None:
        return ()
    epsilon = bounds.epsilon_of_mu(promise.mu, promise.guarantee.delta)
    if epsilon <= promise.guarantee.epsilon * _ROUNDING_OF_SUMS:
        return ()
    return (f"noise as the receipt says comes to ε = {epsilon:.4g}, more than is promised",)


def _too_far(draws: Sequence[Draw], promise: Promise) -> tuple[str, ...]:
    """Return in words that exact sums are further apart than noise is made for, if they are.

    In rounds the distance follows from noise, too; but on no path is it larger than is promised.
    """
    most = max(each.apart for each in draws)
    if promise.mu is None or most <= promise.mu**2 * _ROUNDING_OF_SUMS:
        return ()
    times = math.sqrt(most) / promise.mu
    return (
        f"without noise, both data sets are {times:.3g} times as far apart as noise is made for",
    )


def claim(releases: Sequence[Seen]) -> Promise:
    """Return what is promised of releases of two data sets: the lesser promise, if they differ.

    Args:
        releases: one of each.
    """
    return max(map(promise_in, releases), key=lambda each: each.guarantee.epsilon)


def _reasons(
    first: Sequence[Seen], without: Sequence[Seen], with_unit: Sequence[Seen]
) -> tuple[str, ...]:
    """Return what refutes the promise before anything is counted."""
    found = []
    if any(each.guarantee.scope.startswith(NOT_PRIVATE) for each in first):
        found.append("its noise is from a test source: the release says NOT PRIVATE itself")
    if names := told_apart(without, with_unit):
        found.append(
            f"what the release says of itself tells both data sets apart: {', '.join(names)}"
        )
    return tuple(found)


def promise_in(release: Seen) -> Promise:
    """Return what is promised of a release, with μ where all its mechanisms are Gaussians.

    A disclosure beside them lets a little more be found, a part of δ: it changes no lower bound.

    Args:
        release: that was seen.
    """
    if release.receipt is None:
        return Promise(release.guarantee, None)
    noisy = [
        (each, count)
        for each, count in release.receipt.mechanisms
        if not isinstance(each, Disclosure)
    ]
    if not all(isinstance(each, Gaussian) for each, _ in noisy):
        return Promise(release.guarantee, None)
    squared = math.fsum(count * each.spread**2 for each, count in noisy)
    return Promise(release.guarantee, math.sqrt(squared))


def _learn(
    build: Build,
    data: tuple[Any, Any],
    view: Callable[[Any], Any] | None,
    run: "Run",
    exact: tuple[Seen, Seen] | None,
) -> tuple[Experiment, tuple[list[Seen], list[Seen]]]:
    """Return an experiment that was learned from some builds, and these."""
    count = max(int(run.builds * _LEARNING) // 2, 2)
    sides = [0] * count + [1] * count
    made = map_forked(
        lambda pair: seen(build(data[pair[1]], run.entropy(pair[0])), view=view),
        list(enumerate(sides)),
        workers=run.workers,
        progress=run.progress,
        text="learning where to look",
    )
    samples = (made[:count], made[count:])
    return learned(build, data, view, samples, exact), samples


@dataclass(frozen=True, kw_only=True)
class Run:
    """How many releases are made, and how.

    Attributes:
        builds: of both data sets together.
        confidence: of the bound.
        seed: of noise for tests; None for that of the operating system.
        workers: how many processes; None for one for each processor.
        progress: whether to show a bar.
        used: so many builds were used before, to learn from.
    """

    builds: int
    confidence: float
    seed: int | None = None
    workers: int | None = None
    progress: bool = False
    used: int = 0

    def __post_init__(self) -> None:
        _validate.real("confidence", self.confidence, above=0.5, below=1)
        if self.seed is not None:
            _validate.whole("seed", self.seed, at_least=0)
        if self.workers is not None:
            _validate.whole("workers", self.workers, at_least=1)

    def entropy(self, number: int) -> Seeded | None:
        """Return where the noise of a build comes from: None for the operating system."""
        return None if self.seed is None else Seeded(self.seed * 2**32 + self.used + number)

    def audit(
        self,
        experiment: Experiment,
        promise: Promise,
        *,
        name: str,
        began: float,
        reasons: tuple[str, ...] = (),
    ) -> Audit:
        """Return what was found in releases of both data sets.

        Args:
            experiment: makes them.
            promise: what is claimed.
            name: of what is audited.
            began: when, by the clock of this process.
            reasons: what refutes the promise already.
        """
        half = (self.builds - self.used) // 2
        sides = [0, 1] * half
        draws = map_forked(
            lambda pair: _kept(experiment.draw(pair[1], self.entropy(pair[0])), pair[0]),
            list(enumerate(sides)),
            workers=self.workers,
            progress=self.progress,
        )
        without, with_unit = draws[0::2], draws[1::2]
        size = _NOISE_SHARE * (1 - self.confidence)
        doubt = 1 - self.confidence - size
        noise = Noise.of(draws, size)
        if promise.mu is not None:
            test, lower = _of_gaussian(without, with_unit, promise, experiment, doubt)
        else:
            test, lower = _of_any(without, with_unit, promise.guarantee.delta, doubt)
            lower = max(lower, _of_noise(experiment, noise, promise.guarantee.delta))
        lower = max(lower, _of_small_noise(noise, promise))
        if _repeats(draws):
            reasons += ("two releases have the same noise: whoever has both sees what differs",)
        if reasons:
            lower = LARGEST_EPSILON
        if noise is not None and noise.at_most < 1:
            reasons += (f"noise is at most {noise.at_most:.3f} times what the receipt says",)
        kept = [each for each in draws if each.levels is not None]
        reasons += oddities(
            stacked([each.levels for each in kept if each.levels is not None]),
            [each.grain for each in kept],
            doubt=_BY_CHANCE,
        )
        reasons += too_little(promise) + _too_far(draws, promise)
        squared = float(np.mean([each.apart for each in draws]))
        known = experiment.additive and (squared == 0 or promise.mu is not None)
        return Audit(
            name=name,
            claimed=promise.guarantee,
            claimed_mu=promise.mu,
            epsilon_lower=lower,
            confidence=self.confidence,
            test=test,
            builds=self.used + 2 * half,
            seconds=time.monotonic() - began,
            distance=math.sqrt(squared) / (promise.mu or 1.0) if known else None,
            direction="known" if experiment.additive else "learned",
            noise=noise,
            scores=(_scores(without), _scores(with_unit)),
            reasons=reasons,
        )


def _kept(draw: Draw, number: int) -> Draw:
    """Return a draw of this number, without the noise of each number where there is no room."""
    if draw.levels is None or keeps(number, draw.numbers):
        return draw
    return replace(draw, levels=None)


def _repeats(draws: Sequence[Draw]) -> bool:
    """Return whether noise was the same twice, where that is no chance."""
    marks = [each.mark for each in draws if each.numbers and each.mark]
    if len(set(marks)) == len(marks):
        return False
    pairs = len(marks) * (len(marks) - 1) / 2
    return math.log(pairs) + max(each.chance for each in draws if each.mark) < math.log(_BY_CHANCE)


def _of_noise(experiment: Experiment, noise: Noise | None, delta: float) -> float:
    """Return ε of the distance that there is, with noise as large as it surely is not exceeding.

    Where noise has the laws that the receipt names; only its size is measured.
    """
    if noise is None or not _NO_NOISE < noise.at_most < math.inf:
        return 0.0
    pairs = experiment.mechanisms(noise.at_most)
    if not pairs:
        return 0.0
    if delta == 0:
        return math.fsum(count * each.largest_loss for each, count in pairs)
    return tight(pairs, delta=delta)


def _of_small_noise(noise: Noise | None, promise: Promise) -> float:
    """Return ε of the receipt with the noise that there is, if that is surely too small."""
    if noise is None or noise.at_most >= 1:
        return 0.0
    if noise.at_most <= _NO_NOISE:
        return LARGEST_EPSILON
    if promise.mu is None:
        return 0.0  # what that comes to follows from how far both sides are apart
    return bounds.epsilon_of_mu(promise.mu / noise.at_most, promise.guarantee.delta)


def _scores(draws: Sequence[Draw]) -> Floats:
    return np.array([each.score for each in draws])


def _above(draws: Sequence[Draw], threshold: float) -> int:
    """Return how many releases look as if the unit were there."""
    return int(np.count_nonzero(_scores(draws) > threshold))


def _of_gaussian(
    without: Sequence[Draw],
    with_unit: Sequence[Draw],
    promise: Promise,
    experiment: Experiment,
    doubt: float,
) -> tuple[Test, float]:
    """Return the test in the middle, and the best of three bounds that share the doubt.

    1. What the test finds and the false alarms it raises: whatever the noise is.
    2. How often the noise is at most half the distance of both sides: where noise of one law is
       added to both (`bounds.mu_of_gap`).
    3. How far the noise spreads in the direction of the difference: where it also is normal, which
       it has to look like.

    For 2 and 3 both sides have to be equally far apart in each release. Where that follows from
    noise, a few may fall short: so often the gap between hits and false alarms may be missing.
    """
    test = Test(_above(without, 0.0), len(without), _above(with_unit, 0.0), len(with_unit))
    squared = np.array([each.squared for each in (*without, *with_unit)])
    most = float(squared.max())
    if not experiment.additive or most == 0:
        return test, bounds.epsilon_of_mu(test.surely(doubt).mu, promise.guarantee.delta)
    sign = np.array([1.0] * len(without) + [-1.0] * len(with_unit))
    # The noise in that direction, in units of what is claimed, times the distance.
    moved = np.array([each.score for each in (*without, *with_unit)]) + sign * squared / 2
    full = squared >= most * (1 - _EQUAL)
    short = len(full) - int(np.count_nonzero(full))
    part, missing = 0.3 * doubt, 0.0
    if not experiment.fixed:
        missing = bounds.at_most(short, len(full), doubt=0.1 * doubt)
    inside = int(np.count_nonzero(full & (np.abs(moved) <= most / 2)))
    spread = _gap_of_spread(moved[full] / math.sqrt(most), math.sqrt(most), part)
    mus = [
        test.surely(part).mu,
        bounds.mu_of_gap(bounds.at_least(inside, len(full), doubt=part) - missing),
        bounds.mu_of_gap(spread - 2 * missing),
    ]
    return test, bounds.epsilon_of_mu(max(mus), promise.guarantee.delta)


def _gap_of_spread(noise: Floats, distance: float, doubt: float) -> float:
    """Return how often normal noise is at most half of a distance, at least; 0 if it is not normal.

    Args:
        noise: in one direction, in any unit.
        distance: of both sides, in the same unit.
        doubt: the probability of being wrong.
    """
    if not np.any(noise):
        return 1.0
    if stats.kstest(noise / noise.std(), "norm").pvalue < _SHAPE_DOUBT:
        return 0.0
    largest = math.sqrt(float(noise @ noise) / float(stats.chi2.ppf(doubt, len(noise))))
    return float(special.erf(distance / largest / math.sqrt(8)))


def _of_any(
    without: Sequence[Draw], with_unit: Sequence[Draw], delta: float, doubt: float
) -> tuple[Test, float]:
    """Return the test whose threshold a fifth of the releases chose, and what the others say of it.

    Whatever the mechanism is: by the definition of (ε, δ).
    """
    sides = [_scores(without), _scores(with_unit)]
    chosen = [max(int(len(side) * _CHOOSING), 1) for side in sides]
    first = [side[:count] for side, count in zip(sides, chosen, strict=True)]
    rest = [side[count:] for side, count in zip(sides, chosen, strict=True)]
    # Between neighbouring scores; many are equal where noise is Laplace's.
    values = np.unique(np.round(np.concatenate(first), 12))
    middles = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    candidates = np.quantile(middles, np.linspace(0, 1, 101), method="nearest")

    def promising(threshold: float) -> float:
        scale = [len(side) / len(some) for side, some in zip(rest, first, strict=True)]
        counts = [
            round(int(np.count_nonzero(some > threshold)) * times)
            for some, times in zip(first, scale, strict=True)
        ]
        guess = Test(counts[0], len(rest[0]), counts[1], len(rest[1]))
        return guess.surely(doubt).epsilon(delta)

    threshold = max(np.unique(candidates).tolist(), key=promising)
    test = Test(
        int(np.count_nonzero(rest[0] > threshold)),
        len(rest[0]),
        int(np.count_nonzero(rest[1] > threshold)),
        len(rest[1]),
    )
    return test, test.surely(doubt).epsilon(delta)
