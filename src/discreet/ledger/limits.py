"""Whether one more release stays within a limit, whoever chose it and whatever they had seen.

The first release of a data set was chosen before anything was known of it: it counts exactly,
whatever it is made of. Each later one may have been chosen by looking at those before. Gaussians
lose nothing by that: their (Δ/σ)² add up. A release of another law counts as the Gaussian that
covers it; or, as long as there is no Gaussian at all, by its largest loss. Its truncated tails come
out of a part of δ that the first release has fixed. `docs/privacy.md`, "Ledger", has the proof, and
says why plain composition would not do.

A `Statement` is what a ledger says of a data set: its limit, what is spent, what is left. Public
numbers only.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from scipy import special

from discreet.accounting import Gaussian, Mechanism, Receipt, tight
from discreet.accounting.compose import concentrated_epsilon
from discreet.accounting.gaussian import LARGEST_MU, gaussian_sigma
from discreet.accounting.receipt import together
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.privacy import NOT_PRIVATE, Guarantee, Privacy, rounded_down, rounded_up

Mechanisms = Sequence[tuple[Mechanism, int]]

# `gaussian_sigma` and `gaussian_epsilon` are inverse to each other up to some units in the last
# place, and both allow for more than this: a request for the whole limit must fit it, and an ε of 1
# that was asked for is not shown as 1.001.
ROUNDING = 1 + 1e-13

# More than the relative error of the inverse of Φ.
_COVER_ROUNDING = 1 + 1e-12

# Below this a Gaussian's loss is nothing.
_LEAST_RATIO = 1e-12

# How finely, and how far, the noise of a request is scaled up to see what would fit.
_PRECISION, _LARGEST_LOG_FACTOR = 1e-6, math.log(1e9)

# A smaller ε is of no use to anybody.
_LEAST_EPSILON = 1e-6

# Where no ε holds at all.
_LARGEST = 1e9


@dataclass(frozen=True)
class Charge:
    """What one release weighs, if it was chosen after looking at others.

    Attributes:
        square: (Δ/σ)² of the Gaussian that covers it.
        tail: the mass of its infinite losses, which no Gaussian covers.
        loss: its largest finite loss; infinite if there is a Gaussian in it.
    """

    square: float
    tail: float
    loss: float

    @classmethod
    def of(cls, mechanisms: Mechanisms) -> "Charge":
        """Return the charge of all these mechanisms together."""
        return cls(
            square=math.fsum(count * _cover(each) ** 2 for each, count in mechanisms),
            tail=math.fsum(count * each.infinite_loss for each, count in mechanisms),
            loss=math.inf
            if any(isinstance(each, Gaussian) for each, _ in mechanisms)
            else math.fsum(count * each.spread for each, count in mechanisms),
        )


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A limit, and all that has been counted against it.

    Attributes:
        limit: the (ε, δ) that holds for ever.
        begun: whether there was a first release; the next one is not the first then.
        exact: what the first release has beside Gaussians.
        square: (Δ/σ)² of all Gaussians and of those that cover the rest.
        tail: the infinite losses of all releases but the first.
        loss: the largest finite losses of all releases together.
        kept: how much of δ is kept for them, since the first release.
    """

    limit: Privacy
    begun: bool = False
    exact: tuple[tuple[Mechanism, int], ...] = ()
    square: float = 0.0
    tail: float = 0.0
    loss: float = 0.0
    kept: float = 0.0

    def plus(self, mechanisms: Mechanisms) -> "Filter":
        """Return the same limit with one more release."""
        if not self.begun:
            return self._begin(mechanisms)
        return self.plus_charges([Charge.of(mechanisms)])

    def plus_charges(self, charges: Sequence[Charge]) -> "Filter":
        """Return the same limit with more releases, none of them the first."""
        square = math.fsum([self.square, *(each.square for each in charges)])
        tail = math.fsum([self.tail, *(each.tail for each in charges)])
        loss = math.fsum([self.loss, *(each.loss for each in charges)])
        return replace(self, square=square, tail=tail, loss=loss)

    def without_first(self) -> "Filter":
        """Return the same limit with a first release that was voided: what it fixed stays so."""
        return replace(self, exact=(), square=0.0, loss=0.0)

    def _begin(self, mechanisms: Mechanisms) -> "Filter":
        """Return the same limit with its first release.

        If that has infinite losses, half of what they leave of δ is kept for those to come; unless
        it would not fit the limit then.
        """
        others = tuple(pair for pair in mechanisms if not isinstance(pair[0], Gaussian))
        gaussians = [pair for pair in mechanisms if isinstance(pair[0], Gaussian)]
        square, tail = Charge.of(gaussians).square, Charge.of(others).tail
        loss = Charge.of(mechanisms).loss
        first = replace(self, begun=True, exact=others, square=square, loss=loss)
        if not 0 < tail < self.limit.delta:
            return first
        saving = replace(first, kept=(self.limit.delta - tail) / 2)
        return saving if saving.fits else first

    @property
    def fits(self) -> bool:
        """Whether all that counts stays within the limit."""
        if not self._covered:
            return False
        most = self.limit.epsilon
        # What is quick to tell comes first: `tight` is never above either, and takes far longer.
        quick = self.loss <= most * ROUNDING or (
            bool(self.exact) and concentrated_epsilon(self._parts, self._delta) <= most
        )
        return quick or self.epsilon <= most

    @property
    def epsilon(self) -> float:
        """What all that counts comes to, at the limit's δ; infinite if its tails exceed that."""
        if not self._covered:
            return math.inf
        parts = self._parts
        return min(tight(parts, delta=self._delta), self.loss) / ROUNDING if parts else 0.0

    @property
    def _covered(self) -> bool:
        """Whether tails are within what there is for them, and anybody is protected at all."""
        own = Charge.of(self.exact).tail if self.exact else 0.0
        within = self.tail <= self.kept and own <= self._delta
        return within and self.square <= LARGEST_MU**2

    @property
    def _delta(self) -> float:
        return self.limit.delta - self.kept

    @property
    def _parts(self) -> list[tuple[Mechanism, int]]:
        """All that counts: the first as it is, and one Gaussian for all others."""
        if self.square == 0:
            return list(self.exact)
        ratio = min(max(math.sqrt(self.square), _LEAST_RATIO), LARGEST_MU)
        merged = Gaussian(sigma=1 / ratio, sensitivity=1.0, neighbours=self.limit.neighbours)
        return [*self.exact, (merged, 1)]


