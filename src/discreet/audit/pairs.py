"""A lower bound on ε by experiment: `audit`. What it can show, and what not: `docs/audit.md`.

Many releases of two data sets that differ in one unit are built, and a test says of each which it
was. How often that is right bounds ε from below. A bound above what is promised refutes the
promise. One below it proves nothing: that is what proofs are for.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
    Build,
    Draw,
    Experiment,
    Known,
    accepts_entropy,
    checked_pair,
    few_rows,
    learned,
    told_apart,
    with_entropy,
    without_noise,
)
from discreet.audit.looking import Seen, seen
from discreet.audit.workers import map_forked
from discreet.privacy import NOT_PRIVATE, Guarantee, rounded_down
from discreet.testing import Seeded

# A claim is met but for rounding of the account.
_ROUNDING = 1 + 1e-9

# How much of the doubt is for the size of the noise; and noise is said not to be normal only if
# that is surer than this.
_NOISE_SHARE, _SHAPE_DOUBT = 0.01, 1e-3

# Of what is learned from: half of all builds where a direction is, a fifth where a threshold is.
_LEARNING, _CHOOSING = 0.5, 0.2
_LEAST_BUILDS = 40

# Distances that differ by so little are equal but for rounding.
_EQUAL = 1e-9

# Noise that is so much smaller than is said is none; and that is the same twice by such a chance.
_NO_NOISE, _BY_CHANCE = 1e-3, 1e-6


@dataclass(frozen=True)
class Noise:
    """How large the noise of all released numbers is, beside what is claimed.

    Attributes:
        ratio: of standard deviations; 1 if it is as claimed.
        at_most: it is surely not larger; infinite where so few numbers do not tell.
        numbers: of so many draws.
    """

    ratio: float
    at_most: float
    numbers: int

    @classmethod
    def of(cls, draws: Sequence[Draw], doubt: float) -> "Noise | None":
        """Return the noise in releases; None if none has numbers of known noise.

        How much squares vary is that of the laws that are claimed, at another scale: where numbers
        are few, what is seen of it goes with what is seen of the size, and would call noise small.

        Args:
            draws: all of them.
            doubt: the probability that it is larger than `at_most`.
        """
        numbers = sum(each.numbers for each in draws)
        if not numbers:
            return None
        square = math.fsum(each.squares for each in draws) / numbers
        fourth = math.fsum(each.fourths for each in draws) / numbers
        # Of the mean of squares, in units of their true mean: nearly normal, with a thinner tail
        # below.
        error = math.sqrt((fourth - 1) / numbers)
        least = 1 + float(special.ndtri(doubt)) * error
        most = math.sqrt(square / least) if least > 0 else math.inf
        return cls(math.sqrt(square), most, numbers)


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found. `str` for people, `to_dict` for programs.

    Attributes:
        name: of what was audited.
        claimed: what is promised.
        claimed_mu: sensitivity over σ, if what is promised is one Gaussian mechanism; else None.
        epsilon_lower: ε is at least this, with so much confidence, at the δ that is claimed.
        confidence: how often an audit says nothing wrong, at least.
        test: how often the test was right, of releases that it was not chosen by.
        builds: how many releases were made in all.
        seconds: how long that took.
        distance: how far apart the two exact releases are, over what the claim allows; None where
            that is not known. Below one, the audit cannot reach what is claimed.
        direction: "known" if the exact releases are, else "learned".
        noise: how large the noise is beside the claim; None where that is not known.
        scores: of the releases without the unit and with it, for pictures.
        reasons: what refutes the promise whatever the numbers are; none as a rule.
        leaks: what the release itself says was taken from the rows: no promise covers it.
    """

    name: str
    claimed: Guarantee
    claimed_mu: float | None
    epsilon_lower: float
    confidence: float
    test: Test
    builds: int
    seconds: float
    distance: float | None
    direction: str
    noise: Noise | None
    scores: tuple[Floats, Floats] = field(repr=False)
    reasons: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether what was measured is within what is promised. False refutes the promise."""
        return not self.reasons and self.epsilon_lower <= self.claimed.epsilon * _ROUNDING

    @property
    def share(self) -> float:
        """How much of the ε that is promised was measured."""
        return self.epsilon_lower / self.claimed.epsilon if self.claimed.epsilon else math.inf

    def to_dict(self) -> dict[str, object]:
        """Return what was found under its names, ready for JSON."""
        most = math.inf if self.noise is None else self.noise.at_most
        return {
            "name": self.name,
            "epsilon_lower": self.epsilon_lower,
            "claimed": self.claimed.epsilon,
            "delta": self.claimed.delta,
            "neighbours": str(self.claimed.neighbours),
            "unit": self.claimed.unit,
            "holds": self.holds,
            "confidence": self.confidence,
            "builds": self.builds,
            "seconds": round(self.seconds, 3),
            "direction": self.direction,
            "distance": self.distance,
            "false_alarms": self.test.alarms,
            "without": self.test.without,
            "hits": self.test.hits,
            "with_unit": self.test.with_unit,
            "noise_ratio": None if self.noise is None else self.noise.ratio,
            "noise_at_most": most if math.isfinite(most) else None,
            "reasons": list(self.reasons),
            "leaks": list(self.leaks),
        }

    def __str__(self) -> str:
        verdict = (
            "holds: no contradiction was found"
            if self.holds
            else "DOES NOT HOLD: the promise is refuted"
        )
        neighbours = f"one {self.claimed.unit} {self.claimed.neighbours.change}"
        lines = [
            f"{self.name}: {verdict}",
            *(f"  because    {each}" for each in self.reasons),
            (
                f"  measured   ε ≥ {rounded_down(self.epsilon_lower)}, {self.confidence:.0%} sure: "
                f"{self.share:.0%} of what is promised"
            ),
            f"  promised   {self.claimed.figures}, {neighbours}",
            (
                f"  the test   right of {self._right:.1%} of {self._judged:,} releases; "
                f"{self.builds:,} built in {self.seconds:.0f} s"
            ),
        ]
        if self.noise is not None:
            lines.append(f"  noise      {self.noise.ratio:.3f} times what the receipt says")
        if self.distance is not None:
            lines.append(f"  the pair   {self.distance:.1%} as far apart as the promise allows for")
        if self.leaks:
            lines.append(
                f"  besides    {' and '.join(self.leaks)} taken from the rows: not covered"
            )
        if self.direction == "learned":
            lines.append(
                "  direction  learned from half of the builds, so that only gross leaks are seen. "
                "Exact sums are known where a release is sums and noise, and your function hands "
                "on an argument `entropy`"
            )
        return "\n".join(lines)

    def curve(self, at: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
        """Return which share of units is found at these shares of false alarms, for a picture.

        Args:
            at: shares of false alarms, above 0 and at most 1.

        Returns:
            Shares that were measured, and where the true ones are, 99% of the time: lower and upper
            ends.
        """
        without, with_unit = (np.sort(side) for side in self.scores)
        thresholds = np.quantile(without, 1 - np.asarray(at))
        hits = len(with_unit) - np.searchsorted(with_unit, thresholds, side="right")
        ends = [bounds.interval(int(each), len(with_unit), confidence=0.99) for each in hits]
        return (hits / len(with_unit)).tolist(), *map(list, zip(*ends, strict=True))

    @property
    def _judged(self) -> int:
        return self.test.without + self.test.with_unit

    @property
    def _right(self) -> float:
        return (self.test.without - self.test.alarms + self.test.hits) / self._judged


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
        `.epsilon_lower`, `.claimed`, `.holds`, and how they were found.

    Raises:
        InvalidInput: what `build` returns is no release, or has another size for the other data.

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
    builds = _validate.whole("builds", builds, at_least=_LEAST_BUILDS)
    began = time.monotonic()
    made = with_entropy(build)
    run = Run(builds=builds, confidence=confidence, seed=seed, workers=workers, progress=progress)
    with few_rows():
        exact = without_noise(made, data) if view is None and accepts_entropy(build) else None
        first = [seen(made(each, None), view=lambda _: np.zeros(1)) for each in data]
        promise = claim(first)
        if exact is not None and all(each.additive for each in exact):
            sums = Known(made, data, (exact[0].parts, exact[1].parts))
            reasons = _reasons(first, *([each] for each in exact))
            found = run.audit(sums, promise, name=name, began=began, reasons=reasons)
        else:
            experiment, samples = _learn(made, data, view, run, exact)
            reasons = _reasons(first, *samples)
            left = replace(run, used=sum(map(len, samples)))
            found = left.audit(experiment, promise, name=name, began=began, reasons=reasons)
        receipts = [each.receipt for each in first if each.receipt is not None]
        leaks = {str(leak): None for receipt in receipts for leak in receipt.leaks}
        return replace(found, leaks=tuple(leaks))


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
            lambda pair: experiment.draw(pair[1], self.entropy(pair[0])),
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
        squared = float(np.mean([each.squared for each in draws]))
        reached = squared > 0 and promise.mu is not None
        return Audit(
            name=name,
            claimed=promise.guarantee,
            claimed_mu=promise.mu,
            epsilon_lower=lower,
            confidence=self.confidence,
            test=test,
            builds=self.used + 2 * half,
            seconds=time.monotonic() - began,
            distance=math.sqrt(squared) / (promise.mu or 1.0) if reached else None,
            direction="known" if experiment.additive else "learned",
            noise=noise,
            scores=(_scores(without), _scores(with_unit)),
            reasons=reasons,
        )


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
