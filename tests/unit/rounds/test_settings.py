"""What public numbers lead to: features, the bound on what a row says, and what is too much."""

import numpy as np
import pytest
from data import unit_rows
from rounds import calibration, first_round, later_round, resolved

from discreet import InvalidInput
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import UnitLinear
from discreet.readers.softmax.layout import Weights
from discreet.readers.softmax.mechanism import noise_of_round
from discreet.readers.softmax.options import SoftmaxOptions
from discreet.sums.settings import Unit

SPEND = {"epsilon": 1.0, "delta": 1e-6}


def settled(dim=4, classes=3, unit=Unit.ROW, **options):
    chosen = SoftmaxOptions(classes=range(classes), **SPEND | options)
    return resolved(dim, chosen, unit=unit)


def features(dim=4, **options):
    [layout] = settled(dim, **options).layouts
    return layout.kernel


def test_features_follow_from_public_numbers():
    assert features(key_norm=2.0) == UnitFourier(
        4, frequencies=512, scale=3 / 4, key_norm=2.0, query_norm=2.0
    )
    few, many = (features(rows_hint=rows).frequencies for rows in (1_000, 10**6))
    assert few < many
    wide = features(384, key_norm=2.0)
    assert wide == UnitLinear(384, key_norm=2.0, stretch=8.0)
    assert features(384, rows_hint=10**6) == UnitLinear(384, stretch=8.0)
    for dim in (4, 384):
        public = unit_rows(300, dim, seed=9)
        assert isinstance(features(dim, public_rows=public), UnitLandmarks)
    for kind in ("linear", "rays", "waves", "lines_and_waves"):
        assert features(features=kind, rows_hint=1_000).kind == kind


def test_two_classes_are_cut_less_than_several():
    assert [settled(classes=count).layouts[0].clip for count in (2, 3, 100)] == [0.4, 0.2, 0.2]


def test_more_features_than_can_be_squared_are_refused():
    assert features(8_191, features="linear").features == 8_192
    with pytest.raises(InvalidInput, match=r"features.*8,193.*8,192"):
        settled(8_192, features="linear")


def test_more_classes_than_add_up_exactly_are_refused():
    assert settled(classes=2**14, features="linear").layouts[0].columns == 2**14
    with pytest.raises(InvalidInput, match="classes"):
        settled(classes=2**14 + 1, features="linear")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("unit", Unit)
def test_each_release_has_its_share_and_the_settings_of_the_whole(unit, neighbours):
    group_rows = 2.5 if unit is Unit.RECORD else 1.0
    whole = settled(
        unit=unit, neighbours=neighbours, features="linear", group_rows=group_rows, rows_hint=77
    )
    [layout] = whole.layouts
    later = later_round(whole, Weights.of(np.ones((5, 3))))
    parts = {"of_first": first_round(whole), "of_round": later, "judging": calibration(whole)}
    for name, part in parts.items():
        assert part.share == getattr(layout, name)
        assert (part.privacy, part.unit) == (whole.privacy, unit)
        assert (part.group_rows, part.rows_hint) == (group_rows, 77)
        [own] = part.layouts
        spent = part.sensitivity(own) / part.sigma(own)
        assert spent**2 * whole.multiplier**2 == pytest.approx(part.share, rel=1e-12)
    assert noise_of_round(whole) == pytest.approx(later.sigma(later.layouts[0]), rel=1e-12)
    assert noise_of_round(whole) >= parts["of_first"].laws(parts["of_first"].layouts[0])[
        0
    ].sigma * (1 - 1e-9)
