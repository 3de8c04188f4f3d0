"""Edges and categories that are found: where rows are, and by nothing but released counts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import rounds_of, settings_of, some_cells, unknown_tables

import discreet
from discreet._keys import MISSING, PLACES
from discreet.features.base import FEATURE_RADIUS
from discreet.features.columns import BINS, MOST_FOUND, Bins, Categories, TableColumns, Unknown
from discreet.readers.rounds.finding import octaves, with_found
from discreet.sums.door import Door
from discreet.sums.source import Form, RowSource
from discreet.testing import Seeded, Silent

NUMBERS, PLACED = Unknown(numbers=True), Unknown(numbers=False)

# The ends of octaves: cell 52 is the middle one.
ENDS = [2.0**power for power in range(-12, 41)]


def cell_of(number):
    """By comparing with all ends, which are exact."""
    above = sum(abs(number) >= end for end in ENDS[:-1])
    return 52 + int(math.copysign(above, number))


@settings(max_examples=300)
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(-5000, 5000),
        st.integers(-1074, 1023).map(lambda power: 2.0**power),
        st.sampled_from([1, -1]).flatmap(
            lambda sign: st.sampled_from(ENDS).map(lambda end: sign * math.nextafter(end, 0))
        ),
        st.sampled_from([0.0, -0.0, MISSING, 5e-324, -5e-324, 1.7e308]),
    )
)
def test_the_octave_of_a_number_is_that_of_its_exponent(number):
    [cell] = octaves(np.array([number]))
    assert 0 <= cell <= 104
    assert cell == cell_of(number)


def found(columns, keys, *, epsilon=1.0, entropy=None, share=0.05, **changes):
    """The columns after they were found in some rows."""
    layout = rounds_of(TableColumns(columns), finding=share)
    rows = RowSource.of(keys, np.zeros((len(keys), 1)), None, Form(passes=True))
    whole = settings_of(layout, epsilon=epsilon, **changes)
    with Door(whole, entropy=entropy or Silent(), passes=19) as door:
        return with_found(rows, door, layout).kernel.columns


def masses(column, numbers):
    """The share of numbers in each bin."""
    bins = np.searchsorted(column.edges, numbers, side="right")
    return np.bincount(bins, minlength=len(column.edges) + 1) / len(numbers)


@pytest.mark.parametrize("entropy", [Silent(), Seeded(1)], ids=["silent", "noisy"])
@pytest.mark.parametrize(
    ("low", "high"), [(-1024.0, 1024.0), (0.0, 2048.0), (4.0, 4096.0), (-512.0, -1.0)]
)
def test_bins_hold_about_as_many_rows_each(low, high, entropy):
    """Of whole octaves: noise tells nothing about what is within one."""
    numbers = np.random.default_rng(0).uniform(low, high, 40_000)
    [column] = found((NUMBERS,), numbers[:, None], entropy=entropy)
    assert isinstance(column, Bins)
    assert column.found
    shares = masses(column, numbers)
    assert len(shares) == BINS
    np.testing.assert_allclose(shares, 1 / BINS, rtol=0.2)


def test_numbers_in_one_octave_have_all_bins_in_it():
    numbers = np.random.default_rng(0).uniform(1e6, 1.04e6, 40_000)
    [column] = found((NUMBERS,), numbers[:, None])
    assert 2.0**19 <= column.edges[0] < column.edges[-1] <= 2.0**20


def test_bins_of_amounts_hold_about_as_many_rows_each():
    """Within an octave rows are taken to be spread evenly, which is half of the truth."""
    numbers = np.random.default_rng(1).lognormal(5, 2, 40_000)
    [column] = found((NUMBERS,), numbers[:, None], entropy=Seeded(2))
    shares = masses(column, numbers)
    assert len(shares) == BINS
    assert 0.5 / BINS < shares.min() < shares.max() < 2 / BINS


def test_where_rows_are_few_there_are_fewer_bins_and_noise_makes_none_far_off():
    rng = np.random.default_rng(2)
    for rows in (0, 5, 400):
        [column] = found((NUMBERS,), rng.uniform(1, 100, (rows, 1)), entropy=Seeded(3))
        assert 1 <= len(column.edges) < BINS
        assert np.all(np.diff(column.edges) > 0)
    numbers = rng.uniform(1, 100, 2_000)
    [column] = found((NUMBERS,), numbers[:, None], entropy=Seeded(3))
    assert -100 < column.edges[0] < column.edges[-1] < 400


def test_frequent_categories_are_found_and_no_others():
    rng = np.random.default_rng(3)
    places = rng.choice([3.0, 77.0, 400.0], 6_000, p=[0.5, 0.3, 0.2])
    places[:40] = MISSING
    [column] = found((PLACED,), places[:, None])
    assert column == Categories((3, 77, 400), found=True)
    [column] = found((PLACED,), places[:, None], entropy=Seeded(0))
    assert set(column.places) >= {3, 77, 400}
    assert len(column.places) <= MOST_FOUND


def test_at_most_so_many_categories_are_kept_the_most_frequent_of_them():
    places = np.repeat(np.arange(PLACES, dtype=float), 300 + np.arange(PLACES) * 20)
    [column] = found((PLACED,), places[:, None], epsilon=5.0)
    assert column.places == tuple(range(PLACES - MOST_FOUND, PLACES))


def test_columns_that_are_known_stay_as_they_are_and_each_unknown_one_is_found_by_itself():
    rng = np.random.default_rng(4)
    keys = np.stack(
        [
            rng.uniform(0, 50, 9_000),
            rng.integers(0, 3, 9_000) * 10.0,
            rng.uniform(-8, 0, 9_000),
            rng.integers(0, 2, 9_000) + 500.0,
        ],
        axis=1,
    )
    known = Bins((1.0, 2.0))
    columns = found((known, PLACED, NUMBERS, PLACED), keys)
    assert columns[0] is known
    assert columns[1].places == (0, 10, 20)
    assert -8 <= columns[2].edges[0] < columns[2].edges[-1] <= 0
    assert columns[3].places == (500, 501)
    alone = found((NUMBERS,), keys[:, 2:3], epsilon=1.0)
    np.testing.assert_allclose(columns[2].edges, alone[0].edges, atol=0.2)


class Told(Door):
    """A door that releases what a test tells it to."""

    def __init__(self, told, *given, **options):
        super().__init__(*given, **options)
        self.told = told

    def sum(self, layout, rows, **options):
        [shape] = layout.shapes
        super().sum(layout, rows, **options)
        state = np.zeros(shape, dtype=np.int64)
        state[0, :, 0] = np.rint(self.told(layout.cells) / layout.real_unit)
        state[0, :, 1] = 10**9  # the other feature says nothing
        return [state]


@pytest.mark.parametrize("kind", unknown_tables())
@pytest.mark.parametrize("scale", [0.0, 10.0, 1e3, 1e9])
def test_what_is_found_depends_on_nothing_but_the_released_counts(kind, scale):
    kernel = unknown_tables()[kind]
    layout = rounds_of(kernel, finding=0.05)
    columns = set()
    for seed in (0, 1):
        rows = RowSource.of(
            some_cells(kernel, 30 + seed, seed), np.zeros((30 + seed, 1)), None, Form(passes=True)
        )
        told = np.random.default_rng(5)
        whole = settings_of(layout)
        with Told(lambda cells: told.normal(size=cells) * scale, whole, entropy=Silent()) as door:  # noqa: B023
            columns.add(with_found(rows, door, layout).kernel.columns)
    [found_] = columns
    assert not any(isinstance(each, Unknown) for each in found_)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.0, 1e-9, 1.0, 100.0, 1e4, 1e7]))
def test_whatever_is_released_makes_columns_that_rows_can_be_mapped_by(seed, scale):
    layout = rounds_of(TableColumns((NUMBERS, PLACED, NUMBERS)), finding=0.05)
    rows = RowSource.of(np.zeros((1, 3)), np.zeros((1, 1)), None, Form(passes=True))
    rng = np.random.default_rng(seed)
    tell = lambda cells: rng.standard_cauchy(size=cells).clip(-1e3, 1e3) * scale  # noqa: E731
    with Told(tell, settings_of(layout), entropy=Silent()) as door:
        kernel = with_found(rows, door, layout).kernel
    features = kernel.key_features(np.array([[0.0, 1.0, -5.0], [MISSING] * 3])).features
    assert np.all(np.linalg.norm(features, axis=1) <= FEATURE_RADIUS)
    assert kernel.columns[1].width <= MOST_FOUND


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_a_table_of_which_nothing_can_be_found_is_still_released(neighbours):
    """Three rows: whatever is found is noise."""
    kernel = TableColumns((NUMBERS, PLACED))
    for seed in range(5):
        made = discreet.softmax_regression(
            np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]),
            [0, 1, 0],
            classes=[0, 1],
            features=kernel,
            epsilon=0.5,
            delta=1e-6,
            neighbours=neighbours,
            entropy=Seeded(seed),
        )
        shape = made.probabilities(np.array([[1.0, 5.0], [MISSING, MISSING]])).shape
        assert shape == (2, 2)
        assert np.all(np.isfinite(made.stderr(np.array([[1.0, 5.0]]))))


def test_a_layout_without_unknown_columns_asks_for_nothing():
    layout = rounds_of(TableColumns((Bins((0.0,)),)))
    assert with_found(None, None, layout) is layout
    assert replace(layout, finding=0.0).besides == layout.besides
