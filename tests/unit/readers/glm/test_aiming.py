"""Where targets are: found by nothing but released counts, and about where they are."""

import numpy as np
import pytest
from glm import LINEAR, glm_rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import Recording, asked_by, settings_of

from discreet.readers.glm.aiming import aimed
from discreet.readers.glm.mechanism import GLM
from discreet.readers.rounds.counts import Counts
from discreet.sums.door import Door
from discreet.sums.source import Form, RowSource, Table
from discreet.testing import Seeded, Silent


def rows_of(values):
    return RowSource.of(np.zeros((len(values), 3)), values, None, Form(passes=True))


def aim(values, *, entropy=None, epsilon=1.0, door=Recording):
    """Centres and reaches, and what the door was asked for."""
    layout = glm_rounds(LINEAR, values.shape[1], aiming=0.03)
    whole = settings_of(layout, epsilon=epsilon)
    with door(whole, entropy=entropy or Silent(), passes=18) as opened:
        found = aimed(rows_of(values), opened, layout)
    return np.array(found.centre), np.array(found.reach), opened


@pytest.mark.parametrize("entropy", [Silent(), Seeded(1), Seeded(2)], ids=repr)
@pytest.mark.parametrize(
    ("centre", "spread"), [(0.3, 0.05), (-0.9, 0.03), (0.0, 0.4), (0.999, 0.02), (0.5, 0.1)]
)
def test_targets_are_found_where_they_are(centre, spread, entropy):
    """0.9 of the distance of the 5% and the 95% quantile, around their middle."""
    values = np.random.default_rng(0).normal(centre, spread, (20_000, 1))
    low, high = np.quantile(np.clip(values, -1, 1), [0.05, 0.95])
    [found], [reach], _ = aim(values, entropy=entropy)
    assert found == pytest.approx((low + high) / 2, abs=0.25 * (high - low))
    assert 0.6 < reach / min(0.9 * (high - low), 1.0) < 1.5


def test_each_output_is_aimed_at_by_itself():
    rng = np.random.default_rng(1)
    values = rng.normal([0.5, -0.5, 0.0], [0.02, 0.1, 0.3], (30_000, 3))
    centres, reaches, _ = aim(values, entropy=Seeded(0))
    np.testing.assert_allclose(centres, [0.5, -0.5, 0.0], atol=0.1)
    assert np.all(np.diff(reaches) > 0)


@pytest.mark.parametrize("rows", [0, 3, 30])
def test_where_noise_hides_targets_the_whole_range_is_taken(rows):
    centres, reaches, _ = aim(np.full((rows, 2), 0.7))
    assert (centres.tolist(), reaches.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_values_at_both_ends_of_the_range_are_counted():
    for value in (-1.0, 1.0, -7.0, 7.0):
        _, _, door = aim(np.full((1, 1), value))
        table = Table(np.zeros((1, 3)), np.full((1, 1), value))
        [[cell]] = door.asked[0].view(table).read(slice(0, 1))[1]
        assert cell == (0 if value < 0 else door.asked[0].settings.layouts[0].cells - 1)


def test_values_beyond_a_part_of_the_range_are_not_counted_in_it():
    _, _, door = aim(np.random.default_rng(0).uniform(-0.6, -0.3, (5_000, 1)))
    last = door.asked[-1]
    for value in (0.5, -0.99, 1.0, 5.0):
        table = Table(np.zeros((1, 3)), np.full((1, 1), value))
        [[cell]] = last.view(table).read(slice(0, 1))[1]
        assert cell == -1


class Told(Door):
    """A door that releases what a test tells it to."""

    told = None

    def sum(self, layout, rows, **options):
        [shape] = layout.shapes
        super().sum(layout, rows, **options)
        state = np.zeros(shape, dtype=np.int64)
        state[0, :, 0] = np.rint(self.told(layout.cells) / layout.real_unit)
        return [state]


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.0, 1.0, 50.0, 300.0, 1e4, 1e7]),
    at=st.integers(0, 15),
)
def test_whatever_is_released_centre_and_reach_follow_from_it_alone_and_are_in_range(
    seed, scale, at
):
    results = []
    for values in (np.zeros((3, 2)), np.ones((50, 2))):
        rng = np.random.default_rng(seed)

        def tell(cells, rng=rng):
            counts = rng.standard_cauchy(cells).clip(-1e3, 1e3) * scale
            counts.reshape(2, -1)[:, at % (cells // 2)] += abs(scale) * 1e3
            return counts

        class This(Told):
            told = staticmethod(tell)

        centres, reaches, _ = aim(values, door=This)
        assert np.all(np.abs(centres) <= 1)
        assert np.all((reaches >= 1e-3) & (reaches <= 1))
        results.append((centres.tolist(), reaches.tolist()))
    assert results[0] == results[1]


def test_only_numbers_are_aimed_at_and_only_if_asked():
    keys, values = np.random.default_rng(0).normal(size=(50, 3)), np.zeros((50, 1))
    options = {"epsilon": 1.0, "delta": 1e-6, "features": LINEAR, "key_norm": 2.0}
    for changes, wanted in (({}, True), ({"aim": False}, False), ({"loss": "logistic"}, False)):
        asked, made = asked_by(GLM, keys, values, **options | changes)
        counted = [each for each in asked if isinstance(each.settings.layouts[0], Counts)]
        assert bool(counted) is bool(made.released.layout.aiming) is wanted
