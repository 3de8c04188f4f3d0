"""What a row contributes to one round of regression: its cut residual times its features.

For numbers the loss is squared, and a residual that is cut makes it Huber's: rows that are far off
count for their direction only. For several labels at once it is logistic, for each label by itself.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.features import registry
from discreet.noise.lattice import clip_integer_rows
from discreet.readers.rounds.layout import RoundLayout, RoundsLayout
from discreet.readers.softmax.layout import probabilities

# With so many outputs, squares of residuals within ±4 add up to less than 2^62 on the finest
# lattice.
MOST_OUTPUTS = 2**8
_FAR = 4.0

_NAMES = ("outputs", "loss", "clip", "resolution", "rounds", "moments", "finding", "aiming")


class Loss(StrEnum):
    """What is made small."""

    SQUARED = "squared"
    LOGISTIC = "logistic"


@dataclass(frozen=True, kw_only=True)
class GlmRound(RoundLayout):
    """Map, bounds and lattice of one round, with W and where targets are.

    Attributes:
        outputs: k, how many numbers or labels a row has.
        loss: what is made small.
        centre: of each output, in units of values; what coefficients predict is relative to it.
        reach: how far from the centre an output is taken seriously, likewise.
    """

    outputs: int
    loss: str
    centre: tuple[float, ...] = ()
    reach: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        count = _validate.whole("outputs", self.outputs, at_least=1, at_most=MOST_OUTPUTS)
        set_(self, "outputs", count)
        if self.loss not in set(Loss):
            _validate.reject_argument("loss", self.loss, f"one of {[str(each) for each in Loss]}")
        for name, default, limits in (
            ("centre", 0.0, {"at_least": -1, "at_most": 1}),
            ("reach", 1.0, {"at_least": 1e-3, "at_most": 1}),
        ):
            given = getattr(self, name) or (default,) * count
            if len(given) != count:
                _validate.reject(name, "...", "one for each output")
            set_(self, name, tuple(_validate.real(name, each, **limits) for each in given))
        super().__post_init__()

    @property
    def _longest_clip(self) -> float:
        """Of outputs that are all far off."""
        return 2.0 * math.sqrt(self.outputs)

    @property
    def value_width(self) -> int:
        """K."""
        return self.outputs

    @property
    def columns(self) -> int:
        """K."""
        return self.outputs

    def residuals(self, scores: Floats, unit: float, values: Floats) -> Integers:
        """Return q of some rows, shape (m, k): what is predicted less what is there, cut.

        Row by row, to the bit: sums, products and quotients of single numbers, and a table.

        Args:
            scores: shape (m, k).
            unit: so many of their units are one.
            values: numbers within ±1, or labels 0 and 1, shape (m, k).
        """
        if self.loss == Loss.SQUARED:
            there = (np.clip(values, -1.0, 1.0) - self.centre) / np.asarray(self.reach)
            off = np.clip(scores / unit, -_FAR, _FAR) - np.clip(there, -1.0, 1.0)
        else:
            pairs = np.stack([scores, np.zeros_like(scores)], axis=-1).reshape(-1, 2)
            likely = probabilities(pairs, unit=unit)[:, 0].reshape(scores.shape)
            off = likely - np.clip(values, 0.0, 1.0)
        rounded = np.rint(np.clip(off, -_FAR, _FAR) * 2.0**self.lattice.bits).astype(np.int64)
        return clip_integer_rows(rounded, radius=self.radius)


@dataclass(frozen=True, kw_only=True)
class GlmRounds(RoundsLayout, GlmRound):
    """What all rounds of one regression share: all that is fixed before a row is read.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: (), for one head.
        outputs: k.
        loss: what is made small.
        clip: the bound on ‖q‖; public, enforced by cutting.
        resolution: `clip` is at most 2^resolution lattice units.
        rounds: T, how many there are.
        moments: of the whole squared budget, what second moments have.
        finding: of the whole squared budget, what finding edges and categories has.
        aiming: of the whole squared budget, what finding out where targets are has.
    """

    noun: ClassVar[tuple[str, str]] = ("regression", "regressions")
    round_type: ClassVar[type[RoundLayout]] = GlmRound
    of_any_round: ClassVar[tuple[str, ...]] = (
        *RoundsLayout.of_any_round,
        "outputs",
        "loss",
        "centre",
        "reach",
    )

    aiming: float = 0.0

    def __post_init__(self) -> None:
        if self.aiming != 0:
            self._check_share("aiming")
        super().__post_init__()

    @property
    def besides(self) -> float:
        """The share of the squared budget that is not for q ⊗ a."""
        return super().besides + self.aiming

    @property
    def part_names(self) -> tuple[str, ...]:
        """Coefficients, second moments, and the noise of those."""
        return ("state", "moments", "figures")

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """(1, k, r), (1, r·(r + 1)/2) and (1, 1)."""
        return (self.shape, self.kept_moments, (1, 1))

    @property
    def part_weights(self) -> tuple[float, ...]:
        """One each: all are computed from noisy sums, and need no noise of their own."""
        return (1.0, 1.0, 1.0)

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        own = {name: getattr(self, name) for name in _NAMES}
        aimed = {"centre": list(self.centre), "reach": list(self.reach)}
        return {**super().parameters(), **own, **aimed}

    @classmethod
    def restore(
        cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> "GlmRounds":
        """Return the layout with these `parameters`, and these arrays of its map.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        return cls(
            kernel=registry.FEATURES.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            centre=tuple(parameters["centre"]),
            reach=tuple(parameters["reach"]),
            **{name: parameters[name] for name in _NAMES},
        )