@dataclass(frozen=True)
class Bound:
    """One limit, with all that counts against it.

    Attributes:
        whose: for instance "data set 'clinic'".
        filter: the limit itself.
    """

    whose: str
    filter: Filter


def broken_by(bounds: Sequence[Bound], mechanisms: Mechanisms) -> list[Bound]:
    """Return the limits that one more release would not stay within."""
    return [each for each in bounds if not each.filter.plus(mechanisms).fits]


def refuse(
    broken: Sequence[Bound], bounds: Sequence[Bound], mechanisms: Mechanisms, *, delta: float
) -> None:
    """Raise `BudgetExceeded` if a request breaks any limit, and say what would not.

    Args:
        broken: the limits that it breaks (`broken_by`).
        bounds: all that it has to stay within.
        mechanisms: what was asked for.
        delta: at which it was.
    """
    if not broken:
        return
    whose, limit = broken[0].whose, broken[0].filter.limit
    asked = tight(mechanisms, delta=delta) / ROUNDING
    left = largest_epsilon(bounds, mechanisms, delta=delta)
    fits = f"at most ε = {rounded_down(left)} still fits" if left else "nothing fits any more"
    raise BudgetExceeded(
        f"Expected a request that {whose} has the budget for: "
        f"ε = {rounded_up(asked)} (δ = {delta:g}) was asked for, and of ε = {limit.epsilon:g} "
        f"(δ = {limit.delta:g}) it has spent "
        f"ε = {rounded_up(broken[0].filter.epsilon)}; {fits} (δ = {delta:g})."
    )


def largest_epsilon(bounds: Sequence[Bound], mechanisms: Mechanisms, *, delta: float) -> float:
    """Return the ε at this δ of such mechanisms with as much noise as fits all limits; 0 for none.

    Shown with `rounded_down`, it is a number that can be asked for.
    """
    found = largest_fitting([each.filter for each in bounds], mechanisms)
    epsilon = 0.0 if found is None else tight(found, delta=delta)
    return epsilon if epsilon >= _LEAST_EPSILON else 0.0


def largest_fitting(filters: Sequence[Filter], mechanisms: Mechanisms) -> Mechanisms | None:
    """Return the mechanisms with the least more noise that fits all limits; None if none does.

    All noise scales are multiplied by one common factor, at least 1.
    """

    def scaled(log_factor: float) -> Mechanisms:
        return [(each.with_noise_times(math.exp(log_factor)), n) for each, n in mechanisms]

    def exists(log_factor: float) -> bool:
        try:
            return bool(scaled(log_factor))
        except InvalidInput:  # beyond what the law takes
            return False

    def fits(log_factor: float) -> bool:
        return all(each.plus(scaled(log_factor)).fits for each in filters)

    if fits(0.0):
        return mechanisms
    highest = -_threshold(lambda x: exists(-x), -_LARGEST_LOG_FACTOR, 0.0)
    return scaled(_threshold(fits, 0.0, highest)) if fits(highest) else None


def whole_limit(limit: Privacy) -> list[tuple[Mechanism, int]]:
    """Return the Gaussian mechanism that would take up all of a limit."""
    sigma = gaussian_sigma(epsilon=limit.epsilon, delta=limit.delta)
    return [(Gaussian(sigma=sigma, sensitivity=1.0, neighbours=limit.neighbours), 1)]


