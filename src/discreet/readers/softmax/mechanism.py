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
from discreet.noise import RoundedGaussian
from discreet.readers.least_squares.layout import (
    WIDE,
    Request,
    check_features,
    choose_features,
    waves_for,
)
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.layout import (
    MOST_CLASSES,
    STATE_BITS,
    Calibration,
    Confidence,
    Round,
    Rounds,
    Weights,
    factor,
    split,
)
from discreet.readers.softmax.rows import Labels, check_classes, labelled, with_cached_features
from discreet.sums.door import Door
from discreet.sums.forecast import Forecast
from discreet.sums.mechanism import KeyOptions, Mechanism
from discreet.sums.moments import drawable
from discreet.sums.release import Released
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution
from discreet.sums.source import RowSource

# Bytes of features that are kept between rounds.
MEMORY_LIMIT = 2e9


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


# κ: half as much, or twice, costs little. More of it where features are few, below 256: with fewer
# directions to be lost in, a longer way is worth its noise.
_NOISE_OF_LOGITS, _MANY_FEATURES = 1.3, 256

# How much of the last direction is kept.
_MOMENTUM = 0.5

# λ, in units of one over the step: beyond it a step would overshoot.
_LONGEST = 32.0

# T: from 10 to 48 it hardly matters, and each is a pass over all rows.
_ROUNDS = 16

# Of the squared budget, for second moments: they only have to tell which directions are long.
_MOMENTS = 0.03

# Second moments are a square of these, and their eigenvectors take the cube in time.
_MOST_FEATURES = 8192

# Of the squared budget, for the calibration.
_CALIBRATION = 0.03

# C: a smaller one favours the more frequent of two classes, a larger one lets noise in.
_CLIP_OF_TWO, _CLIP = 0.4, 0.2

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
        if kernel.features > _MOST_FEATURES:
            wanted = f"at most {_MOST_FEATURES:,} of them"
            _validate.reject("features", f"{kernel.features:,}", wanted)
        resolution = value_resolution(multiplier * math.sqrt(_ROUNDS), rows_hint=options.rows_hint)
        layout = Rounds(
            kernel=kernel,
            classes=classes,
            clip=_CLIP_OF_TWO if len(classes) == 2 else _CLIP,
            resolution=resolution,
            rounds=_ROUNDS,
            moments=_MOMENTS,
            judging=_CALIBRATION,
        )
        settings = options.settings(layout, unit)
        # What cannot be drawn is refused here, before a row is read.
        settings.part(first_round(settings), layout.of_first)
        zero = Weights.of(np.zeros((kernel.features, layout.columns)))
        settings.part(layout.at(zero), layout.of_round)
        settings.part(Calibration.of(layout), layout.judging)
        return settings

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `planning.plan`)
        """Return what a release would be like, from public numbers only (`planning.plan`).

        Args:
            **given: the arguments of this reader's `plan`.
        """
        from discreet.readers.softmax.planning import plan

        return plan(**given)

    def passes_of(self, settings: Settings[Rounds]) -> int:
        """All rounds, and the calibration.

        Args:
            settings: the public settings.
        """
        [layout] = settings.layouts
        return layout.rounds + 1

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
        rows = with_cached_features(rows, layout.kernel, options.memory_limit)
        descent = _descend(rows, door)
        scale, totals = _calibrate(rows, door, Weights.of(descent.weights))
        state = _whole(np.ldexp(scale * descent.weights.T[None], STATE_BITS))
        return [door.released(layout, [state, _whole(totals[None])])]


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


def noise_of_round(settings: Settings[Rounds]) -> float:
    """Return the standard deviation of the noise of a round, before rounding, in lattice units.

    (The first may have less, where rows are replaced: at W = 0 their sums and second moments cannot
    both move as far as they can.)
    """
    [layout] = settings.layouts
    return settings.sigma(layout) / math.sqrt(layout.of_round)


