"""Maps of least squares: what the proof relies on, and what predictions rely on."""

import pickle

import numpy as np
import pytest
import torch
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
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


@pytest.fixture(params=KINDS)
def features(request):
    return MADE[request.param]


def sized_keys(count=200):
    rng = np.random.default_rng(0)
    lengths = NORM * rng.choice([0, 1e-9, 0.5, 1, 1, 1.0000001, 7, 1e30], (count, 1))
    return unit_rows(count, DIM) * lengths


def query_features(features, queries):
    clipped = features.within(queries[None])
    return features.query_features(clipped, features.query_arrays())[0]


def squared_norms(integers):
    return [sum(int(value) ** 2 for value in row) for row in integers]


def test_every_row_has_integer_features_of_the_radius(features):
    mapped = features.key_features(sized_keys())
    assert mapped.weights is None
    assert np.array_equal(mapped.features, np.rint(mapped.features))
    norms = squared_norms(mapped.features)
    assert max(norms) <= FEATURE_RADIUS**2
    if features.kind != "linear":
        assert min(norms) >= 0.98 * FEATURE_RADIUS**2
    assert np.abs(mapped.features).max() <= features.entry_bound


@pytest.mark.parametrize("kind", KINDS)
@given(
    keys=hnp.arrays(np.float64, (3, DIM), elements=st.floats(allow_nan=False, allow_infinity=False))
)
def test_no_key_exceeds_the_radius(kind, keys):
    assert max(squared_norms(MADE[kind].key_features(keys).features)) <= FEATURE_RADIUS**2


@pytest.mark.parametrize("kind", KINDS)
@given(
    keys=hnp.arrays(np.float64, (2, DIM), elements=st.floats(-3, 3) | st.sampled_from([0, 1e200]))
)
def test_no_two_keys_are_further_apart_than_the_least_inner_product(kind, keys):
    one, other = MADE[kind].key_features(keys).features
    assert sum(int(a) * int(b) for a, b in zip(one, other, strict=True)) >= MADE[kind].least_inner


@pytest.mark.parametrize("kind", ["linear", "rays"])
def test_opposite_keys_reach_the_least_inner_product(kind):
    one, other = (
        MADE[kind].key_features(np.array([[NORM, 0, 0, 0, 0], [-NORM, 0, 0, 0, 0]])).features
    )
    slack = 3 * FEATURE_RADIUS * DIM
    assert one @ other == pytest.approx(MADE[kind].least_inner, abs=slack)


def test_a_row_has_the_same_features_alone_in_any_batch_and_at_any_position(features):
    keys = sized_keys(150)
    together = features.key_features(keys).features.copy()
    order = np.random.default_rng(1).permutation(150)
    shuffled = features.key_features(keys[order], out=np.empty(200 * features.features)).features
    assert np.array_equal(shuffled, together[order])
    for row in range(0, 150, 7):
        alone = features.key_features(keys[row : row + 1]).features
        assert np.array_equal(alone[0], together[row])
    for other in (np.asfortranarray(keys), np.repeat(keys, 2, axis=0)[::2]):
        assert np.array_equal(features.key_features(other).features, together)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "no sense" not in kind])
def test_queries_have_the_features_of_rows(kind):
    features = MADE[kind]
    keys = np.concatenate([unit_rows(40, DIM) * NORM, unit_rows(40, DIM, seed=1) * 3 * NORM])
    keys[::3] *= 0.3
    rows = features.key_features(keys).features / features.unit
    np.testing.assert_allclose(query_features(features, keys), rows, atol=2e-3)


def test_torch_has_the_features_of_numpy(features):
    queries = unit_rows(6, DIM)[None]
    arrays = {name: torch.from_numpy(each.copy()) for name, each in features.query_arrays().items()}
    given = features.query_features(torch.from_numpy(queries), arrays).numpy()
    np.testing.assert_allclose(
        given, features.query_features(queries, features.query_arrays()), atol=1e-9
    )


def test_a_map_comes_back_from_its_parameters_and_arrays(features):
    again = registry.FEATURES.restore(features.parameters(), features.arrays())
    assert type(again) is type(features)
    keys = sized_keys()
    assert np.array_equal(again.key_features(keys).features, features.key_features(keys).features)
    assert again.describe() == features.describe()
    copied = pickle.loads(pickle.dumps(features))
    assert np.array_equal(copied.key_features(keys).features, features.key_features(keys).features)


def test_what_they_stand_for():
    """Straight lines; e^(-scale·‖x - y‖²/2); the same, where landmarks are near."""
    keys = public_rows(DIM, NORM)
    distances = np.sum((keys[:, None] - keys) ** 2, axis=-1)
    waves = UnitFourier(DIM, frequencies=4096, scale=0.5, key_norm=NORM, query_norm=NORM)
    near = UnitLandmarks(keys, rank=120, scale=0.5, key_norm=NORM)
    for each in (waves, near):
        mapped = query_features(each, keys)
        off = mapped @ mapped.T - np.exp(-0.25 * distances)
        assert np.sqrt(np.mean(off**2)) < 0.02
    for kind in (Linear, UnitLinear):
        lines = query_features(kind(DIM, key_norm=NORM, stretch=2.0), keys)
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
