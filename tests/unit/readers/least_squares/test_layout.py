"""What a row adds to least squares, and what is claimed of it."""

import math

import numpy as np
import pytest
from data import unit_rows
from maps import KINDS, maps

from discreet import InvalidInput
from discreet.kernels import FEATURE_RADIUS
from discreet.privacy import Neighbours, Privacy
from discreet.readers.least_squares.layout import Moments
from discreet.sums.partial import Partial
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Table

MAPS = maps(3)
OPTIONS = {"heads": (), "value_dim": 2, "value_norm": 1.0, "tau": 0.25, "resolution": 14}


def layout(kind="linear", **changes):
    return Moments(
        kernel=MAPS[kind], **OPTIONS | {"share": 0.25, "ridge": 0.5, "centred": False} | changes
    )


def sums(each, keys, values, groups=None):
    unit = Unit.ROW if groups is None else Unit.RECORD
    settings = Settings(
        layouts=(each,), privacy=Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE), unit=unit
    )
    return Partial.of([Table(keys, values)], settings, groups=groups).sums


@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_are_those_of_a_loop_over_rows(kind):
    each = layout(kind, heads=(2,))
    keys, values = unit_rows(80, 3).reshape(2, 40, 3), unit_rows(80, 2, seed=1).reshape(2, 40, 2)
    state, diagonal, upper = sums(each, keys, values)
    for head in range(2):
        features = each.kernel.key_features(keys[head]).features.astype(np.int64)
        weighed = each.weigh(values[head], None).astype(np.int64)
        assert np.array_equal(state[head], sum(map(np.outer, weighed, features)))
        moments = sum(map(np.outer, features, features))
        assert np.array_equal(each.matrices(diagonal, upper)[head], moments)
        assert np.array_equal(diagonal[head], np.diag(moments))
        assert np.array_equal(upper[head], moments[np.triu_indices(len(moments), 1)])


def test_bounds_do_not_depend_on_who_asks_first():
    """A bound that one question leaves behind must not answer another."""
    orders = (("part_weights", "row_bound"), ("row_bound", "part_weights"), ("row_bound",))
    bounds = set()
    for names in orders:
        each = layout()
        for name in names:
            getattr(each, name)
        bounds.add(each.row_bound)
    assert len(bounds) == 1
    [bound] = bounds
    assert bound == pytest.approx(layout().outer_bound / math.sqrt(0.75), rel=1e-9)
    assert bound > layout().outer_bound


def test_replaced_rows_move_less_than_twice_an_added_one():
    """The second moments of two rows do not point in opposite directions, ever."""
    for kind in KINDS:
        for share in (0.05, 0.25, 0.5, 0.9):
            each = layout(kind, share=share)
            ratio = each.row_sensitivity(Neighbours.REPLACE) / each.row_bound
            # If features could be opposite: all of it in w ⊗ a, as far as that pays.
            outer = min((1 - share) / (2 * share), 1.0)
            largest = 2 * (1 + (1 - share) * outer - share * outer**2)
            assert math.sqrt(2) * 0.999 <= ratio <= math.sqrt(largest) * 1.0001
    mostly = layout("linear, nearly constant", share=0.9)
    assert mostly.row_sensitivity(Neighbours.REPLACE) < 1.5 * mostly.row_bound


def test_sums_of_many_rows_stay_exact():
    each = layout("waves", share=0.25)
    assert each.exact_rows * FEATURE_RADIUS**2 / 20 <= 2**53
    assert layout().exact_rows * FEATURE_RADIUS**2 <= 2**53
    assert layout().most_rows * FEATURE_RADIUS**2 <= 2**62
    assert layout(share=0.0, moment=np.eye(5) / 5).exact_rows > layout().exact_rows


def test_without_second_moments_it_is_the_layout_of_a_memory():
    each = layout(share=0.0)
    assert each.part_names == ("state",)
    assert each.row_bound == each.outer_bound
    assert len(sums(each, unit_rows(5, 3), unit_rows(5, 2))) == 1


def test_a_moment_stays_as_it_was_checked():
    base = np.zeros((5, 10))
    each = layout(share=0.0, moment=base[:, :5])
    base[:] = np.nan
    assert np.all(each.moment == 0)


def test_too_many_rows_and_too_much_noise_are_refused_with_what_helps():
    with pytest.raises(InvalidInput, match=r"rows on this lattice\.$"):
        layout().check_rows(2**40)
    with pytest.raises(InvalidInput, match="raise rows_hint"):
        layout(resolution=22).check_rows(2**40)
    with pytest.raises(InvalidInput, match=r"share=0.001.*group_rows"):
        Settings(
            layouts=(layout(share=0.001),),
            privacy=Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE),
            unit=Unit.RECORD,
            group_rows=100.0,
        )


def test_it_comes_back_from_its_parameters_and_arrays():
    for each in (layout("waves"), layout("landmarks", share=0.0, moment=np.eye(25) / 25)):
        again = Moments.restore(each.parameters(), each.arrays())
        assert again == each
        assert again.row_bound == each.row_bound
        assert (again.moment is None) is (each.moment is None)


@pytest.mark.parametrize(
    "changes",
    [
        {"share": -0.1},
        {"share": 1.0},
        {"share": 1e-300},
        {"ridge": 0.0},
        {"centred": 1},
        {"share": 0.0, "moment": np.eye(4)},
        {"share": 0.0, "moment": np.full((5, 5), np.nan)},
        {"share": 0.0, "moment": np.eye(5, dtype=np.float32)},
    ],
)
def test_shares_and_moments_that_make_no_sense_are_refused(changes):
    with pytest.raises(InvalidInput, match=r"share|moment|ridge|centred"):
        layout(**changes)


def test_a_record_counts_as_much_as_it_may_whatever_the_order_of_its_rows():
    each = layout("waves")
    keys, values = unit_rows(30, 3), unit_rows(30, 2, seed=1)
    groups = np.arange(30) // 5
    order = np.random.default_rng(0).permutation(30)
    plain = sums(each, keys, values, groups)
    shuffled = sums(each, keys[order], values[order], groups[order])
    assert all(np.array_equal(a, b) for a, b in zip(plain, shuffled, strict=True))
    alone = [
        sums(each, keys[i : i + 5], values[i : i + 5], groups[i : i + 5]) for i in range(0, 30, 5)
    ]
    for part, ones in zip(plain, zip(*alone, strict=True), strict=True):
        assert np.array_equal(part, sum(ones))