def _threshold(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return about the least number that holds, from above, if `high` does and `low` may not."""
    if holds(low):
        return low
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _cover(mechanism: Mechanism) -> float:
    """Return Δ/σ of a Gaussian that covers a mechanism, but for its infinite losses.

    Losses within ±ε are covered by randomised response, which says the truth with probability
    1/(1 + e^-ε); and that by the Gaussian that errs as often: Φ(μ/2) = 1/(1 + e^-ε).
    """
    if isinstance(mechanism, Gaussian):
        return mechanism.spread
    epsilon = mechanism.spread
    # The same number twice: 2Φ(μ/2) - 1 = tanh(ε/2) keeps its digits where ε is small.
    half = (
        math.sqrt(2) * float(special.erfinv(math.tanh(epsilon / 2)))
        if epsilon < 1
        else -float(special.ndtri(special.expit(-epsilon)))
    )
    return 2 * half * _COVER_ROUNDING


class State(StrEnum):
    """How far a spend has come. All but the last count; for that, `Spend.counts` tells."""

    RESERVED = "reserved"
    SPENT = "spent"
    RELEASED = "released"
    VOIDED = "voided"


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One release, as a ledger knows it.

    Attributes:
        receipt: what it is made of.
        delta: at which it was asked for.
        analyst: who asked, if that was said.
        at: when it was reserved, UTC.
        state: how far it has come.
        counts: whether it counts. What was voided does not, unless another release of the data set
            was drawn while it was reserved (`Ledger.void`).
        places: where it went, as far as that was noted.
    """

    receipt: Receipt
    delta: float
    analyst: str | None
    at: str
    state: State
    counts: bool
    places: tuple[str, ...]

    @property
    def id(self) -> str:
        """The name of the receipt."""
        return self.receipt.id

    @cached_property
    def guarantee(self) -> Guarantee:
        """What it promises by itself."""
        return self.receipt.guarantee(delta=self.delta)

    @property
    def epsilon(self) -> float:
        """What it was asked for at, as far as its receipt tells."""
        return self.guarantee.epsilon / ROUNDING

    def to_dict(self) -> dict[str, object]:
        """Return what there is to know, as plain JSON types."""
        return {
            "id": self.id,
            "state": str(self.state),
            "counts": self.counts,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "analyst": self.analyst,
            "at": self.at,
            "places": list(self.places),
            "private": self.receipt.private,
            "leaks": list(self.receipt.leaks),
        }


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The account of a data set, or of one analyst with a limit of his own.

    Attributes:
        dataset: its name.
        analyst: whose account it is; None for the whole data set.
        unit: whom the limit protects: a "row" or a "record".
        bounds: the limits that the next release has to stay within, this account's own the last.
        spends: all of them, in the order in which they came.
        limits: of analysts, by name.
    """

    dataset: str
    analyst: str | None
    unit: str
    bounds: tuple[Bound, ...] = field(repr=False)
    spends: tuple[Spend, ...]
    limits: dict[str, Privacy]

    @property
    def limit(self) -> Privacy:
        """What all releases together stay within."""
        return self.bounds[-1].filter.limit

    @cached_property
    def spent(self) -> Guarantee:
        """What all that counts comes to, at the limit's δ, by the same rules as for the limit.

        `docs/privacy.md`, "Ledger".
        """
        return Guarantee(
            min(self.bounds[-1].filter.epsilon, _LARGEST),
            self.limit.delta,
            self.limit.neighbours,
            unit=self.unit,
            scope=together([each.receipt for each in self._counted], releases=len(self._counted)),
        )

    @cached_property
    def left(self) -> float:
        """The largest ε, at the limit's δ, that a Gaussian release may still have; 0 for none."""
        return largest_epsilon(self.bounds, whole_limit(self.limit), delta=self.limit.delta)

    @property
    def private(self) -> bool:
        """False if any spend that counts was made with a test source of noise."""
        return all(each.receipt.private for each in self._counted)

    @property
    def _counted(self) -> list[Spend]:
        return [each for each in self.spends if each.counts]

    def __str__(self) -> str:
        mark = "" if self.private else f"{NOT_PRIVATE}: "
        whose = "" if self.analyst is None else f", analyst {self.analyst!r}"
        left = f"ε = {rounded_down(self.left)} is left" if self.left else "nothing is left"
        return (
            f"{mark}{self.dataset!r}{whose}: of ε = {self.limit.epsilon:g} "
            f"(δ = {self.limit.delta:g}, {self.limit.neighbours} neighbours, one {self.unit}), "
            f"ε = {rounded_up(self.spent.epsilon)} is spent, and {left} for one more release."
        )

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain JSON types."""
        return {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "epsilon": self.limit.epsilon,
            "delta": self.limit.delta,
            "neighbours": str(self.limit.neighbours),
            "unit": self.unit,
            "spent": self.spent.epsilon,
            "left": self.left,
            "private": self.private,
            "spends": [each.to_dict() for each in self.spends],
            "analysts": {
                name: {"epsilon": each.epsilon, "delta": each.delta}
                for name, each in self.limits.items()
            },
        }
