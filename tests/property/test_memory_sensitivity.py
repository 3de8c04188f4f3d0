"""How far integer states of neighbouring data can differ: never beyond the claim, and up to it."""

import math

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from map_contract import landmarks, wild_landmarks

from discreet.kernels import Fourier, Minimax, Taylor
from discreet.privacy import Neighbours, Privacy
from discreet.readers.attention.layout import Layout
from discreet.sums import records
from discreet.sums.partial import Partial
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Table

BOUNDS = {"scale": 1.5, "key_norm": 2.0, "query_norm": 0.5}
UNIT = {"scale": 1.0, "key_norm": 1.0, "query_norm": 1.0}
KERNELS = {
    "taylor": Taylor(2, degree=2, **BOUNDS),
    "minimax": Minimax(2, degree=3, **BOUNDS),
    "fourier": Fourier(2, frequencies=20, **BOUNDS),
    "signed": Minimax(2, degree=2, stored=(1.0, 0.9, -0.2), **BOUNDS),
    "positive, with a negative coefficient": Minimax(
        2, degree=3, stored=(1.0, 0.8, 0.0, -0.7), **UNIT
    ),
    "negative in the middle": Minimax(2, degree=2, stored=(1.0, -0.9, 0.3), **UNIT),
    "barely positive": Taylor(2, degree=1, **UNIT | {"scale": 1 - 1e-9}),
    "landmarks": landmarks(2, **BOUNDS),
    "landmarks that make no sense": wild_landmarks(2, **BOUNDS),
}
SPECIAL = st.sampled_from([0.0, 1.0, -1.0, 1e-200, 1e300, -1e300, 0.49999, 2.0])
NUMBERS = st.one_of(SPECIAL, st.floats(-3, 3))


def layout(kernel, *, heads=(), tau=0.7, value_norm=1.3, resolution=14):
    return Layout(
        kernel=kernel,
        heads=heads,
        value_dim=2,
        value_norm=value_norm,
        tau=tau,
        resolution=resolution,
    )


def settings_of(layouts, neighbours, unit=Unit.ROW, group_rows=1.0):
    return Settings(
        layouts=tuple(layouts),
        privacy=Privacy(1.0, 1e-6, neighbours),
        unit=unit,
        group_rows=group_rows,
    )


def states(rows, settings_, groups=None):
    """The exact sums over rows of shape (layers, heads, n, 4): two numbers of key, two of value."""
    tables = [
        Table(
            layer[..., :2].reshape(*each.heads, -1, 2), layer[..., 2:].reshape(*each.heads, -1, 2)
        )
        for layer, each in zip(rows, settings_.layouts, strict=True)
    ]
    return Partial.of(tables, settings_, groups=groups).sums


def distance(one, other, settings_, neighbours):
    """The joint distance in units of each head's sensitivity, exactly, and the claim √heads."""
    squared = sum(
        sum(int(x) ** 2 for x in (a - b).ravel()) / settings_.sensitivity(each) ** 2
        for a, b, each in zip(one, other, settings_.layouts, strict=True)
    )
    return math.sqrt(squared), math.sqrt(settings_.head_count)


def drawn_rows(layers, heads, count):
    return hnp.arrays(np.float64, (layers, heads, count, 4), elements=NUMBERS)


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=250)
@given(data=st.data())
def test_one_row_moves_the_state_by_at_most_the_claim(neighbours, data):
    kernel = data.draw(st.sampled_from(sorted(KERNELS)))
    tau = data.draw(st.sampled_from([0.1, 0.7, 2.5]))
    each = layout(KERNELS[kernel], heads=(2,), tau=tau)
    both = settings_of([each, layout(KERNELS["minimax"], heads=(2,))], neighbours)
    rows = data.draw(drawn_rows(2, 2, 4))
    at = data.draw(st.integers(0, 3))
    if neighbours is Neighbours.ADD_REMOVE:
        other = np.delete(rows, at, axis=2)
    else:
        other = rows.copy()
        other[:, :, at] = data.draw(drawn_rows(2, 2, 1))[:, :, 0]
    moved, claim = distance(states(rows, both), states(other, both), both, neighbours)
    assert moved <= claim


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=100)
@given(group_rows=st.sampled_from([0.3, 1.0, 2.5]), data=st.data())
def test_one_record_moves_the_state_by_at_most_the_claim(neighbours, group_rows, data):
    both = settings_of(
        [layout(KERNELS["fourier"], heads=(2,)), layout(KERNELS["taylor"], heads=(2,))],
        neighbours,
        Unit.RECORD,
        group_rows,
    )
    size = data.draw(st.integers(1, 6))
    rows = data.draw(drawn_rows(2, 2, size + 3))
    groups = np.array([7] * size + [1, 1, 2])
    if neighbours is Neighbours.ADD_REMOVE:
        other, others = rows[:, :, size:], groups[size:]
    else:
        new = data.draw(st.integers(1, 6))
        other = np.concatenate([data.draw(drawn_rows(2, 2, new)), rows[:, :, size:]], axis=2)
        others = np.array([7] * new + [1, 1, 2])
    moved, claim = distance(
        states(rows, both, groups), states(other, both, others), both, neighbours
    )
    assert moved <= claim


