"""What a mechanism is, as far as privacy goes; its analysis lives in `loss` and `compose`.

A `Mechanism` is noise of a known law added to a quantity of known sensitivity under a named
neighbouring relation. It knows its exact trade-off δ(ε) for the worst pair of neighbours. All four
laws are symmetric and log-concave, so the worst pair is a shift by the whole sensitivity in one
coordinate, and both directions of the comparison are the same (`docs/privacy.md`). A `Disclosure`
has no noise of its own: it is the chance that something is named which only one unit has.
"""

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from discreet import _validate
from discreet import noise as laws
from discreet._typing import Floats
from discreet.accounting.gaussian import (
    LARGEST_EPSILON,
    LARGEST_MU,
    gaussian_epsilon,
    hockey_sticks,
    root,
)
from discreet.errors import InvalidInput
from discreet.noise.exact import SMALLEST_SCALE
from discreet.privacy import Neighbours

# δ(ε) of a Gaussian this many standard deviations out is below 1e-43, far below any δ in use.
_GAUSSIAN_REACH = 14.0

# Losses below this do not add up reliably in float64 within any count in use.
_LEAST_SPREAD = 1e-12

# More than the relative rounding error of δ(ε).
_ROUNDING = 1 + 1e-12

# More mechanisms than this are a mistake; far more would not even fit a float.
_MOST_TIMES = 10**18

Part = TypeVar("Part")


class Mechanism(abc.ABC):
    """Additive noise, described for the accountant. Frozen.

    Attributes:
        kind: its name in a file.
        neighbours: the relation that its sensitivity is meant under.
    """

    kind: ClassVar[str]
    neighbours: Neighbours

    def to_dict(self) -> dict[str, object]:
        """Return kind and fields as plain JSON types; `from_dict` makes the mechanism again.

        Raises:
            InvalidInput: if this is a subclass of somebody else's.
        """
        check_kind("mechanism", self)
        own = {name: getattr(self, name) for name in _field_names(type(self))}
        return {"kind": self.kind, **own, "neighbours": str(self.neighbours)}

    @staticmethod
    def from_dict(data: object) -> "Mechanism":
        """Return the mechanism that `to_dict` described, equal to it in every digit.

        Args:
            data: what `to_dict` returned, possibly by way of JSON.

        Returns:
            A mechanism of the kind that it names.

        Raises:
            InvalidInput: if the kind is unknown, or a field is missing, too many or wrong.
        """
        _validate.instance("mechanism", data, Mapping)
        given: dict[str, Any] = dict(data)  # type: ignore[call-overload]  # checked just now
        kind = given.pop("kind", None)
        known = _KINDS.get(kind) if isinstance(kind, str) else None
        if known is None:
            _validate.reject_argument("kind", kind, f"one of {[*_KINDS]}")
        names = _field_names(known)
        if given.keys() != set(names):
            raise InvalidInput(f"Expected a {kind} mechanism to have the fields {names}.")
        return known(**given)

    @property
    @abc.abstractmethod
    def spread(self) -> float:
        """The size of a typical privacy loss; it sets the resolution of the analysis."""

    @property
    def largest_loss(self) -> float:
        """Finite privacy losses lie within ± this (for a Gaussian, up to negligible mass)."""
        return self.spread

    @abc.abstractmethod
    def _delta(self, epsilons: Floats) -> Floats:
        """Return the exact δ(ε) for each ε ≥ 0."""

    def hockey_stick(self, epsilons: Floats) -> Floats:
        """Return the exact δ(ε) for each ε, of any sign.

        Swapping the data sets gives the same pair of laws, hence δ(-ε) = 1 - e^-ε + e^-ε·δ(ε).

        Args:
            epsilons: any shape.

        Returns:
            δ(ε), of the same shape.
        """
        size = np.abs(epsilons)
        above = self._delta(size)
        return np.where(epsilons >= 0, above, np.exp(-size) * above - np.expm1(-size))

    @abc.abstractmethod
    def with_noise_times(self, factor: float) -> Self:
        """Return the same mechanism with its noise scale multiplied by a factor.

        Args:
            factor: at least `least_factor`.

        Returns:
            A mechanism of the same kind.

        Raises:
            InvalidInput: if the law takes no such scale.
        """

    @property
    def infinite_loss(self) -> float:
        """The probability of an output that rules out the neighbour altogether: δ(∞)."""
        return 0.0

    @property
    def truncation(self) -> float:
        """A bound on `infinite_loss` that holds whatever the noise is multiplied by."""
        return 0.0

    @property
    def least_factor(self) -> float:
        """The smallest factor that `with_noise_times` takes."""
        return self.spread / LARGEST_EPSILON

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest ε ≥ 0 with δ(ε) ≤ delta; infinite if there is none.

        Args:
            delta: above 0 and below 1.

        Returns:
            ε.
        """

        def excess(fraction: float) -> float:
            at = np.array([fraction * self.largest_loss])
            return float(self.hockey_stick(at)[0]) * _ROUNDING - delta

        if excess(0.0) <= 0:
            return 0.0
        if self.infinite_loss > delta:
            return math.inf
        if excess(1.0) > 0:  # by rounding: the tails, and they are within delta
            return self.largest_loss
        found = root(excess, 0.0, 1.0)
        step = 1e-15
        while excess(found) > 0:
            found = min(found + step, 1.0)
            step *= 2
        return found * self.largest_loss


@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    """N(0, σ²) (rounded or not) added to a vector of bounded L2 sensitivity.

    Attributes:
        sigma: σ, above 0, in the units of the sensitivity.
        sensitivity: Δ, how far one unit moves the vector at most, in L2 norm.
        neighbours: the relation that the sensitivity is meant under.
    """

    kind = "gaussian"

    sigma: float
    sensitivity: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        _set(self, "sigma", _validate.real("sigma", self.sigma, above=0))
        _set(self, "sensitivity", _validate.real("sensitivity", self.sensitivity, above=0))
        _set(self, "neighbours", Neighbours.parse(self.neighbours))
        _validate.real("sensitivity/sigma", self.spread, at_least=_LEAST_SPREAD, at_most=LARGEST_MU)

    @property
    def spread(self) -> float:
        """μ = Δ/σ: the loss is N(μ²/2, μ²)."""
        return self.sensitivity / self.sigma

    @property
    def least_factor(self) -> float:
        """The factor that leaves the largest ratio Δ/σ."""
        return self.spread / LARGEST_MU

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest ε ≥ 0 with δ(ε) ≤ delta, at any delta.

        Args:
            delta: above 0 and below 1.
        """
        return gaussian_epsilon(sigma=self.sigma, delta=delta, sensitivity=self.sensitivity)

    @property
    def largest_loss(self) -> float:
        """The loss fourteen standard deviations out, beyond which δ(ε) is negligible."""
        return self.spread**2 / 2 + _GAUSSIAN_REACH * self.spread

    def _delta(self, epsilons: Floats) -> Floats:
        return hockey_sticks(self.spread, epsilons)

    def with_noise_times(self, factor: float) -> Self:
        """Return the same mechanism with more or less noise.

        Args:
            factor: that the noise is multiplied by.
        """
        return replace(self, sigma=self.sigma * factor)


