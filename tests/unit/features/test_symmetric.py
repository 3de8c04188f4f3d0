"""Maps for predictions: the contract of all of them, and what is about single kinds."""

import numpy as np
import pytest
from map_contract import SymmetricContract, sized_keys, squared_norms
from maps import KINDS, maps, public_rows

from discreet import InvalidInput
from discreet.features import registry
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import IntegerFrequencies, UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import Linear, UnitLinear
from discreet.kernels import FEATURE_RADIUS, Fourier

DIM, NORM = 5, 2.0
MADE = maps(DIM, NORM)


@pytest.fixture(params=KINDS, scope="module")
def kernel(request):
    return MADE[request.param]


class TestSymmetric(SymmetricContract):
    """Of every kind."""

    def test_queries_have_the_features_of_rows(self, kernel):
        if kernel is not MADE["landmarks that make no sense"]:  # tables are off by more there
            super().test_queries_have_the_features_of_rows(kernel)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "linear" not in kind])
def test_every_row_uses_the_whole_radius(kind):
    norms = squared_norms(MADE[kind], MADE[kind].key_features(sized_keys(MADE[kind])).features)
    assert norms.min() >= 0.98 * FEATURE_RADIUS**2


@pytest.mark.parametrize("kind", ["linear", "rays"])
def test_opposite_keys_reach_the_least_inner_product(kind):
    one, other = (
        MADE[kind].key_features(np.array([[NORM, 0, 0, 0, 0], [-NORM, 0, 0, 0, 0]])).features
    )
    slack = 3 * FEATURE_RADIUS * DIM
    assert one @ other == pytest.approx(MADE[kind].least_inner, abs=slack)


def features_of(each, queries):
    return each.query_features(queries[None], each.query_arrays())[0]


def test_what_they_stand_for():
    """Straight lines; e^(-scale·‖x - y‖²/2); the same, where landmarks are near."""
    keys = public_rows(DIM, NORM)
    distances = np.sum((keys[:, None] - keys) ** 2, axis=-1)
    waves = UnitFourier(DIM, frequencies=4096, scale=0.5, key_norm=NORM, query_norm=NORM)
    near = UnitLandmarks(keys, rank=120, scale=0.5, key_norm=NORM)
    for each in (waves, near):
        mapped = features_of(each, keys)
        off = mapped @ mapped.T - np.exp(-0.25 * distances)
        assert np.sqrt(np.mean(off**2)) < 0.02
    for kind in (Linear, UnitLinear):
        lines = features_of(kind(DIM, key_norm=NORM, stretch=2.0), keys)
        np.testing.assert_allclose(lines[:, 1:] / lines[:, :1], 2 * keys / NORM, atol=1e-4)


def test_a_part_that_is_not_on_the_list_is_refused():
    """A subclass could have features that no proof covers."""

    class Longer(UnitLinear):
        def fill(self, integers, out):
            out[:] = 2.0**20

    class Louder(UnitFourier):
        _amplitude = 2**20

    lines, waves = MADE["lines and waves"].linear, MADE["lines and waves"].fourier
    with pytest.raises(InvalidInput, match="linear"):
        LinearAndFourier(Longer(DIM, key_norm=NORM), waves)
    with pytest.raises(InvalidInput, match="fourier"):
        LinearAndFourier(lines, Louder(DIM, scale=1.0, key_norm=NORM, query_norm=NORM))
    with pytest.raises(InvalidInput, match="fourier"):
        LinearAndFourier(UnitLinear(DIM, key_norm=1.0), waves)
    parameters = MADE["lines and waves"].parameters()
    for change in ({"lines": parameters["waves"]}, {"more": 1}):
        with pytest.raises((InvalidInput, TypeError)):
            registry.FEATURES.restore(parameters | change, MADE["lines and waves"].arrays())


def test_what_was_checked_cannot_be_changed():
    frequencies = MADE["waves"].arrays()["frequencies"].astype(np.int64)
    stored = IntegerFrequencies(frequencies, MADE["waves"].parameters()["turn_bits"])
    frequencies[:] = 2**60
    assert np.abs(stored.values).max() < 2**60
    for array in (stored.values, MADE["waves"]._table, MADE["lines and waves"]._factors):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1


def test_what_is_not_on_the_list_is_refused():
    with pytest.raises(InvalidInput, match="features"):
        registry.FEATURES.check_registered(Fourier(2, scale=1.0, key_norm=1.0, query_norm=1.0))
    with pytest.raises(InvalidInput, match="features"):
        registry.FEATURES.restore({"kind": "cubic"}, {})
    for change in ({"stretch": 0}, {"stretch": 1e9}, {"key_norm": -1.0}):
        with pytest.raises(InvalidInput):
            Linear(DIM, **change)
