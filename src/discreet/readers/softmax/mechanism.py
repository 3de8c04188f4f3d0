"""Softmax regression as a mechanism: noisy gradients in rounds, then a calibration of the logits.

W → exact integer sums → noise → the next W. One receipt for all rounds: `docs/privacy.md`,
"Rounds".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Required, TypedDict

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats, Integers
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import UnitLinear
from discreet.readers.least_squares.layout import (
    WIDE,
    Request,
    check_features,
    choose_features,
    waves_for,
)
from discreet.readers.rounds.cached import MEMORY_LIMIT, with_cached_features
from discreet.readers.rounds.descent import (
    MOMENTS,
    MOST_FEATURES,
    ROUNDS,
    Descended,
    Start,
    check_rounds,
    descend,
    deviation,
    from_zero,
    noise_of_round,
    rows_counted,
    whole,
)
from discreet.readers.rounds.finding import check_finding, share_to_find, with_found
from discreet.readers.rounds.layout import STATE_BITS, Weights
from discreet.readers.softmax.answers import PACE, TABLE_PACE, SoftmaxRegression
from discreet.readers.softmax.layout import (
    MOST_CLASSES,
    Calibration,
    Judged,
    Round,
    Rounds,
    Seen,
    confidence_and_curvature,
    confidence_and_label,
    factor,
    label_and_probabilities,
    log_odds,
    shifts,
    split,
)
from discreet.readers.softmax.rows import Labels, check_classes, labelled
from discreet.sums.door import Door
from discreet.sums.forecast import Forecast
from discreet.sums.mechanism import KeyOptions, Mechanism
from discreet.sums.release import Released
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution
from discreet.sums.source import RowSource


class PlanOptions(TypedDict, total=False):
    """The options by name, for type checkers; `SoftmaxOptions` has defaults and meaning."""

    epsilon: Required[float]
    delta: Required[float]
    neighbours: str
    key_norm: float
    features: str | SymmetricMap
    public_rows: Array
    group_rows: float
    memory_limit: float


@dataclass(frozen=True, kw_only=True)
class SoftmaxOptions(KeyOptions):
    """The options of a classifier, checked.

    Attributes:
        classes: all labels that there may be; public, numbers or texts. A label beyond them is
            refused.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂, and on queries. Choose it without looking at the data.
        features: "auto", "linear" (straight lines), "unit_linear" (straight lines between classes),
            "unit_fourier" (curves of any shape: random Fourier features), "linear_and_fourier"
            (both), "unit_landmarks" (like public rows), or a map from `discreet.features`. Files
            and older code call the last four "rays", "waves", "lines_and_waves" and
            "near_landmarks", which still work.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. "auto" takes as many random Fourier features as so many
            rows deserve.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d).
            They become part of the release.
        group_rows: a record's influence is scaled down to that of so many rows.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        leaks: names of what was taken from the private rows, which the guarantee does not cover.
            `discreet.sklearn` gives them.
        memory_limit: bytes of features that may be kept between rounds; beyond it they are
            computed again in each round. The release is the same, to the bit.
    """

    classes: Any = field(repr=False)
    features: str | SymmetricMap = registry.AUTO
    memory_limit: float = MEMORY_LIMIT

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_one_layer("a classifier", "key_norm", "public_rows")
        check_features(self.features)
        limit = _validate.real("memory_limit", self.memory_limit, at_least=0)
        # Read once: in order, and as a file gives them back.
        classes = tuple(Labels.of(self.classes, distinct=True).classes.tolist())
        check_classes(classes)
        self._keep({"memory_limit": limit, "classes": classes})


# Of the squared budget, for the calibration.
_CALIBRATION = 0.03

# C: a smaller one favours the more frequent of two classes, a larger one lets noise in.
_CLIP_OF_TWO, _CLIP = 0.4, 0.2

# How much second moments curve the loss, on the mean over rows of most tables.
_CURVATURE = 0.06

# So many random Fourier features, where nobody says how many rows there are.
WAVES = 512

# How much columns count beside the constant: classes need nothing but the side of a plane.
STRETCH = 8.0

# Where keys are spread over the ball of their bound.
_SCALE = 3.0


class SoftmaxMechanism(Mechanism[SoftmaxOptions, Rounds, SoftmaxRegression]):
    """Σ (p - y) ⊗ φ over all rows, again and again: what a `SoftmaxRegression` learns from."""

    name = "softmax"
    options = SoftmaxOptions
    answers = SoftmaxRegression
    reads_once = False

    def source(
        self, keys: Array, values: Array, groups: Array, options: SoftmaxOptions
    ) -> RowSource:
        """Return the rows of a classifier: keys, and labels for values.

        Args:
            keys: arrays, or chunks.
            values: what comes with the keys.
            groups: the record of each row; None if each row is its own.
            options: public.
        """
        return RowSource.of(keys, values, groups, labelled(Labels(np.asarray(options.classes))))

    def resolve(
        self, shapes: Sequence[Shape], options: SoftmaxOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[Rounds]:
        """Return the settings of a classifier: features, rounds, and shares of the budget.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """
        [shape] = shapes
        multiplier = crude_multiplier(options.privacy, 1, options.group_rows)
        request = Request(
            features=options.features,
            dim=shape.key_dim,
            key_norm=options.number("key_norm", 0, 1),
            rows=options.rows_hint,
            multiplier=multiplier,
            public_rows=options.public_rows_of(0, 1, dim=shape.key_dim),
        )
        classes = options.classes
        if len(classes) > MOST_CLASSES:
            _validate.reject("classes", f"{len(classes):,}", f"at most {MOST_CLASSES:,}")
        kernel = choose(request)
        if kernel.features > MOST_FEATURES:
            wanted = f"at most {MOST_FEATURES:,} of them"
            _validate.reject("features", f"{kernel.features:,}", wanted)
        resolution = value_resolution(multiplier * math.sqrt(ROUNDS), rows_hint=options.rows_hint)
        layout = Rounds(
            kernel=kernel,
            classes=classes,
            clip=_CLIP_OF_TWO if len(classes) == 2 else _CLIP,
            resolution=resolution,
            rounds=ROUNDS,
            moments=MOMENTS,
            judging=_CALIBRATION,
            finding=share_to_find(kernel, rows=options.rows_hint, multiplier=multiplier),
        )
        settings = options.settings(layout, unit)
        # What cannot be drawn is refused here, before a row is read.
        check_rounds(settings, layout)
        check_finding(settings, layout)
        settings.part(Calibration.of(layout), layout.of_confidence)
        if layout.keeps_more:
            settings.part(Calibration.frequency(layout), layout.of_frequency)
        return settings

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `planning.plan`)
        """Return what a release would be like, from public numbers only (`planning.plan`).

        Args:
            **given: the arguments of this reader's `plan`.
        """
        from discreet.readers.softmax.planning import plan

        return plan(**given)

    def passes_of(self, settings: Settings[Rounds]) -> int:
        """All rounds, and the calibration; and what has to be found before.

        Args:
            settings: the public settings.
        """
        [layout] = settings.layouts
        return layout.rounds + (2 if layout.keeps_more else 1) + bool(layout.finding)

    def run(
        self, rows: RowSource, door: Door[Rounds], options: SoftmaxOptions
    ) -> list[Released[Rounds]]:
        """Return the coefficients after all rounds, and about how many rows each class has.

        Args:
            rows: private; to be handed to the door.
            door: which adds up, and lets sums out with noise.
            options: public.
        """
        [layout] = door.settings.layouts
        layout = with_found(rows, door, layout)
        rows = with_cached_features(rows, layout.kernel, options.memory_limit)
        start = _start(door.settings, layout) if layout.keeps_more else from_zero
        pace = TABLE_PACE if layout.keeps_more else PACE
        descended = descend(rows, door, layout, pace=pace, start=start)
        return [door.released(layout, _calibrated(rows, door, layout, descended))]


SOFTMAX = SoftmaxMechanism()


def choose(request: Request) -> SymmetricMap:
    """Return the features that were asked for, or those that public numbers recommend.

    Planes between wide keys, which were made to be told apart by planes; curves between others.
    """
    if request.features != registry.AUTO:
        return choose_features(request)
    if request.public_rows is not None:
        return choose_features(replace(request, features=UnitLandmarks.kind))
    if request.dim >= WIDE:
        return UnitLinear(request.dim, key_norm=request.key_norm, stretch=STRETCH)
    norm = request.key_norm
    return UnitFourier(
        request.dim,
        frequencies=waves_count(request.rows, request.multiplier),
        scale=_SCALE / norm**2,
        key_norm=norm,
        query_norm=norm,
    )


def waves_count(rows: int | None, multiplier: float) -> int:
    """Return how many random Fourier features so many rows deserve under so much noise."""
    return WAVES if rows is None else waves_for(rows, multiplier)


def _start(settings: Settings[Rounds], layout: Rounds) -> Start:
    """Return where to begin: with the logarithms of how frequent classes are."""
    constant = float(layout.kernel.constant or 1.0)
    noise = noise_of_round(settings, layout) * layout.real_unit / constant

    def begin(sums: Floats, moments: Floats, deviation: float) -> tuple[Floats, Floats]:
        rows = rows_counted(float(moments[0, 0]), deviation, constant**2, settings.rows_hint)
        odds = log_odds(sums[0] / constant, layout, rows=rows, noise=noise)
        weights = np.zeros_like(sums)
        weights[0] = odds / constant
        return weights, sums * _evenness(odds)

    return begin


def _evenness(odds: Floats) -> float:
    """Return how even classes are: 1 if all are as frequent, 0 if all rows are of one.

    The first round's sums are those at W = 0. Where classes are uneven they mostly say so, which
    the start has said already.
    """
    shares = np.exp(odds - odds.max())
    shares /= shares.sum()
    return float((1 - shares @ shares) / (1 - 1 / len(shares)))


def _calibrated(
    rows: RowSource, door: Door[Rounds], layout: Rounds, descended: Descended
) -> list[Integers]:
    """Return the parts of the release: coefficients, as sure as they may be, and totals."""
    weights = descended.weights
    seen = confidence_and_curvature if layout.keeps_more else confidence_and_label
    sums, noise = _judged(
        rows,
        door,
        layout,
        weights,
        seen=seen,
        this=Calibration.of(layout),
        share=layout.of_confidence,
    )
    differences, beside = split(sums)
    scale = factor(differences, noise)
    weights = scale * weights
    if not layout.keeps_more:
        return [_state(weights), whole(beside[None])]
    constant = float(layout.kernel.constant or 1.0)
    count = rows_counted(
        float(descended.moments[0, 0]),
        descended.moment_noise,
        constant**2,
        door.settings.rows_hint,
    )
    curved = _curvature(float(beside[0]), noise, count)
    sums, noise = _judged(
        rows,
        door,
        layout,
        weights,
        seen=label_and_probabilities,
        this=Calibration.frequency(layout),
        share=layout.of_frequency,
    )
    totals, expected = np.split(sums, 2)
    weights[0] += shifts(totals, expected, noise) / constant
    figures = np.ldexp([[scale, descended.moment_noise, curved]], STATE_BITS)
    return [_state(weights), whole(totals[None]), descended.kept, whole(figures)]


def _curvature(curved: float, noise: float, rows: float) -> float:
    """Return how much the loss is curved, on the mean over rows; where noise hides it, as usual."""
    usual = _CURVATURE * rows
    weight = usual**2 / (usual**2 + noise**2)
    return max(weight * curved + (1 - weight) * usual, _CURVATURE / 50 * rows) / rows


def _judged(
    rows: RowSource,
    door: Door[Rounds],
    layout: Rounds,
    weights: Floats,
    *,
    seen: Seen,
    this: Calibration,
    share: float,
) -> tuple[Floats, float]:
    """Return noisy sums of what a classifier makes of rows, and their standard deviation."""
    last = layout.at(Weights.of(weights))
    assert isinstance(last, Round)  # noqa: S101 (for the type checker)
    [sums] = door.sum(
        this,
        rows,
        share=share,
        view=lambda table: Judged.of(table, last, seen, this.value_dim),
    )
    # The first feature is the constant; the last column counts rows.
    [law] = door.settings.part(this, share).laws(this)
    return np.asarray(sums[0, :-1, 0] * this.real_unit), deviation(law) * this.real_unit


def _state(weights: Floats) -> Integers:
    return whole(np.ldexp(weights.T[None], STATE_BITS))