@dataclass(frozen=True, kw_only=True)
class _OfScale(Mechanism):
    """Laplace noise of a scale, without a bound: no loss exceeds Δ/scale."""

    scale: float
    sensitivity: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        _set(self, "neighbours", Neighbours.parse(self.neighbours))
        _validate.real(
            "sensitivity/scale", self.spread, at_least=_LEAST_SPREAD, at_most=LARGEST_EPSILON
        )

    @property
    def spread(self) -> float:
        """ε = Δ/scale, the largest loss."""
        return self.sensitivity / self.scale

    def with_noise_times(self, factor: float) -> Self:
        """Return the same mechanism with more or less noise.

        Args:
            factor: that the noise is multiplied by.
        """
        return replace(self, scale=self.scale * factor)


@dataclass(frozen=True, kw_only=True)
class Laplace(_OfScale):
    """Continuous Laplace noise on a vector of bounded L1 sensitivity.

    Attributes:
        scale: above 0, in the units of the sensitivity.
        sensitivity: Δ, how far one unit moves the vector at most, in L1 norm.
        neighbours: the relation that the sensitivity is meant under.
    """

    kind = "laplace"

    def __post_init__(self) -> None:
        _set(self, "scale", _validate.real("scale", self.scale, above=0))
        _set(self, "sensitivity", _validate.real("sensitivity", self.sensitivity, above=0))
        super().__post_init__()

    def _delta(self, epsilons: Floats) -> Floats:
        return np.maximum(-np.expm1((epsilons - self.spread) / 2), 0.0)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(_OfScale):
    """`noise.DiscreteLaplace` on integers of bounded L1 sensitivity.

    Attributes:
        scale: in lattice units, from 0.5 to 2^40.
        sensitivity: Δ, how far one unit moves them at most, in whole lattice units.
        neighbours: the relation that the sensitivity is meant under.
    """

    kind = "discrete_laplace"

    sensitivity: int

    def __post_init__(self) -> None:
        _set(self, "scale", laws.DiscreteLaplace(scale=self.scale).scale)
        _set(self, "sensitivity", _validate.whole("sensitivity", self.sensitivity, at_least=1))
        super().__post_init__()

    def _delta(self, epsilons: Floats) -> Floats:
        return _lattice_delta(epsilons, self.spread, self.sensitivity, bound=None)

    @property
    def least_factor(self) -> float:
        """The factor that leaves the smallest scale of a lattice law."""
        return max(SMALLEST_SCALE / self.scale, super().least_factor)


