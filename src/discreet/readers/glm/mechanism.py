"""Regression in rounds as a mechanism: noisy sums of cut residuals times features.

W → exact integer sums → noise → the next W. One receipt for all rounds: `docs/privacy.md`,
"Numbers in rounds".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.readers.glm.aiming import PASSES, aimed, counts_of, share_to_aim
from discreet.readers.glm.answers import LOGISTIC_PACE, SQUARED_PACE, GeneralizedLinear
from discreet.readers.glm.layout import GlmRounds, Loss
from discreet.readers.least_squares.layout import Request, check_features, choose_features
from discreet.readers.rounds.cached import MEMORY_LIMIT, with_cached_features
from discreet.readers.rounds.descent import (
    MOMENTS,
    MOST_FEATURES,
    ROUNDS,
    check_rounds,
    descend,
    whole,
)
from discreet.readers.rounds.finding import check_finding, share_to_find, with_found
from discreet.readers.rounds.layout import STATE_BITS
from discreet.sums.door import Door
from discreet.sums.mechanism import KeyOptions, Mechanism
from discreet.sums.release import Released
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution
from discreet.sums.source import Form, RowSource

# The longest residual of one number, in units of its reach; and of one label.
_CLIP_OF_NUMBERS, _CLIP_OF_LABELS = 0.3, 0.28


@dataclass(frozen=True, kw_only=True)
class GlmOptions(KeyOptions):
    """The options of a regression in rounds, checked.

    Attributes:
        loss: "squared", for numbers within ±1 (others are clipped), or "logistic", for labels 0 and
            1, any number of them at once.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂, and on queries.
        features: a name, or a map from `discreet.features`.
        rows_hint: a public, rounded number of rows.
        public_rows: rows that look like the private keys, and that anybody may see.
        group_rows: a record's influence is scaled down to that of so many rows.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        leaks: names of what was taken from the private rows.
        aim: whether a share of the budget finds out where numbers are in ±1.
        memory_limit: bytes of features that may be kept between rounds.
    """

    loss: str = Loss.SQUARED
    features: str | SymmetricMap = registry.AUTO
    aim: bool = True
    memory_limit: float = MEMORY_LIMIT

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_one_layer("a regression", "key_norm", "public_rows")
        check_features(self.features)
        if self.loss not in set(Loss):
            _validate.reject_argument("loss", self.loss, f"one of {[str(each) for each in Loss]}")
        limit = _validate.real("memory_limit", self.memory_limit, at_least=0)
        self._keep({"memory_limit": limit, "loss": str(self.loss)})


class GlmMechanism(Mechanism[GlmOptions, GlmRounds, GeneralizedLinear]):
    """Σ (prediction - value) ⊗ φ over all rows, again and again."""

    name = "glm"
    options = GlmOptions
    answers = GeneralizedLinear
    reads_once = False

    def source(self, keys: Array, values: Array, groups: Array, options: GlmOptions) -> RowSource:  # noqa: ARG002
        """Return the rows of a regression, which are read several times.

        Args:
            keys: arrays, or chunks.
            values: numbers or labels, shape (n, k).
            groups: the record of each row; None if each row is its own.
            options: public.
        """
        return RowSource.of(keys, values, groups, Form(passes=True))

    def resolve(
        self, shapes: Sequence[Shape], options: GlmOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[GlmRounds]:
        """Return the settings of a regression: features, rounds, and shares of the budget.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """
        [shape] = shapes
        if shape.heads:
            raise InvalidInput("Expected keys of shape (n, d): there are no heads in rounds.")
        multiplier = crude_multiplier(options.privacy, 1, options.group_rows)
        request = Request(
            features=options.features,
            dim=shape.key_dim,
            key_norm=options.number("key_norm", 0, 1),
            rows=options.rows_hint,
            multiplier=multiplier,
            public_rows=options.public_rows_of(0, 1, dim=shape.key_dim),
        )
        kernel = choose_features(request)
        if kernel.features > MOST_FEATURES:
            wanted = f"at most {MOST_FEATURES:,} of them"
            _validate.reject("features", f"{kernel.features:,}", wanted)
        squared = options.loss == Loss.SQUARED
        clip = _CLIP_OF_NUMBERS if squared else _CLIP_OF_LABELS
        layout = GlmRounds(
            kernel=kernel,
            outputs=shape.value_dim,
            loss=options.loss,
            clip=clip * math.sqrt(shape.value_dim),
            resolution=value_resolution(
                multiplier * math.sqrt(ROUNDS), rows_hint=options.rows_hint
            ),
            rounds=ROUNDS,
            moments=MOMENTS,
            finding=share_to_find(kernel, rows=options.rows_hint, multiplier=multiplier),
            aiming=(
                share_to_aim(rows=options.rows_hint, multiplier=multiplier)
                if squared and options.aim
                else 0.0
            ),
        )
        settings = options.settings(layout, unit)
        # What cannot be drawn is refused here, before a row is read.
        check_rounds(settings, layout)
        check_finding(settings, layout)
        if layout.aiming:
            settings.part(counts_of(layout), layout.aiming / PASSES)
        return settings

    def passes_of(self, settings: Settings[GlmRounds]) -> int:
        """All rounds, and what has to be found before.

        Args:
            settings: the public settings.
        """
        [layout] = settings.layouts
        return layout.rounds + bool(layout.finding) + PASSES * bool(layout.aiming)

    def run(
        self, rows: RowSource, door: Door[GlmRounds], options: GlmOptions
    ) -> list[Released[GlmRounds]]:
        """Return the coefficients after all rounds, and the second moments.

        Args:
            rows: private; to be handed to the door.
            door: which adds up, and lets sums out with noise.
            options: public.
        """
        [layout] = door.settings.layouts
        layout = aimed(rows, door, with_found(rows, door, layout))
        rows = with_cached_features(rows, layout.kernel, options.memory_limit)
        pace = SQUARED_PACE if layout.loss == Loss.SQUARED else LOGISTIC_PACE
        descended = descend(rows, door, layout, pace=pace)
        figures = np.ldexp([[descended.moment_noise]], STATE_BITS)
        parts = [_state(descended.weights), descended.kept, whole(figures)]
        return [door.released(layout, parts)]


GLM = GlmMechanism()


def _state(weights: Floats) -> np.ndarray:
    return whole(np.ldexp(weights.T[None], STATE_BITS))
