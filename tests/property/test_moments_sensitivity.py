"""How far the sums of least squares can move, both parts together: up to the claim, never beyond.

Distances are measured in the noise that is really drawn: Σ (Δ/σ)² over all parts, in exact
arithmetic, against the mechanism's own (√heads/σ)².
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from maps import KINDS, maps

from discreet.privacy import Neighbours, Privacy
from discreet.readers.least_squares.layout import Moments
from discreet.sums import records
from discreet.sums.partial import Partial
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Table

MAPS = maps(2, 2.0)
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-200, 1e300, -1e300, 0.49999, 2.0]), st.floats(-3, 3)
)


def settings_of(kind, neighbours, unit=Unit.ROW, group_rows=1.0, **changes):
    options = {"heads": (), "tau": 0.4, "value_norm": 1.3, "resolution": 18, "share": 0.25}
    options |= {"ridge": 0.5, "centred": False}
    layout = Moments(kernel=MAPS[kind], value_dim=2, **options | changes)
    return Settings(
        layouts=(layout,),
        privacy=Privacy(1.0, 1e-6, neighbours),
        unit=unit,
        group_rows=group_rows,
    )


def sums(rows, both, groups=None):
    """The exact sums over rows of shape (heads, n, 4): two numbers of key, two of value."""
    rows = np.asarray(rows, dtype=float)
    heads = both.layouts[0].heads
    table = Table(rows[..., :2].reshape(*heads, -1, 2), rows[..., 2:].reshape(*heads, -1, 2))
    return Partial.of([table], both, groups=groups).sums


def moved(one, other, both):
    """The distance of two sums in units of their noise, over what the mechanism claims."""
    [layout] = both.layouts
    squared = sum(
        Fraction(sum(int(x) ** 2 for x in (a - b).ravel())) / Fraction(law.sigma) ** 2
        for a, b, law in zip(one, other, both.laws(layout), strict=True)
    )
    claim = Fraction(both.mechanism.sensitivity) / Fraction(both.mechanism.sigma)
    return math.sqrt(squared / claim**2)


def drawn_rows(heads, count):
    return hnp.arrays(np.float64, (heads, count, 4), elements=NUMBERS)


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=250)
@given(
    kind=st.sampled_from(KINDS),
    tau=st.sampled_from([0.1, 2.5]),
    share=st.sampled_from([0.05, 0.25, 0.9]),
    data=st.data(),
)
def test_one_row_moves_the_sums_by_at_most_the_claim(kind, neighbours, tau, share, data):
    both = settings_of(kind, neighbours, heads=(2,), tau=tau, share=share)
    rows = data.draw(drawn_rows(2, 3))
    at = data.draw(st.integers(0, 2))
    if neighbours is Neighbours.ADD_REMOVE:
        other = np.delete(rows, at, axis=1)
    else:
        other = rows.copy()
        other[:, at] = data.draw(drawn_rows(2, 1))[:, 0]
    assert moved(sums(rows, both), sums(other, both), both) <= 1


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=80)
@given(
    kind=st.sampled_from(["linear", "waves"]),
    group_rows=st.sampled_from([0.3, 1.0, 2.5]),
    data=st.data(),
)
def test_one_record_moves_the_sums_by_at_most_the_claim(kind, neighbours, group_rows, data):
    both = settings_of(kind, neighbours, Unit.RECORD, group_rows, heads=(2,))
    size = data.draw(st.integers(1, 6))
    rows = data.draw(drawn_rows(2, size + 3))
    groups = np.array([7] * size + [1, 1, 2])
    if neighbours is Neighbours.ADD_REMOVE:
        other, others = rows[:, size:], groups[size:]
    else:
        new = data.draw(st.integers(1, 6))
        other = np.concatenate([data.draw(drawn_rows(2, new)), rows[:, size:]], axis=1)
        others = np.array([7] * new + [1, 1, 2])
    assert moved(sums(rows, both, groups), sums(other, both, others), both) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_reaches_the_claim(kind):
    rows = np.tile([2.0, 0.0, 0.0, 1.3], (2, 1, 1))
    for share in (0.05, 0.25, 0.9):
        both = settings_of(kind, Neighbours.ADD_REMOVE, heads=(2,), share=share)
        assert 0.98 <= moved(sums(rows, both), sums(rows[:, :0], both), both) <= 1


@pytest.mark.parametrize("kind", ["linear", "rays"])
def test_opposite_keys_with_the_same_value_reach_the_claim_for_replaced_rows(kind):
    one, other = ([[[x, 0.0, 0.0, 1.3]]] for x in (2.0, -2.0))
    for share in (0.05, 0.25, 0.4):
        both = settings_of(kind, Neighbours.REPLACE, share=share)
        assert 0.98 <= moved(sums(one, both), sums(other, both), both) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_opposite_values_at_one_key_reach_the_claim_where_tau_is_small(kind):
    both = settings_of(kind, Neighbours.REPLACE, tau=0.13)
    one, other = ([[[2.0, 0.0, 0.0, v]]] for v in (1.3, -1.3))
    assert 0.98 <= moved(sums(one, both), sums(other, both), both) <= 1


def test_rows_at_right_angles_reach_the_claim_where_second_moments_have_most_of_the_budget():
    """The best of a parabola that has its top inside: neither the same key nor the opposite one."""
    both = settings_of("linear", Neighbours.REPLACE, share=0.9)
    angles = np.linspace(0, math.pi, 400)
    best = max(
        moved(
            sums([[[2.0, 0.0, 0.0, 1.3]]], both),
            sums([[[2 * math.cos(a), 2 * math.sin(a), 0.0, sign * 1.3]]], both),
            both,
        )
        for a in angles
        for sign in (1, -1)
    )
    assert 0.98 <= best <= 1


@pytest.mark.parametrize("size", [2, 100, 128, 129, 3_000])
@pytest.mark.parametrize("kind", ["waves", "rays"])
def test_records_are_cut_exactly_and_not_more_than_needed(kind, size):
    drawn = np.random.default_rng(size).normal(size=(1, size, 4)) * [3, 3, 1, 1]
    for neighbours in Neighbours:
        both = settings_of(kind, neighbours, Unit.RECORD)
        for rows in (drawn, np.broadcast_to([1.0, 1.0, 0.9, 0.9], drawn.shape)):
            record = sums(rows, both, np.zeros(size, int))
            nothing = [np.zeros_like(part) for part in record]
            reached = moved(record, nothing, both) * (2 if neighbours is Neighbours.REPLACE else 1)
            assert 0.98 <= reached <= 1


@settings(max_examples=40)
@given(data=st.data())
def test_norms_of_short_records_are_exact(data):
    """Large and small inner products of both signs, where floating point would lose the small."""
    size = data.draw(st.integers(1, 5))
    numbers = st.integers(-(2**32), 2**32) | st.integers(-3, 3)
    inner = data.draw(hnp.arrays(np.int64, (2, 3, size, size), elements=numbers))
    found = records._squared_grams(inner)
    exact = [sum(int(x) ** 2 for x in inner[:, record].ravel()) for record in range(3)]
    np.testing.assert_allclose(found, np.array(exact, dtype=float), rtol=1e-14)


def test_second_moments_have_their_share_of_the_budget():
    for share in (0.05, 0.25, 0.9):
        both = settings_of("linear", Neighbours.ADD_REMOVE, share=share)
        [layout] = both.layouts
        _, diagonal, upper = sums([[[2.0, 0.0, 0.0, 1.3]]], both)
        _, on, above = both.laws(layout)
        spent = np.sum((diagonal / on.sigma) ** 2) + np.sum((upper / above.sigma) ** 2)
        assert spent * both.multiplier**2 == pytest.approx(share, rel=1e-3)