@dataclass(frozen=True, kw_only=True)
class TruncatedLaplace(Mechanism):
    """`noise.TruncatedLaplace` on integers of bounded L1 sensitivity.

    Attributes:
        sensitivity: Δ, how far one unit moves them at most, in whole lattice units.
        epsilon: that it gives, above 0 and at most 500.
        delta: that it was asked for, above 0 and below one half.
        neighbours: the relation that the sensitivity is meant under.
    """

    kind = "truncated_laplace"

    sensitivity: int
    epsilon: float
    delta: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        for name in ("sensitivity", "epsilon", "delta"):
            _set(self, name, getattr(self.law, name))
        _set(self, "neighbours", Neighbours.parse(self.neighbours))
        _validate.real("epsilon", self.epsilon, at_least=_LEAST_SPREAD)

    @cached_property
    def law(self) -> laws.TruncatedLaplace:
        """The noise that this mechanism adds."""
        return laws.TruncatedLaplace(
            sensitivity=self.sensitivity, epsilon=self.epsilon, delta=self.delta
        )

    @property
    def spread(self) -> float:
        """ε, the largest finite loss."""
        return self.epsilon

    def _delta(self, epsilons: Floats) -> Floats:
        return _lattice_delta(epsilons, self.epsilon, self.sensitivity, self.law.bound)

    def with_noise_times(self, factor: float) -> Self:
        """Return the same mechanism with more or less noise.

        Args:
            factor: that the noise is multiplied by.
        """
        return replace(self, epsilon=self.epsilon / factor)

    @property
    def infinite_loss(self) -> float:
        """The mass of the Δ integers that the shifted law does not reach."""
        return self.law.exact_delta

    @property
    def least_factor(self) -> float:
        """The factor that leaves the smallest scale of a lattice law."""
        return max(SMALLEST_SCALE * self.epsilon / self.sensitivity, super().least_factor)

    @property
    def truncation(self) -> float:
        """The δ that was asked for."""
        return self.delta


@dataclass(frozen=True, kw_only=True)
class Disclosure(Mechanism):
    """With a small probability everything about a unit is told; else nothing is.

    What a threshold lets through of words that only one unit has: a release that names what is
    in the data is a Gaussian mechanism beside this one. `docs/privacy.md`, "What is in the data".

    Attributes:
        probability: p, above 0 and below 1: δ(ε) = p for every ε ≥ 0, in both directions.
        neighbours: the relation that it is meant under.
    """

    kind = "disclosure"

    probability: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        _set(self, "probability", _validate.real("probability", self.probability, above=0, below=1))
        _set(self, "neighbours", Neighbours.parse(self.neighbours))

    @property
    def spread(self) -> float:
        """There is no finite loss."""
        return 0.0

    def _delta(self, epsilons: Floats) -> Floats:
        return np.full_like(epsilons, self.probability, dtype=np.float64)

    def with_noise_times(self, factor: float) -> Self:  # noqa: ARG002
        """Return the same: no noise changes it.

        Args:
            factor: not used.
        """
        return self

    @property
    def infinite_loss(self) -> float:
        """P."""
        return self.probability

    @property
    def truncation(self) -> float:
        """P."""
        return self.probability

    @property
    def least_factor(self) -> float:
        """Any."""
        return 0.0

    def epsilon_at(self, delta: float) -> float:
        """Return 0 if p is within δ, and infinity if not.

        Args:
            delta: above 0 and below 1.
        """
        return 0.0 if self.probability <= delta else math.inf


