"""Records that are as long as they may be, to within what floats can tell."""

import math
from fractions import Fraction

import numpy as np
import pytest
from maps import maps

from discreet.privacy import Neighbours, Privacy
from discreet.readers.least_squares.layout import Moments
from discreet.sums import records
from discreet.sums.settings import Settings, Unit

SIZE = 3


def settings_of(heads, share, group_rows=1.0):
    layout = Moments(
        kernel=maps(2, 2.0)["linear"],
        heads=(heads,),
        value_dim=2,
        value_norm=1.3,
        tau=0.4,
        resolution=18,
        ridge=0.5,
        centred=False,
        share=share,
    )
    return Settings(
        layouts=(layout,),
        privacy=Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE),
        unit=Unit.RECORD,
        group_rows=group_rows,
    )


def one_record(layout):
    """Integers of SIZE equal rows, as long as a row can be, for all heads."""
    keys, values = np.tile([2.0, 0.0], (SIZE, 1)), np.tile([0.0, 1.3], (SIZE, 1))
    features, weighed = layout.kernel.key_features(keys).features, layout.weigh(values, None)
    return np.stack([features] * layout.head_count), np.stack([weighed] * layout.head_count)


def squared_length(layout, features, weighed):
    """Of all that the record adds, in units of what one row may add; exactly."""
    norms = [
        sum(int(x) ** 2 for x in part.ravel()) * Fraction(weight) ** 2
        for part, weight in zip(
            layout.contribution(features, weighed), layout.part_weights, strict=True
        )
    ]
    return sum(norms) / Fraction(layout.row_bound) ** 2


def cut(settings, features, weighed):
    """Whether the record is made shorter."""
    if settings.layouts[0].share:
        after = records.scale_down_both(settings, features, weighed, SIZE)[1]
    else:
        grams = [records.gram(features, SIZE)]
        [after] = records.scale_down(settings, grams, [weighed], SIZE)
    return not np.array_equal(after, weighed)


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize(("share", "unsure"), [(0.0, 2.0**-50), (0.25, 2.0**-48)])
def test_a_record_too_near_to_its_cap_for_floats_is_cut(heads, share, unsure):
    """Rounding errors grow with heads and rows, and so does the margin."""
    layout = settings_of(heads, share).layouts[0]
    features, weighed = one_record(layout)
    squared = squared_length(layout, features, weighed)
    assert 0.99 * heads * SIZE**2 < squared <= heads * SIZE**2
    for relative, wanted in ((-1e-9, True), (0.0, True), (unsure, True), (1e-9, False)):
        group_rows = math.sqrt(squared * Fraction(1 + relative) / heads)
        assert cut(settings_of(heads, share, group_rows), features, weighed) is wanted
