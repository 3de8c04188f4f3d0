"""Rounds of classification for tests: settings of one release, and exact sums of rows."""

from dataclasses import replace

import numpy as np

from discreet.privacy import Neighbours, Privacy
from discreet.readers.softmax import mechanism
from discreet.readers.softmax.layout import Calibration, Confidence, Rounds, Weights
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.sums.accumulate import Accumulator
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Table

CLIP, ROUNDS, MOMENTS, JUDGING = 0.3, 16, 0.03, 0.03


def resolved(dim, options, unit=Unit.ROW):
    """Settings of a classifier that was asked for."""
    return SOFTMAX.resolve([Shape(heads=(), key_dim=dim, value_dim=1)], options, unit=unit)


def first_round(settings):
    """Settings of the first round."""
    [layout] = settings.layouts
    return settings.part(mechanism.first_round(settings), layout.of_first)


def later_round(settings, weights):
    """Settings of a round with this W."""
    [layout] = settings.layouts
    return settings.part(layout.at(weights), layout.of_round)


def calibration(settings):
    """Settings of the last pass."""
    [layout] = settings.layouts
    return settings.part(Calibration.of(layout), layout.judging)


def rounds_of(kernel, classes=2, **changes):
    """What all rounds share."""
    options = {"clip": CLIP, "resolution": 18, "rounds": ROUNDS}
    options |= {"moments": MOMENTS, "judging": JUDGING}
    return Rounds(kernel=kernel, classes=tuple(range(classes)), **options | changes)


def settings_of(
    layout, neighbours=Neighbours.ADD_REMOVE, unit=Unit.ROW, group_rows=1.0, epsilon=1.0
):
    """Settings of a whole classifier."""
    return Settings(
        layouts=(layout,),
        privacy=Privacy(epsilon, 1e-6, neighbours),
        unit=unit,
        group_rows=group_rows,
    )


def round_of(settings, weights=None, coarseness=0):
    """Settings of the first round, or of one with this W: an array of shape (r, C)."""
    if weights is not None:
        return later_round(settings, Weights.of(weights))
    first = first_round(settings)
    if coarseness:
        first = replace(first, layouts=(settings.layouts[0].first(coarseness),))
    return first


def exact_sums(settings, keys, labels, groups=None):
    """The exact sums of one round over rows."""
    adder = Accumulator(settings)
    adder.add([Table(keys, np.asarray(labels)[:, None])], groups=groups)
    return adder.sums


def confidence_table(table, layout, weights):
    """What is added up of rows after the last round, with this W: an array of shape (r, C)."""
    return Confidence(table.keys, table.values, table, layout.at(Weights.of(weights)))


def calibration_sums(settings, weights, keys, labels, groups=None):
    """The exact sums of the last release over rows, with this W."""
    [layout] = settings.layouts
    adder = Accumulator(calibration(settings))
    table = Table(keys, np.asarray(labels)[:, None])
    adder.add([confidence_table(table, layout, weights)], groups=groups)
    return adder.sums