# All there are. Closed: a mechanism whose δ(ε) nobody has proved does not get into a receipt.
_KINDS: dict[str, type[Mechanism]] = {
    kind.kind: kind for kind in (Gaussian, Laplace, DiscreteLaplace, TruncatedLaplace, Disclosure)
}


def check_kind(name: str, mechanism: object) -> None:
    """Raise `InvalidInput` unless this is a mechanism of a known kind, not of a subclass of one."""
    if type(mechanism) not in _KINDS.values():
        _validate.reject_argument(name, mechanism, f"one of {[*_KINDS]}")


def check_mechanisms(
    mechanisms: Sequence[tuple[Mechanism, int]],
) -> list[tuple[Mechanism, int]]:
    """Return the pairs if they are mechanisms under one relation; equal ones are put together."""
    pairs = pairs_of("mechanisms", mechanisms, Mechanism)  # type: ignore[type-abstract]
    one_relation([mechanism.neighbours for mechanism, _ in pairs])
    counts: dict[Mechanism, int] = {}
    for mechanism, count in pairs:
        counts[mechanism] = counts.get(mechanism, 0) + count
    return list(counts.items())


def pairs_of(name: str, values: object, kind: type[Part]) -> list[tuple[Part, int]]:
    """Return (part, count) pairs, each checked, from any iterable of them."""
    try:
        pairs = [(part, count) for part, count in values]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        _validate.reject_argument(name, values, f"a list of ({kind.__name__}, count) pairs")
    for part, _ in pairs:
        _validate.instance(f"a part of {name}", part, kind)
    return [
        (part, _validate.whole("count", count, at_least=1, at_most=_MOST_TIMES))
        for part, count in pairs
    ]


def one_relation(relations: Sequence[Neighbours]) -> Neighbours:
    """Return the neighbouring relation that all share, or raise `InvalidInput`."""
    if not relations:
        raise InvalidInput("Expected at least one mechanism to compose, got none.")
    if len(set(relations)) > 1:
        names = " and ".join(sorted(set(relations)))
        raise InvalidInput(f"Expected one neighbouring relation, got {names}: they don't compose.")
    return relations[0]


def _field_names(kind: type[Mechanism]) -> list[str]:
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]  # all are dataclasses


def _lattice_delta(epsilons: Floats, spread: float, sensitivity: int, bound: int | None) -> Floats:
    """Return δ(ε), ε ≥ 0, for Z against Z + Δ, Pr[Z = z] ∝ q^|z| on |z| ≤ bound, q = e^(-spread/Δ).

    The loss at z falls with z, so the best test is z ≤ t for the last t whose loss exceeds ε:
    δ = Pr[Z ≤ t] - e^ε·Pr[Z ≤ t - Δ]. With 0 ≤ t + 1 ≤ Δ the two geometric sums add up to
    [(1 - q^(t+1)) + q(1 - e^ε·q^(Δ-t-1)) + (e^ε - 1)·q^(B+1)] / (1 + q - 2q^(B+1)),
    in which every bracket is an expm1.
    """
    inside = np.minimum(epsilons, spread)
    rate = spread / sensitivity
    below = np.clip(np.ceil(sensitivity * (1 - inside / spread) / 2), 0, sensitivity)  # t + 1
    edge = 0.0 if bound is None else math.exp(-rate * (bound + 1))
    weight = (
        -np.expm1(-rate * below)
        - math.exp(-rate) * np.expm1((inside - spread) + rate * below)
        + np.expm1(inside) * edge
    )
    # -2q^(B+1) + 1 + q, by expm1 so that a bound far below the scale keeps its digits.
    total = (
        1 + math.exp(-rate)
        if bound is None
        else (-math.expm1(-rate * (bound + 1)) - math.exp(-rate) * math.expm1(-rate * bound))
    )
    # At ε = spread and beyond, only the infinite losses are left; exactly, because a rounding error
    # here would be counted as one more infinite loss for each mechanism.
    least = edge * math.expm1(spread) / total
    return np.where(epsilons >= spread, least, np.maximum(weight / total, least))


def _set(mechanism: Mechanism, name: str, value: object) -> None:
    """Store a checked value; a numpy float32 kept as it came would poison all that follows."""
    object.__setattr__(mechanism, name, value)
