"""Rounds for tests: settings of one release, exact sums of rows, and how far these move.

Of classifiers; regressions have more in `glm.py`.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet._keys import LARGEST, MISSING
from discreet.features.columns import Bins, Categories, TableColumns, Unknown
from discreet.privacy import Neighbours, Privacy
from discreet.readers.rounds import descent
from discreet.readers.rounds.layout import Weights
from discreet.readers.softmax.layout import (
    Calibration,
    Judged,
    Rounds,
    confidence_and_curvature,
    confidence_and_label,
    label_and_probabilities,
)
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.sums.accumulate import Accumulator
from discreet.sums.door import Door
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Table
from discreet.testing import Silent

CLIP, ROUNDS, MOMENTS, JUDGING = 0.3, 16, 0.03, 0.03

# σ, shares and weights are rounded: so much more than the claim is within one part in 10^15.
ROUNDED = 1 + 1e-15


def resolved(dim, options, unit=Unit.ROW):
    """Settings of a classifier that was asked for."""
    return SOFTMAX.resolve([Shape(heads=(), key_dim=dim, value_dim=1)], options, unit=unit)


def first_round(settings):
    """Settings of the first round."""
    [layout] = settings.layouts
    return settings.part(descent.first_round(settings, layout), layout.of_first)


def later_round(settings, weights):
    """Settings of a round with this W."""
    [layout] = settings.layouts
    return settings.part(layout.at(weights), layout.of_round)


def calibration(settings):
    """Settings of the pass after the last round; of the first of two, where there are two."""
    [layout] = settings.layouts
    return settings.part(Calibration.of(layout), layout.of_confidence)


def frequency(settings):
    """Settings of the second of two passes after the last round."""
    [layout] = settings.layouts
    return settings.part(Calibration.frequency(layout), layout.of_frequency)


def rounds_of(kernel, classes=2, **changes):
    """What all rounds share."""
    options = {"clip": CLIP, "resolution": 18, "rounds": ROUNDS}
    options |= {"moments": MOMENTS, "judging": JUDGING}
    return Rounds(kernel=kernel, classes=tuple(range(classes)), **options | changes)


def settings_of(
    layout, neighbours=Neighbours.ADD_REMOVE, unit=Unit.ROW, group_rows=1.0, epsilon=1.0
):
    """Settings of a whole release in rounds."""
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


def exact_sums(settings, keys, values, groups=None, view=lambda table: table):
    """The exact sums of one pass over rows; values are labels (n,), or numbers (n, k)."""
    values = np.asarray(values)
    adder = Accumulator(settings)
    table = Table(keys, values[:, None] if values.ndim == 1 else values)
    adder.add([view(table)], groups=groups)
    return adder.sums


def confidence_table(table, layout, weights):
    """What is added up of rows after the last round, with this W: an array of shape (r, C)."""
    this = layout.at(Weights.of(weights))
    if layout.keeps_more:
        return Judged.of(table, this, confidence_and_curvature, 9)
    return Judged.of(table, this, confidence_and_label, 8 + layout.columns)


def frequency_table(table, layout, weights):
    """What is added up of rows in the second pass after the last round, with this W."""
    this = layout.at(Weights.of(weights))
    return Judged.of(table, this, label_and_probabilities, 2 * layout.columns)


def calibration_sums(settings, weights, keys, labels, groups=None, *, second=False):
    """The exact sums of a pass after the last round over rows, with this W."""
    [layout] = settings.layouts
    this, seen = (frequency, frequency_table) if second else (calibration, confidence_table)
    return exact_sums(
        this(settings), keys, labels, groups, view=lambda table: seen(table, layout, weights)
    )


def moved(this, one, other):
    """The distance of two sums in units of their noise, over what the pass claims."""
    [layout] = this.layouts
    squared = weighted = Fraction(0)
    for a, b, law, weight in zip(one, other, this.laws(layout), layout.part_weights, strict=True):
        squares = Fraction(sum(int(x) ** 2 for x in (a - b)[a != b]))
        squared += squares / Fraction(law.sigma) ** 2
        weighted += squares * Fraction(weight) ** 2
    assert weighted <= Fraction(this.sensitivity(layout)) ** 2
    claim = Fraction(this.share) * (Fraction(1) / Fraction(this.multiplier)) ** 2
    return math.sqrt(squared / claim)


# --- tables ---------------------------------------------------------------------------------------


def tables():
    """Maps of tables, small: each with three columns, and all with odd ones among them."""
    mixed = TableColumns(
        (Bins((0.0, 1.0)), Categories((1, 5, 9)), Bins.between(-5, 5, skewed=True))
    )
    return {
        "numbers": TableColumns(
            (Bins.between(0, 1, skewed=False), Bins(()), Bins.between(-5, 5, skewed=True))
        ),
        "categories": TableColumns((Categories((0, 1, 2, 3)), Categories((4,)), Categories(()))),
        "mixed": mixed,
        "mixed with waves": mixed.with_waves(8),
    }


def unknown_tables():
    """Maps of tables of which something has to be found."""
    return {
        "all unknown": TableColumns((Unknown(numbers=True), Unknown(numbers=False))),
        "one of three": TableColumns(
            (Bins((0.0, 1.0)), Unknown(numbers=True), Categories((1, 5)))
        ).with_waves(6),
        "several": TableColumns((Unknown(numbers=True),) * 2 + (Unknown(numbers=False),) * 3),
    }


# What a cell of a table may hold: missing, nearly so, places, numbers of all sizes, of either sign.
CELLS = st.one_of(
    st.sampled_from([MISSING, -MISSING, LARGEST, -LARGEST, 2.0**128, 0.0, -0.0, 1.0, 5.0, 4.0]),
    st.sampled_from([9.0, 511.0, 512.0, 511.5, -1.0, 1e300, -1e300, 1e-300, 2.0**-12, 2.0**40]),
    st.integers(0, 600).map(float),
    st.floats(-6, 6),
)


def drawn_cells(count, columns=3):
    """Rows of a table."""
    return hnp.arrays(np.float64, (count, columns), elements=CELLS)


def some_cells(kernel, count, seed=0):
    """Rows of a table that are mostly ordinary; always the same."""
    rng = np.random.default_rng(seed)
    keys = np.stack(
        [
            rng.choice(np.array([*each.places, 77.0]), count)
            if isinstance(each, Categories)
            else rng.integers(0, 6, count) * 1.0
            if isinstance(each, Unknown) and not each.numbers
            else rng.normal(size=count) * 2
            for each in kernel.columns
        ],
        axis=1,
    )
    keys[rng.random(keys.shape) < 0.05] = MISSING
    return keys


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run asked the door for."""

    settings: Settings[Any]
    view: Any


class Recording(Door):
    """A door that keeps what it was asked for."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.asked = []

    def sum(self, layout, rows, *, share, view=lambda table: table):
        self.asked.append(Asked(self.settings.part(layout, share), view))
        return super().sum(layout, rows, share=share, view=view)


def asked_by(mechanism, keys, values, groups=None, *, entropy=None, **options):
    """All that a whole run asks the door for, in order, and what it releases."""
    chosen = mechanism.options(**options)
    rows = mechanism.source(keys, values, groups, chosen)
    settings = mechanism.resolve(rows.shapes, chosen, unit=rows.unit)
    passes = mechanism.passes_of(settings)
    with Recording(settings, entropy=entropy or Silent(), passes=passes) as door:
        [released] = mechanism.run(rows, door, chosen)
    assert len(door.asked) == passes
    return door.asked, mechanism.read([released])[0]