@pytest.mark.parametrize(
    ("size", "same"), [(100, True), (129, False), (129, True), (1_000, False), (10_000, True)]
)
def test_long_records_are_clipped_exactly_and_not_more_than_needed(size, same):
    each = layout(KERNELS["minimax"], resolution=18)
    both = settings_of([each], Neighbours.ADD_REMOVE, Unit.RECORD)
    rows = np.random.default_rng(size).normal(size=(1, 1, size, 4))
    if same:
        rows[:] = [1.0, 1.0, 0.9, 0.9]
    moved, claim = distance(
        states(rows, both, np.zeros(size, int)),
        states(rows[:, :, :0], both, np.zeros(0, int)),
        both,
        Neighbours.ADD_REMOVE,
    )
    assert 0.98 * claim <= moved <= claim


@pytest.mark.parametrize("kernel", ["taylor", "minimax"])
def test_replaced_rows_reach_the_bound(kernel):
    """Same key at the edge of the ball, opposite values: τ cancels, the values double."""
    both = settings_of([layout(KERNELS[kernel], heads=(3,))], Neighbours.REPLACE)
    key = unit_rows(1, 2)[0] * 2.0
    value = unit_rows(1, 2, seed=1)[0] * 1.3
    rows = np.array([[*key, *value], [*key, *-value]])
    one, other = (states(np.tile(row, (1, 3, 1, 1)), both) for row in rows)
    moved, claim = distance(one, other, both, Neighbours.REPLACE)
    assert 0.98 * claim <= moved <= claim


def test_replaced_rows_reach_the_bound_of_fourier_where_tau_is_small():
    both = settings_of([layout(KERNELS["fourier"], tau=0.13)], Neighbours.REPLACE)
    row = np.array([2.0, 0.0, 1.3, 0.0])
    one, other = (
        states(np.array(each).reshape(1, 1, 1, 4), both) for each in (row, row * [1, 1, -1, -1])
    )
    moved, claim = distance(one, other, both, Neighbours.REPLACE)
    assert 0.98 * claim <= moved <= claim


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_an_added_row_reaches_the_bound(kernel):
    both = settings_of([layout(kernel, heads=(2,), resolution=18)], Neighbours.ADD_REMOVE)
    rows = np.tile([2.0, 0.0, 0.0, 1.3], (1, 2, 1, 1))
    moved, claim = distance(
        states(rows, both), states(rows[:, :, :0], both), both, Neighbours.ADD_REMOVE
    )
    assert 0.98 * claim <= moved <= claim


def test_the_claim_for_replaced_rows_follows_the_map():
    """2·‖φ‖·‖v‖ for positive kernels with τ ≤ ‖v‖, √2·C for larger τ, 2·C in general."""
    positive, any_sign = KERNELS["minimax"], KERNELS["fourier"]
    small, large = layout(positive, tau=0.3), layout(positive, tau=2.6)
    radius = 2**16
    assert small.row_sensitivity(Neighbours.REPLACE) == pytest.approx(
        2 * radius * small.value_radius, rel=1e-3
    )
    assert large.row_sensitivity(Neighbours.REPLACE) == pytest.approx(
        math.sqrt(2) * large.row_bound, rel=1e-3
    )
    general = layout(any_sign, tau=0.3)
    assert general.row_sensitivity(Neighbours.REPLACE) == pytest.approx(2 * general.row_bound)


@settings(max_examples=60)
@given(data=st.data())
def test_norms_of_short_records_are_exact(data):
    """Small, cancelling values, where a sum in floating point would lose everything."""
    size = data.draw(st.integers(2, 6))
    small = st.one_of(st.integers(-3, 3), st.integers(-(2**22), 2**22))
    weighed = data.draw(hnp.arrays(np.int64, (2, 3, size, 2), elements=small))
    large = st.sampled_from([2**16, 2**16 - 1, -(2**16), 65_521, 65_519, 1, 0])
    features = data.draw(hnp.arrays(np.int64, (2, 3, size, 1), elements=large))
    flat = features.reshape(2, 3 * size, 1).astype(float)
    norms = records._squared_norms(records.gram(flat, size), weighed.astype(float))
    for record in range(3):
        exact = 0
        for head in range(2):
            matrix = features[head, record].astype(object).T @ weighed[head, record].astype(object)
            exact += sum(int(entry) ** 2 for entry in matrix.ravel())
        assert norms[record] == pytest.approx(exact, rel=1e-9, abs=size**2 * 2**-10)


def test_a_record_of_cancelling_rows_is_clipped():
    """Nearly opposite rows leave a small sum, and an allowance that is smaller still."""
    kernel = Taylor(4, degree=1, scale=1.0, key_norm=1.0, query_norm=1.0)
    each = Layout(kernel=kernel, heads=(), value_dim=1, value_norm=1.0, tau=1e-3, resolution=12)
    for group_rows in (1e-3, 3e-3, 1e-2, 1.0):
        both = settings_of([each], Neighbours.ADD_REMOVE, Unit.RECORD, group_rows)
        for seed in range(6):
            rng = np.random.default_rng(seed)
            keys = rng.normal(size=4) + 0.01 * rng.normal(size=(128, 4))
            values = np.resize([1.0, -1.0], 128) * (1 - 0.1 * rng.random(128))
            record = Partial.of(
                [Table(keys, values[:, None])], both, groups=np.zeros(128, int)
            ).sums
            moved, claim = distance(record, [np.zeros_like(record[0])], both, None)
            assert moved <= claim
