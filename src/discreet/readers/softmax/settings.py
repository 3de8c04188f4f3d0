"""Which features a classifier has: from public numbers, and public rows if any.

The public settings of a classifier: pure functions of public numbers.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from discreet import _validate
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import UnitLinear
from discreet.readers.least_squares.choosing import WIDE, Request, choose_features, waves_for
from discreet.readers.softmax.calibration import Judgement
from discreet.readers.softmax.layout import MOST_CLASSES, Round, Rounds, Weights
from discreet.readers.softmax.options import SoftmaxOptions
from discreet.sums.layout import AnyLayout_co, RowLayout
from discreet.sums.moments import drawable
from discreet.sums.settings import Settings, Unit, crude_multiplier, value_resolution

# So many waves, where nobody says how many rows there are.
WAVES = 512

# How much columns count beside the constant of rays: classes need nothing but the side of a plane.
STRETCH = 8.0

# Where keys are spread over the ball of their bound.
_SCALE = 3.0


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
    """Return how many waves so many rows deserve under so much noise."""
    return WAVES if rows is None else waves_for(rows, multiplier)


# T: from 10 to 48 it hardly matters, and each is a pass over all rows.
_ROUNDS = 16

# Of the squared budget, for second moments: they only have to tell which directions are long.
_MOMENTS = 0.03

# Second moments are a square of these, and their eigenvectors take the cube in time.
_MOST_FEATURES = 8192

# Of the squared budget, for how sure to be.
_JUDGING = 0.03

# C: a smaller one favours the more frequent of two classes, a larger one lets noise in.
_CLIP_OF_TWO, _CLIP = 0.4, 0.2


@dataclass(frozen=True, kw_only=True)
class PartSettings(Settings[AnyLayout_co]):
    """The settings of one release out of several, which has a share of the whole squared budget.

    Attributes:
        share: from 0 to 1; those of all releases add up to one.
    """

    share: float

    def sigma(self, layout: RowLayout) -> float:
        """Return the standard deviation of the noise on the sums, in lattice units."""
        return super().sigma(layout) / math.sqrt(self.share)


def settle(dim: int, options: SoftmaxOptions, *, unit: Unit) -> Settings[Rounds]:
    """Return the settings of a classifier. The same options always give the same settings."""
    multiplier = crude_multiplier(options.privacy, 1, options.group_rows)
    request = Request(
        features=options.features,
        dim=dim,
        key_norm=options.number("key_norm", 0, 1),
        rows=options.rows_hint,
        multiplier=multiplier,
        public_rows=options.public_rows_of(0, 1, dim=dim),
    )
    if len(options.classes) > MOST_CLASSES:
        _validate.reject("classes", f"{len(options.classes):,}", f"at most {MOST_CLASSES:,}")
    kernel = choose(request)
    if kernel.features > _MOST_FEATURES:
        _validate.reject("features", f"{kernel.features:,}", f"at most {_MOST_FEATURES:,} of them")
    layout = Rounds(
        kernel=kernel,
        classes=options.classes,
        clip=_CLIP_OF_TWO if len(options.classes) == 2 else _CLIP,
        resolution=value_resolution(multiplier * math.sqrt(_ROUNDS), rows_hint=options.rows_hint),
        rounds=_ROUNDS,
        moments=_MOMENTS,
        judging=_JUDGING,
    )
    settings = Settings(
        layouts=(layout,),
        privacy=options.privacy,
        unit=unit,
        group_rows=options.group_rows,
        rows_hint=options.rows_hint,
        leaks=options.leaks,
    )
    # What cannot be drawn is refused here, before a row is read.
    first_round(settings)
    later_round(settings, Weights.of(np.zeros((kernel.features, layout.columns))))
    judgement(settings)
    return settings


def noise_of_round(settings: Settings[Rounds]) -> float:
    """Return the standard deviation of the noise of a round, before rounding, in lattice units.

    (The first may have less, where rows are replaced: at W = 0 their sums and second moments cannot
    both move as far as they can.)
    """
    [rounds] = settings.layouts
    return settings.sigma(rounds) / math.sqrt(rounds.of_round)


def first_round(settings: Settings[Rounds]) -> PartSettings[Round]:
    """Return the settings of the first round, in which W is zero."""
    [rounds] = settings.layouts
    share = rounds.of_first
    layout = drawable(rounds.first(), settings.privacy, settings.unit, settings.group_rows, share)
    return _part(settings, layout, share)


def later_round(settings: Settings[Rounds], weights: Weights) -> PartSettings[Round]:
    """Return the settings of a round with this W."""
    [rounds] = settings.layouts
    return _part(settings, rounds.at(weights), rounds.of_round)


def judgement(settings: Settings[Rounds]) -> PartSettings[Judgement]:
    """Return the settings of the last release."""
    [rounds] = settings.layouts
    layout = Judgement.of(rounds.columns, rounds.resolution)
    return _part(settings, layout, rounds.judging)


AnyPart = TypeVar("AnyPart", Round, Judgement)


def _part(settings: Settings[Rounds], layout: AnyPart, share: float) -> PartSettings[AnyPart]:
    return PartSettings(
        layouts=(layout,),
        privacy=settings.privacy,
        unit=settings.unit,
        group_rows=settings.group_rows,
        rows_hint=settings.rows_hint,
        share=share,
    )
