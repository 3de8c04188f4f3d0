"""Integer noise that is correlated over time: running sums of it grow slowly, and stay private.

Rows arrive in steps, and after each of them the sums so far are released. Noise that is fresh in
every step would add up. Here each step's noise takes back a part of what came before:

    z   fresh, from the Gaussian of the step
    w   = z - round(Σ_j B_j / 2^16)                 the noise of the step
    B_j = floor(a_j·B_j / 2^30) + W_j·w             buffers: integers, zero at first

With λ_j = a_j/2^30 and s_j = W_j/2^16 this is w_t = z_t - Σ_k m_k·w_(t-k), but for rounding, with
m_k = Σ_j s_j·λ_j^(k-1): a matrix mechanism whose strategy is the Toeplitz matrix of 1, m_1, m_2,
... ("buffered linear Toeplitz": McMahan, Pillutla, Steinke, Thakurta, 2024). A row of step t moves
the fresh draws behind the same releases by m_k times itself in step t + k: `Strategy.norm` is how
far in all. Everything here is public but for the buffers. `docs/privacy.md`, "Streams".
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput

# No stream has more steps: so the rounding of all of them together is bounded.
MOST_STEPS = 2**22

# Nor does anybody come more often: noise grows with it.
_MOST_PARTICIPATIONS = 2**16

_DECAY_BITS, _WEIGHT_BITS = 30, 16
_DECAY_UNIT, _WEIGHT_UNIT = 1 << _DECAY_BITS, 1 << _WEIGHT_BITS

_MOST_BUFFERS = 8

# More than the relative error of any sum of positive float64 numbers in this file.
_ROUNDING = 1 + 2.0**-30

# Buffers of so many standard deviations fit int64; beyond is e^-1800.
_DEVIATIONS = 60.0
_LARGEST = 2.0**62


@dataclass(frozen=True)
class Strategy:
    """How much of the noise of a step is taken back in later ones. Public constants.

    Attributes:
        decays: a_j, in units of 2^-30; each above 0 and below 1.
        weights: W_j, in units of 2^-16; each above 0, and together at most 1.
    """

    decays: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.decays) <= _MOST_BUFFERS or len(self.decays) != len(self.weights):
            raise InvalidInput(f"Expected 1 to {_MOST_BUFFERS} decays, and as many weights.")
        for decay in self.decays:
            _validate.whole("decays", decay, at_least=1, at_most=_DECAY_UNIT - 1)
        for weight in self.weights:
            _validate.whole("weights", weight, at_least=1, at_most=_WEIGHT_UNIT)
        if sum(self.weights) > _WEIGHT_UNIT:  # m_k would not fall from the first on
            raise InvalidInput("Expected weights to be at most 1 together.")

    @property
    def buffers(self) -> int:
        """How many arrays are kept from step to step."""
        return len(self.decays)

    @cached_property
    def _lambdas(self) -> Floats:
        return np.array(self.decays, dtype=np.float64) / _DECAY_UNIT

    @cached_property
    def _shares(self) -> Floats:
        return np.array(self.weights, dtype=np.float64) / _WEIGHT_UNIT

    def coefficients(self, count: int) -> Floats:
        """Return m_0 = 1, m_1, ..., shape (count,).

        Args:
            count: how many, at least one.
        """
        powers = self._lambdas ** np.arange(count - 1)[:, None]
        return np.concatenate([[1.0], powers @ self._shares])

    def correlation(self, distance: Integers) -> Floats:
        """Return G(d) = Σ_n m_n·m_(n+d), over infinitely many steps, rounded up.

        How much two contributions d steps apart have in common. It falls with d.

        Args:
            distance: d, at least 0, any shape.
        """
        # 1 - λ_i·λ_j from whole numbers: nothing cancels.
        gaps = [
            [(_DECAY_UNIT**2 - one * other) / _DECAY_UNIT**2 for other in self.decays]
            for one in self.decays
        ]
        later = self._shares @ (np.outer(np.ones(self.buffers), self._shares) / np.array(gaps))
        apart = np.asarray(distance)[..., None]
        powers = self._lambdas**apart
        first = np.where(
            apart == 0, 1 / self.buffers, powers / self._lambdas * self._shares
        )  # m_d, which is 1 at d = 0
        return np.asarray(np.sum(first + powers * later, axis=-1)) * _ROUNDING

    @cached_property
    def norm(self) -> float:
        """How far one contribution moves the fresh draws of all steps, in units of itself; up."""
        return math.sqrt(float(self.correlation(np.array(0)))) * _ROUNDING

    @cached_property
    def rounding(self) -> float:
        """ρ: in one step, an entry deviates from that by less than this, in lattice units."""
        rests = [_DECAY_UNIT / (_DECAY_UNIT - decay) for decay in self.decays]
        return (1 + sum(rests) / _WEIGHT_UNIT) * _ROUNDING

    def dynamics(self, rate: float = 1.0) -> tuple[Floats, Floats]:
        """Return F and q of x' = F·x + q·z, with x the buffers in units of W_j, and a running sum.

        Args:
            rate: what is left of the running sum after a step.
        """
        size = self.buffers
        step = np.zeros((size + 1, size + 1))
        step[:size, :size] = np.diag(self._lambdas) - self._shares
        step[size, :size] = -self._shares
        step[size, size] = rate
        return step, np.ones(size + 1)

    def check_room(self, sigma: float) -> None:
        """Raise `InvalidInput` if buffers might leave int64 with such noise.

        Args:
            sigma: standard deviation of a fresh draw, in lattice units.
        """
        _, spread = _after(*self.dynamics(0.0), MOST_STEPS)
        deviations = np.sqrt(np.diag(spread)[: self.buffers]) * np.array(self.weights)
        if sigma * float(np.max(deviations)) * _DEVIATIONS > _LARGEST:
            raise InvalidInput("Expected a larger epsilon: the noise of a stream has no room.")

    def begin(self, size: int) -> Integers:
        """Return the buffers of a stream that begins, shape (buffers, size).

        Args:
            size: how many numbers are released in a step.
        """
        return np.zeros((self.buffers, size), dtype=np.int64)

    def follow(self, buffers: Integers, fresh: Integers) -> tuple[Integers, Integers]:
        """Return the noise of a step, and the buffers after it. Integers, exactly.

        Args:
            buffers: those of the step before, shape (buffers, size). PRIVATE: with what was
                released they tell exact sums.
            fresh: drawn for this step, shape (size,).
        """
        taken = np.sum(buffers, axis=0)
        taken += _WEIGHT_UNIT >> 1
        taken >>= _WEIGHT_BITS
        noise = fresh - taken
        decays = np.array(self.decays, dtype=np.int64)[:, None]
        weights = np.array(self.weights, dtype=np.int64)[:, None]
        # floor(a·B / 2^30) without leaving int64: high and low bits apart.
        following = (buffers & (_DECAY_UNIT - 1)) * decays
        following >>= _DECAY_BITS
        following += (buffers >> _DECAY_BITS) * decays
        following += weights * noise
        return noise, following

    def parameters(self) -> dict[str, list[int]]:
        """Return the numbers that make the same strategy again."""
        return {"decays": list(self.decays), "weights": list(self.weights)}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any]) -> "Strategy":
        """Return the strategy with these `parameters`."""
        return cls(tuple(parameters["decays"]), tuple(parameters["weights"]))


def _after(step: Floats, push: Floats, steps: int) -> tuple[Floats, Floats]:
    """Return F^n and Σ_(k<n) F^k·q·qᵀ·F^kᵀ: the covariance after n steps. By doubling."""
    size = len(step)
    power, spread = np.eye(size), np.zeros((size, size))
    doubled, doubled_spread = step, np.outer(push, push)
    while steps:
        if steps & 1:
            spread = spread + power @ doubled_spread @ power.T
            power = power @ doubled
        doubled_spread = doubled_spread + doubled @ doubled_spread @ doubled.T
        doubled = doubled @ doubled
        steps >>= 1
    return power, spread


class ReadingKind(StrEnum):
    """Which steps a state of a stream is about."""

    ALL = "all"
    WINDOW = "window"
    DECAY = "decay"


@dataclass(frozen=True)
class Reading:
    """Which steps a state of a stream is about, and with which weights.

    Attributes:
        kind: all steps so far, the last ones, or all with weights that halve.
        length: of a window, in steps; or a half-life, in steps; 0 for all.
    """

    kind: ReadingKind = ReadingKind.ALL
    length: float = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _validate.choice("reading", self.kind, ReadingKind))
        if self.kind is ReadingKind.WINDOW:
            whole = _validate.whole("window", self.length, at_least=1, at_most=MOST_STEPS)
            object.__setattr__(self, "length", whole)
        elif self.kind is ReadingKind.DECAY:
            life = _validate.real("half_life", self.length, at_least=0.1, at_most=MOST_STEPS)
            object.__setattr__(self, "length", life)
        elif self.length != 0:
            _validate.reject("length", self.length, "0 for all steps")

    @property
    def rate_units(self) -> int:
        """What is left of a step in the next one, in units of 2^-30."""
        if self.kind is not ReadingKind.DECAY:
            return _DECAY_UNIT
        return round(_DECAY_UNIT * math.exp2(-1 / self.length))

    def decayed(self, sums: Integers) -> Integers:
        """Return sums one step later, before what that step adds: rounded down, exactly.

        Args:
            sums: in lattice units.
        """
        high, low = sums >> _DECAY_BITS, sums & (_DECAY_UNIT - 1)
        return np.asarray(high * self.rate_units + ((low * self.rate_units) >> _DECAY_BITS))

    def weight(self, totals: Sequence[int]) -> int:
        """Return how many rows there are in a decaying sum, each with its weight.

        Args:
            totals: rows so far, after each step.
        """
        rows = np.diff(np.array([0, *totals], dtype=np.float64))
        kept = (self.rate_units / _DECAY_UNIT) ** np.arange(len(rows))[::-1]
        return round(float(rows @ kept))

    def steps(self, step: int) -> float:
        """Return how many steps there are in it, each with its weight, after so many.

        Args:
            step: how many there have been.
        """
        if self.kind is ReadingKind.WINDOW:
            return min(step, self.length)
        if self.kind is ReadingKind.DECAY:
            rate = self.rate_units / _DECAY_UNIT
            return (1 - rate**step) / (1 - rate)
        return step

    def variance(self, strategy: Strategy, step: int) -> float:
        """Return the variance of the noise in it, in units of that of a fresh draw.

        Σ g_k² with g the coefficients of fresh draws in what is read. Rounding is left out: a
        lattice unit or so, of noise that is millions of them.

        Args:
            strategy: of the stream.
            step: how many steps there have been, at least one.
        """
        rate = self.rate_units / _DECAY_UNIT
        dynamics = strategy.dynamics(rate)
        if self.kind is not ReadingKind.WINDOW or self.length >= step:
            return float(_after(*dynamics, step)[1][-1, -1])
        length = int(self.length)
        power, within = _after(*dynamics, length)
        _, before = _after(*dynamics, step - length)
        # What the buffers at the beginning of the window do to the noise within it.
        carried = power[-1, :-1]
        return float(within[-1, -1] + carried @ before[:-1, :-1] @ carried)

    def __str__(self) -> str:
        if self.kind is ReadingKind.WINDOW:
            return f"the last {self.length:,} steps" if self.length > 1 else "the last step"
        if self.kind is ReadingKind.DECAY:
            return f"all steps, each with half of its weight after {self.length:g} more"
        return "all steps so far"

    def parameters(self) -> dict[str, object]:
        """Return what makes the same reading again."""
        return {"kind": str(self.kind), "length": self.length}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any]) -> "Reading":
        """Return the reading with these `parameters`."""
        return cls(parameters["kind"], parameters["length"])


@dataclass(frozen=True)
class Participation:
    """In how many steps a unit may have rows: what the guarantee of a stream is for.

    Attributes:
        steps: so many at the most; None for any number, if all its rows together are counted
            (`lifetime_rows`).
        separation: one at least so many steps after the other.
    """

    steps: int | None = 1
    separation: int = 1

    def __post_init__(self) -> None:
        limits = {"steps": _MOST_PARTICIPATIONS, "separation": MOST_STEPS}
        for name, most in limits.items():
            if getattr(self, name) is not None:
                given = _validate.whole(name, getattr(self, name), at_least=1, at_most=most)
                object.__setattr__(self, name, given)
        if self.steps is None and self.separation != 1:
            _validate.reject("separation", self.separation, "left out, with lifetime_rows")

    def sensitivity(self, strategy: Strategy) -> float:
        """Return how far a unit moves all fresh draws, in units of what it adds in one step.

        Contributions i and j are at least |i - j|·b steps apart and G falls, so the square is at
        most Σ_(i,j<k) G(|i - j|·b). What is counted over a lifetime is at most `norm` times that,
        by the triangle inequality, however it is divided.

        Args:
            strategy: of the stream.
        """
        if self.steps is None or self.steps == 1:
            return strategy.norm
        apart = np.arange(1, self.steps)
        pairs = 2 * (self.steps - apart) * strategy.correlation(apart * self.separation)
        own = self.steps * float(strategy.correlation(np.array(0)))
        return math.sqrt(own + float(np.sum(pairs))) * _ROUNDING

    def __str__(self) -> str:
        if self.steps is None:
            return "in any number of steps"
        if self.steps == 1:
            return "in one step"
        apart = f", at least {self.separation:,} steps apart" if self.separation > 1 else ""
        return f"in at most {self.steps:,} steps{apart}"

    def parameters(self) -> dict[str, int | None]:
        """Return what makes the same value again."""
        return {"steps": self.steps, "separation": self.separation}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any]) -> "Participation":
        """Return the value with these `parameters`."""
        return cls(parameters["steps"], parameters["separation"])


def chosen(reading: Reading, participation: Participation, *, steps: int) -> Strategy:
    """Return the strategy of the shipped table with the least noise. From public numbers only.

    Args:
        reading: what the stream is tuned for.
        participation: in how many steps a unit may have rows.
        steps: after so many; windows and decays have about the same noise ever after.
    """
    steps = _validate.whole("steps", steps, at_least=1, at_most=MOST_STEPS)
    # Windows and decays go on for ever: judged where their noise does not change any more.
    at = steps if reading.kind is ReadingKind.ALL else MOST_STEPS

    def noise(strategy: Strategy) -> float:
        return participation.sensitivity(strategy) ** 2 * reading.variance(strategy, at)

    return min(_table(), key=noise)


def _table() -> tuple[Strategy, ...]:
    """Return the shipped strategies (`benchmarks/stream_strategies.py` makes them)."""
    text = resources.files("discreet.noise").joinpath("strategies.json").read_text("utf-8")
    return tuple(
        Strategy(tuple(each["a"]), tuple(each["W"])) for each in json.loads(text)["strategies"]
    )


@dataclass(frozen=True)
class Continual:
    """What makes the releases of a stream one mechanism: how noise follows, and who may come when.

    Attributes:
        strategy: of the noise.
        participation: of a unit.
        enforced: whether rows beyond that are left out, by the ids of records.
    """

    strategy: Strategy
    participation: Participation
    enforced: bool = False

    def __post_init__(self) -> None:
        _validate.instance("enforced", self.enforced, bool)
        if self.participation.steps is None and not self.enforced:
            raise InvalidInput("Expected the ids of records where their rows are counted.")

    @cached_property
    def sensitivity(self) -> float:
        """How far a unit moves all fresh draws, in units of what it adds in a step."""
        return self.participation.sensitivity(self.strategy)

    def parameters(self) -> dict[str, object]:
        """Return what makes the same value again."""
        return {
            "strategy": self.strategy.parameters(),
            "participation": self.participation.parameters(),
            "enforced": self.enforced,
        }

    @classmethod
    def restore(cls, parameters: Mapping[str, Any]) -> "Continual":
        """Return the value with these `parameters`."""
        return cls(
            Strategy.restore(parameters["strategy"]),
            Participation.restore(parameters["participation"]),
            parameters["enforced"],
        )


@dataclass(frozen=True)
class StateNoise:
    """The noise of one state of a stream. Public.

    Attributes:
        continual: strategy and participation.
        stretch: σ of a fresh draw over that of one single release (`Settings.stretch`).
        step: how many steps there have been.
        reading: which of them the state is about.
    """

    continual: Continual
    stretch: float
    step: int
    reading: Reading

    def __post_init__(self) -> None:
        _validate.whole("step", self.step, at_least=1, at_most=MOST_STEPS)
        _validate.real("stretch", self.stretch, at_least=self.continual.sensitivity)

    @cached_property
    def factor(self) -> float:
        """The noise of this state over that of one single release of the same rows."""
        return self.stretch * math.sqrt(self.reading.variance(self.continual.strategy, self.step))

    def parameters(self) -> dict[str, object]:
        """Return what makes the same value again."""
        return {
            **self.continual.parameters(),
            "stretch": self.stretch,
            "step": self.step,
            "reading": self.reading.parameters(),
        }

    @classmethod
    def restore(cls, parameters: Mapping[str, Any]) -> "StateNoise":
        """Return the value with these `parameters`."""
        return cls(
            Continual.restore(parameters),
            parameters["stretch"],
            parameters["step"],
            Reading.restore(parameters["reading"]),
        )
