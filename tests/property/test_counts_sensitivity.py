"""How far counts can move, of octaves and places of columns and of targets: up to the claim."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rounds import CELLS, ROUNDED, asked_by, exact_sums, moved, some_cells, unknown_tables

from discreet._keys import MISSING
from discreet.features.base import FEATURE_RADIUS
from discreet.features.columns import Bins, TableColumns
from discreet.privacy import Neighbours, Privacy
from discreet.readers.glm.mechanism import GLM
from discreet.readers.rounds.counts import Counts
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Table

UNKNOWN = unknown_tables()
GROUP_ROWS = [0.5, 1.0, 3.0]
SPEND = {"epsilon": 1.0, "delta": 1e-6}


@cache
def counts_of(name, neighbours="add_remove", group_rows=None):
    """A pass in which a classifier finds columns, or a regression finds where targets are."""
    kernel = UNKNOWN.get(name, TableColumns((Bins((0.0,)),) * 3))
    options = SPEND | {"features": kernel, "neighbours": neighbours}
    groups, keys = None, some_cells(kernel, 4_000)
    if group_rows is not None:
        options["group_rows"], groups = group_rows, np.arange(len(keys))
    if name in UNKNOWN:
        labels = np.arange(len(keys)) % 2
        asked, _ = asked_by(SOFTMAX, keys, labels, groups, classes=[0, 1], **options)
    else:
        values = np.random.default_rng(0).uniform(0.15, 0.5, (len(keys), 2))
        asked, _ = asked_by(GLM, keys, values, groups, **options)
    counted = [each for each in asked if isinstance(each.settings.layouts[0], Counts)]
    assert len(counted) == (1 if name in UNKNOWN else len(TARGETS))
    return counted[TARGETS.index(name) if name in TARGETS else 0], len(kernel.columns)


TARGETS = ["targets in the whole range", "targets in a part of it"]
NAMES = [*UNKNOWN, *TARGETS]
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-200, 1e300, -1e300, 0.5, 1 - 2.0**-53, -0.0]),
    st.floats(-1.5, 1.5),
)


@st.composite
def drawn_rows(draw, columns, sizes):
    """Cells, and targets of two outputs."""
    count = draw(sizes)
    keys = draw(hnp.arrays(np.float64, (count, columns), elements=CELLS))
    return keys, draw(hnp.arrays(np.float64, (count, 2), elements=NUMBERS))


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data())
def test_one_row_moves_counts_by_at_most_the_claim(name, neighbours, data):
    this, columns = counts_of(name, neighbours=neighbours)
    keys, values = data.draw(drawn_rows(columns, st.just(3)))
    at = data.draw(st.integers(0, 2))
    if neighbours is Neighbours.ADD_REMOVE:
        other = np.delete(keys, at, axis=0), np.delete(values, at, axis=0)
    else:
        other = keys.copy(), values.copy()
        [other[0][at]], [other[1][at]] = data.draw(drawn_rows(columns, st.just(1)))
    assert distance(this, (keys, values), other) <= ROUNDED


@pytest.mark.parametrize("group_rows", GROUP_ROWS)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", ["several", *TARGETS])
@settings(max_examples=25)
@given(data=st.data())
def test_one_record_moves_counts_by_at_most_the_claim(name, neighbours, group_rows, data):
    this, columns = counts_of(name, neighbours=neighbours, group_rows=group_rows)
    sizes = st.integers(1, 6)
    one, new, rest = (data.draw(drawn_rows(columns, each)) for each in (sizes, sizes, st.just(3)))
    if neighbours is Neighbours.ADD_REMOVE:
        new = new[0][:0], new[1][:0]
    both = (
        (
            np.concatenate([keys, rest[0]]),
            np.concatenate([values, rest[1]]),
            np.array([7] * len(values) + [1, 1, 2]),
        )
        for keys, values in (one, new)
    )
    assert distance(this, *both) <= ROUNDED


def distance(this, *both):
    return moved(
        this.settings, *(exact_sums(this.settings, *each, view=this.view) for each in both)
    )


def extremes(columns):
    """Two rows that share no cell in any column, nor any target."""
    return (
        (np.full((1, columns), 3.0), np.full((1, 2), 0.2)),
        (np.full((1, columns), 400.0), np.full((1, 2), 0.45)),
    )


# All rows have the constant of 2^16 - 1 units, of the radius of 2^16 that is claimed.
CONSTANT = (FEATURE_RADIUS - 1) / FEATURE_RADIUS


@pytest.mark.parametrize("name", NAMES)
def test_an_added_row_moves_counts_by_exactly_the_root_of_its_marks(name):
    this, columns = counts_of(name)
    one, other = extremes(columns)
    nothing = (one[0][:0], one[1][:0])
    for row in (one, other):
        assert distance(this, row, nothing) == pytest.approx(CONSTANT, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_is_replaced_by_another_in_every_cell_reaches_the_claim(name):
    this, columns = counts_of(name, neighbours="replace")
    reached = distance(this, *extremes(columns))
    assert reached == pytest.approx(CONSTANT, rel=1e-12)
    [layout] = this.settings.layouts
    in_rows = this.settings.sensitivity(layout) * layout.real_unit
    assert in_rows == pytest.approx(math.sqrt(2 * layout.marks), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_sums_move_by_one_row_in_each_marked_cell_and_nowhere_else(name):
    this, columns = counts_of(name)
    [layout] = this.settings.layouts
    row, other = extremes(columns)
    [sums] = exact_sums(this.settings, *row, view=this.view)
    assert sums.shape == (1, layout.cells, 2)
    np.testing.assert_allclose(np.unique(sums * layout.real_unit), [0, CONSTANT], rtol=1e-12)
    assert np.count_nonzero(sums) == layout.marks
    [twice] = exact_sums(
        this.settings,
        *(np.concatenate(each) for each in zip(row, row, other, strict=True)),
        view=this.view,
    )
    counts = np.unique(twice * layout.real_unit)
    np.testing.assert_allclose(counts, np.arange(3) * CONSTANT, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(data=st.data())
def test_marks_are_the_same_alone_and_in_any_batch_and_in_range(name, data):
    this, columns = counts_of(name)
    [layout] = this.settings.layouts
    keys, values = data.draw(drawn_rows(columns, st.integers(1, 30)))
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(keys))

    def marks(keys, values):
        zeros, read = this.view(Table(keys, values)).read(slice(0, len(keys)))
        assert not np.any(zeros)
        return read

    whole = marks(keys, values)
    assert whole.shape == (len(keys), layout.marks)
    assert np.all((whole >= -1) & (whole < layout.cells) & (whole == np.rint(whole)))
    marked = whole[whole >= 0]
    assert len(marked) == sum(len(np.unique(row[row >= 0])) for row in whole)  # none twice
    assert np.array_equal(marks(keys[order], values[order]), whole[order])
    for at in range(len(keys)):
        assert np.array_equal(marks(keys[at : at + 1], values[at : at + 1])[0], whole[at])


def test_columns_of_different_kinds_have_cells_of_their_own():
    """What is missing, and a category that is no place, marks none."""
    this, _ = counts_of("several")

    def marks(*row):
        return this.view(Table(np.array([row]), np.zeros((1, 1)))).read(slice(0, 1))[1][0].tolist()

    assert marks(0.0, 0.0, 0.0, 0.0, 0.0) == [52, 157, 210, 722, 1234]
    assert marks(1e99, -1e99, 511.0, 512.0, -1.0) == [104, 105, 721, -1, -1]
    assert marks(MISSING, MISSING, MISSING, MISSING, 511.0) == [-1, -1, -1, -1, 1745]
    assert this.settings.layouts[0].cells == 2 * 105 + 3 * 512


def layout_settings(group_rows, neighbours=Neighbours.ADD_REMOVE, cells=6, marks=2):
    return Settings(
        layouts=(Counts(cells=cells, marks=marks),),
        privacy=Privacy(1.0, 1e-6, neighbours),
        unit=Unit.RECORD,
        group_rows=group_rows,
    )


@settings(max_examples=60)
@given(
    values=hnp.arrays(
        np.float64, st.tuples(st.integers(1, 9), st.just(2)), elements=st.integers(-3, 9).map(float)
    )
)
def test_whatever_a_row_marks_its_length_is_at_most_the_root_of_the_marks(values):
    """Cells that do not exist mark none, and a cell that is marked twice counts once."""
    layout = Counts(cells=6, marks=2)
    marked = layout.weighed(np.zeros((1, len(values), 2)), values, None)[0]
    assert marked.shape == (len(values), 6)
    for row, given_ in zip(marked, values, strict=True):
        inside = {int(each) for each in given_ if 0 <= each < 6}
        assert np.flatnonzero(row).tolist() == sorted(inside)
        longest = math.sqrt(2) / layout.real_unit / FEATURE_RADIUS
        assert np.linalg.norm(row) <= longest * (1 + 1e-12)


@pytest.mark.parametrize(
    ("size", "group_rows"), [(1, 1.0), (1, 3.0), (3, 3.0), (129, 0.5), (129, 100.0), (500, 3.0)]
)
def test_counted_records_reach_the_claim(size, group_rows):
    for neighbours in Neighbours:
        this = layout_settings(group_rows, neighbours)
        reached = record_moves(this, size)
        if neighbours is Neighbours.REPLACE:  # an opposite one is at most twice as far away
            reached *= 2
        assert 0.98 * min(size / group_rows, 1.0) <= reached <= ROUNDED


def record_moves(this, size):
    sums = exact_sums(
        this, np.zeros((size, 1)), np.tile([0.0, 4.0], (size, 1)), np.zeros(size, int)
    )
    return moved(this, sums, [np.zeros_like(part) for part in sums])


@pytest.mark.parametrize(
    ("size", "group_rows"), [(1, 0.5), (2, 1.0), (4, 3.0), (100, 3.0), (128, 0.5)]
)
def test_short_records_over_the_cap_count_for_their_cap_and_not_for_nothing(size, group_rows):
    reached = record_moves(layout_settings(group_rows), size)
    assert 0.9 <= reached <= ROUNDED