def first_round(settings: Settings[Rounds]) -> Round:
    """Return the layout of the first round, in which W is zero."""
    [layout] = settings.layouts
    return drawable(
        layout.first(), settings.privacy, settings.unit, settings.group_rows, layout.of_first
    )


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Directions in which features vary much, and how much shorter a step is along each.

    Attributes:
        directions: orthonormal, shape (r, k).
        missing: what is left out of a step along each, from 0 to 1, shape (k,).
    """

    directions: Floats
    missing: Floats

    @classmethod
    def of(cls, moments: Floats, noise: float, most: float) -> "Preconditioner":
        """Return the directions whose second moment is above the noise's edge, and above `most`.

        Args:
            moments: noisy Σ φ ⊗ φ, shape (r, r).
            noise: standard deviation of a diagonal entry; what is above it has √½ of that.
            most: the second moment at which steps begin to be shorter.
        """
        values, vectors = np.linalg.eigh(moments)
        edge = noise * math.sqrt(2 * len(moments))
        large = values > max(edge, most)
        return cls(vectors[:, large], 1 - most / values[large])

    def __call__(self, gradient: Floats) -> Floats:
        """Return a gradient (r, C) that is shorter along these directions."""
        along = self.directions.T @ gradient
        return gradient - self.directions @ (self.missing[:, None] * along)


@dataclass(frozen=True, eq=False)
class Descent:
    """Where W is, and where it is heading: from what rounds release, so it costs nothing. Public.

    The length of steps follows from the noise that may reach a logit, which is fixed in advance:
    steps of κ/(s·√T), where s is the noise of one round, leave noise of κ after T rounds, whatever
    the rows are. Where rows are many and alike, such steps would be too long: the preconditioner
    shortens them along directions in which features have a second moment of more than λ. Second
    moments that their own noise may have made are taken for small.

    Attributes:
        weights: W, shape (r, C).
        momentum: a mean of the gradients so far, shape (r, C).
        step: how long one step is, for a gradient of one.
    """

    weights: Floats
    momentum: Floats
    step: float

    @classmethod
    def start(cls, shape: tuple[int, int], *, rounds: int, noise: float) -> "Descent":
        """Return W = 0, before the first of some rounds.

        Args:
            shape: (r, C).
            rounds: T.
            noise: s, the standard deviation of an entry of each round's sums.
        """
        zero = np.zeros(shape)
        few = max(_MANY_FEATURES / shape[0], 1.0) ** 0.125
        return cls(zero, zero, _NOISE_OF_LOGITS * few / (noise * math.sqrt(rounds)))

    @property
    def longest(self) -> float:
        """λ: steps are shorter along directions with more than this second moment."""
        return _LONGEST / self.step

    def next(self, gradient: Floats) -> "Descent":
        """Return where W goes, given a round's noisy sums, preconditioned: shape (r, C)."""
        momentum = _MOMENTUM * self.momentum + (1 - _MOMENTUM) * gradient
        return Descent(self.weights - self.step * momentum, momentum, self.step)


def _descend(rows: RowSource, door: Door[Rounds]) -> Descent:
    """Return where W is after all rounds. From what the door lets out, and public numbers."""
    settings = door.settings
    [layout] = settings.layouts
    first = first_round(settings)
    sums, *moments = door.sum(first, rows, share=layout.of_first)
    shape = (layout.kernel.features, layout.columns)
    noise = noise_of_round(settings) * layout.real_unit
    descent = Descent.start(shape, rounds=layout.rounds, noise=noise)
    unit = first.moment_unit**2
    _, law, _ = settings.part(first, layout.of_first).laws(first)
    [matrix] = first.matrices(*moments) / unit
    precondition = Preconditioner.of(matrix, _deviation(law) / unit, descent.longest)
    descent = descent.next(precondition(_gradient(layout, sums)))
    for _ in range(1, layout.rounds):
        this = layout.at(Weights.of(descent.weights))
        [sums] = door.sum(this, rows, share=layout.of_round)
        descent = descent.next(precondition(_gradient(layout, sums)))
    return descent


def _calibrate(rows: RowSource, door: Door[Rounds], weights: Weights) -> tuple[float, Floats]:
    """Return what logits are to be multiplied by, and about how many rows each class has."""
    settings = door.settings
    [layout] = settings.layouts
    last, share = layout.at(weights), layout.judging
    this = Calibration.of(layout)
    [sums] = door.sum(this, rows, share=share, view=lambda table: Confidence.of(table, last))
    # The first feature is the constant; the last column counts rows.
    differences, totals = split(np.asarray(sums[0, :-1, 0] * this.real_unit))
    [law] = settings.part(this, share).laws(this)
    return factor(differences, _deviation(law) * this.real_unit), totals


def _gradient(layout: Rounds, noisy: Integers) -> Floats:
    """Return Σ φ ⊗ q in real units, shape (r, C)."""
    return np.asarray(noisy[0].T * layout.real_unit)


def _deviation(law: RoundedGaussian) -> float:
    return math.sqrt(law.variance)


def _whole(numbers: Floats) -> Integers:
    """Return whole numbers, as a file keeps them."""
    return np.rint(numbers).astype(np.int64, order="C")
