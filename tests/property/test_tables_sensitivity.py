"""How far sums of a classifier of tables can move: up to the claim of every pass, never beyond.

As in `test_rounds_sensitivity.py`, for maps of columns, and for the calibration in two passes that
such maps have.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import (
    ROUNDED,
    asked_by,
    calibration,
    calibration_sums,
    drawn_cells,
    exact_sums,
    frequency,
    moved,
    round_of,
    rounds_of,
    settings_of,
    some_cells,
    tables,
    unknown_tables,
)

from discreet._keys import MISSING
from discreet.features.base import FEATURE_RADIUS
from discreet.features.columns import TableColumns
from discreet.privacy import Neighbours
from discreet.readers.rounds.layout import Weights
from discreet.readers.softmax.layout import confidence_and_curvature, label_and_probabilities
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.sums.settings import Unit
from discreet.sums.source import Table
from discreet.testing import Seeded

TABLES = tables()
KINDS = tuple(TABLES)
GROUP_ROWS = [0.5, 1.0, 3.0]
WHICH = ["first", "coarse first", "later"]
PASSES = {"confidence": calibration, "frequency": frequency}

# A row that is as long as any, of each map.
FULL = {
    "numbers": np.array([0.99, 0.0, 4.0]),
    "categories": np.array([1.0, MISSING, MISSING]),
    "mixed": np.array([0.5, 5.0, -5.0]),
    "mixed with waves": np.array([0.5, 5.0, -5.0]),
}


@st.composite
def drawn_rows(draw, classes, sizes):
    """Cells and labels."""
    count = draw(sizes)
    labels = np.array([draw(st.integers(0, classes - 1)) for _ in range(count)], dtype=np.int64)
    return draw(drawn_cells(count)), labels


@st.composite
def drawn_weights(draw, kind, classes):
    """W of any size: none, short, long, or far too long."""
    scale = draw(st.sampled_from([0.0, 1e-6, 1.0, 30.0, 1e4, 1e12]))
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).normal(size=(TABLES[kind].features, classes)) * scale


@st.composite
def drawn_round(draw, kind, classes, which, **of_all):
    """The first round, or one with any W."""
    whole = settings_of(rounds_of(TABLES[kind], classes), **of_all)
    if which == "first":
        return round_of(whole)
    if which == "coarse first":
        return round_of(whole, coarseness=draw(st.integers(1, 8)))
    return round_of(whole, draw(drawn_weights(kind, classes)))


@st.composite
def neighbouring_rows(draw, classes, neighbours):
    """Two tables that differ in one row."""
    keys, labels = draw(drawn_rows(classes, st.just(3)))
    at = draw(st.integers(0, 2))
    if neighbours is Neighbours.ADD_REMOVE:
        return (keys, labels), (np.delete(keys, at, axis=0), np.delete(labels, at))
    new_keys, new = keys.copy(), labels.copy()
    [new_keys[at]], [new[at]] = draw(drawn_rows(classes, st.just(1)))
    return (keys, labels), (new_keys, new)


@st.composite
def neighbouring_records(draw, classes, neighbours):
    """Two tables that differ in one record, which is there first, and their groups."""
    sizes = st.integers(1, 6)
    one, new, rest = (draw(drawn_rows(classes, each)) for each in (sizes, sizes, st.just(3)))
    if neighbours is Neighbours.ADD_REMOVE:
        new = new[0][:0], new[1][:0]
    return tuple(
        (
            np.concatenate([keys, rest[0]]),
            np.concatenate([labels, rest[1]]),
            np.array([7] * len(labels) + [1, 1, 2]),
        )
        for keys, labels in (one, new)
    )


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=120)
@given(kind=st.sampled_from(KINDS), which=st.sampled_from(WHICH), data=st.data())
def test_one_row_of_a_table_moves_a_round_by_at_most_the_claim(kind, neighbours, which, data):
    classes = data.draw(st.sampled_from([2, 3, 7]))
    this = data.draw(drawn_round(kind, classes, which, neighbours=neighbours))
    one, other = data.draw(neighbouring_rows(classes, neighbours))
    assert moved(this, exact_sums(this, *one), exact_sums(this, *other)) <= ROUNDED


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=80)
@given(
    kind=st.sampled_from(KINDS),
    group_rows=st.sampled_from(GROUP_ROWS),
    which=st.sampled_from(WHICH),
    data=st.data(),
)
def test_one_record_of_a_table_moves_a_round_by_at_most_the_claim(
    kind, group_rows, neighbours, which, data
):
    of_all = {"neighbours": neighbours, "unit": Unit.RECORD, "group_rows": group_rows}
    this = data.draw(drawn_round(kind, 3, which, **of_all))
    one, other = data.draw(neighbouring_records(3, neighbours))
    assert moved(this, exact_sums(this, *one), exact_sums(this, *other)) <= ROUNDED


@pytest.mark.parametrize("second", [False, True], ids=PASSES)
@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=50)
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_one_row_moves_both_passes_of_the_calibration_by_at_most_the_claim(
    kind, neighbours, second, data
):
    classes = data.draw(st.sampled_from([2, 3, 7]))
    whole = settings_of(rounds_of(TABLES[kind], classes), neighbours)
    weights = data.draw(drawn_weights(kind, classes))
    both = data.draw(neighbouring_rows(classes, neighbours))
    assert last_moved(whole, weights, *both, second=second) <= ROUNDED


@pytest.mark.parametrize("second", [False, True], ids=PASSES)
@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=40)
@given(kind=st.sampled_from(KINDS), group_rows=st.sampled_from(GROUP_ROWS), data=st.data())
def test_one_record_moves_both_passes_of_the_calibration_by_at_most_the_claim(
    kind, group_rows, neighbours, second, data
):
    layout = rounds_of(TABLES[kind], 3, resolution=14)
    whole = settings_of(layout, neighbours, Unit.RECORD, group_rows)
    weights = data.draw(drawn_weights(kind, 3))
    both = data.draw(neighbouring_records(3, neighbours))
    assert last_moved(whole, weights, *both, second=second) <= ROUNDED


def last_moved(whole, weights, *neighbours, second):
    """How far a pass of the calibration moves between two tables, over the claim."""
    sums = (calibration_sums(whole, weights, *each, second=second) for each in neighbours)
    return moved((frequency if second else calibration)(whole), *sums)


# --- bounds that are reached ----------------------------------------------------------------------


def towards(kind, length):
    """Coefficients that give the longest row of a map a score of this."""
    features = TABLES[kind].key_features(FULL[kind][None]).features[0] / FEATURE_RADIUS
    return length * features / (features @ features)


def between(kind, classes):
    """W with which that row is halfway between the first two classes, and of no other."""
    away = towards(kind, -50.0)
    return np.stack([0 * away] * 2 + [away] * (classes - 2), axis=1)


def sure(kind, classes):
    """W with which that row is of the first class, whatever the factor."""
    to = towards(kind, 200.0)
    return np.stack([to] + [0 * to] * (classes - 1), axis=1)


def pair(this, kind, one, other):
    """How far the longest row moves sums when its label changes."""
    sums = (exact_sums(this, FULL[kind][None], [label]) for label in (one, other))
    return moved(this, *sums)


def alone(this, keys, labels, groups=None):
    sums = exact_sums(this, keys, labels, groups)
    return moved(this, sums, [np.zeros_like(part) for part in sums])


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_of_a_table_reaches_the_claim(kind):
    for classes in (2, 5):
        whole = settings_of(rounds_of(TABLES[kind], classes))
        for weights in (None, between(kind, classes)):
            reached = alone(round_of(whole, weights), FULL[kind][None], [0])
            assert 0.97 <= reached <= ROUNDED


@pytest.mark.parametrize("kind", KINDS)
def test_opposite_residuals_of_a_table_reach_the_claim_for_replaced_rows(kind):
    for classes in (2, 5):
        whole = settings_of(rounds_of(TABLES[kind], classes), Neighbours.REPLACE)
        assert 0.97 <= pair(round_of(whole, between(kind, classes)), kind, 0, 1) <= ROUNDED
    first = round_of(settings_of(rounds_of(TABLES[kind]), Neighbours.REPLACE))
    assert 0.97 <= pair(first, kind, 0, 1) <= ROUNDED


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_a_table_is_at_most_as_long_as_the_radius_and_the_longest_is_nearly(kind):
    keys = np.concatenate([some_cells(TABLES[kind], 2_000), FULL[kind][None]])
    lengths = np.linalg.norm(TABLES[kind].key_features(keys).features, axis=1)
    assert 0.98 * FEATURE_RADIUS < lengths[-1] <= lengths.max() <= FEATURE_RADIUS


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize(
    ("size", "group_rows"), [(1, 0.5), (2, 1.0), (128, 0.5), (129, 1.0), (129, 100.0), (600, 3.0)]
)
def test_records_of_tables_are_cut_exactly_and_not_more_than_needed(which, group_rows, size):
    for kind in ("mixed", "mixed with waves"):
        for neighbours in Neighbours:
            layout = rounds_of(TABLES[kind], resolution=18 if group_rows < 9 else 10)
            whole = settings_of(layout, neighbours, Unit.RECORD, group_rows)
            weights = between(kind, 2) if which == "later" else None
            this = round_of(whole, weights, 4 if which == "coarse first" else 0)
            same = np.zeros(size, int)
            reached = alone(this, np.tile(FULL[kind], (size, 1)), same, same)
            if neighbours is Neighbours.REPLACE:  # an opposite record is twice as far away
                reached *= 2
            assert 0.97 * min(size / group_rows, 1.0) <= reached <= ROUNDED


NOTHING = (np.zeros((0, 3)), np.zeros(0, int))


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_that_is_sure_and_wrong_nearly_reaches_the_claim(kind):
    """Eight differences of -1 are √8 of 3; a row that is as sure has no curvature."""
    for classes in (2, 5):
        whole = settings_of(rounds_of(TABLES[kind], classes))
        wrong = (FULL[kind][None], [1])
        reached = last_moved(whole, sure(kind, classes), wrong, NOTHING, second=False)
        assert reached == pytest.approx(math.sqrt(8) / 3, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_with_a_probability_of_one_reaches_the_claim_of_the_second_pass(kind):
    for classes in (2, 5):
        whole = settings_of(rounds_of(TABLES[kind], classes))
        row = (FULL[kind][None], [1])
        reached = last_moved(whole, sure(kind, classes), row, NOTHING, second=True)
        assert 0.999 <= reached <= ROUNDED


def test_replaced_rows_reach_what_labels_and_probabilities_let_them():
    """No two of either are opposite: both change by √2, which is 2 of the claim of 2·√2."""
    whole = settings_of(rounds_of(TABLES["mixed"], 2), Neighbours.REPLACE)
    one, other = (FULL["mixed"][None], [1]), (FULL["mixed"][None] * [-1, 1, -1], [0])
    features = TABLES["mixed"].key_features(np.concatenate([one[0], other[0]])).features
    weights = np.linalg.lstsq(features / FEATURE_RADIUS, np.array([[99.0, -99], [-99, 99]]))[0]
    reached = last_moved(whole, weights, one, other, second=True)
    assert reached == pytest.approx(math.sqrt(1 / 2), rel=1e-3)


@pytest.mark.parametrize("second", [False, True], ids=PASSES)
@pytest.mark.parametrize(
    ("size", "group_rows"), [(1, 0.5), (2, 1.0), (100, 3.0), (128, 0.5), (129, 1.0), (500, 3.0)]
)
def test_calibration_records_of_tables_are_cut_exactly(group_rows, size, second):
    layout = rounds_of(TABLES["mixed"], resolution=16)
    whole = settings_of(layout, unit=Unit.RECORD, group_rows=group_rows)
    zeros = np.zeros(size, int)
    record = (np.tile(FULL["mixed"], (size, 1)), zeros + 1, zeros)
    nothing = (*NOTHING, zeros[:0])
    reached = last_moved(whole, sure("mixed", 2), record, nothing, second=second)
    most = min((1.0 if second else math.sqrt(8) / 3) * size / group_rows, 1.0)
    assert 0.98 * most <= reached <= ROUNDED


# --- every pass of a whole run --------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("kind", [*TABLES, *unknown_tables()])
def test_one_row_or_record_moves_all_passes_of_a_run_together_by_at_most_one(
    kind, unit, neighbours
):
    """All that a run asks for, with the W that it came to: Σ (Δ/σ)² is at most that of one σ."""
    kernel = (TABLES | unknown_tables())[kind]
    keys, labels = some_cells(kernel, 60), np.arange(60) % 3
    groups = None if unit is Unit.ROW else np.repeat(np.arange(12), 5)
    options = {"epsilon": 1.0, "delta": 1e-6, "classes": range(3), "features": kernel}
    options |= {"neighbours": neighbours, "group_rows": 1.0 if unit is Unit.ROW else 2.0}
    asked, _ = asked_by(SOFTMAX, keys, labels, groups, entropy=Seeded(3), **options)
    assert sum(each.settings.share for each in asked) == pytest.approx(1, abs=1e-12)
    for seed in range(4):
        changed = 1 if unit is Unit.ROW else 5
        new, rest = some_cells(kernel, changed, seed + 5) * 3, (keys[changed:], labels[changed:])
        other = rest
        if neighbours is Neighbours.REPLACE:
            again = np.full(changed, seed % 3)
            other = np.concatenate([new, rest[0]]), np.concatenate([again, rest[1]])
        ids = None if groups is None else groups[len(groups) - len(other[0]) :]
        together = 0.0
        for each in asked:
            one = exact_sums(each.settings, keys, labels, groups, view=each.view)
            two = exact_sums(each.settings, *other, ids, view=each.view)
            reached = moved(each.settings, one, two)
            assert reached <= ROUNDED
            together += each.settings.share * reached**2
        assert together <= 1 + 1e-12


# --- bits -----------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_residuals_curvature_and_probabilities_are_the_same_alone_and_in_any_batch(kind, data):
    classes = data.draw(st.sampled_from([2, 3, 7]))
    keys, labels = data.draw(drawn_rows(classes, st.integers(1, 40)))
    weights = data.draw(drawn_weights(kind, classes))
    this = rounds_of(TABLES[kind], classes).at(Weights.of(weights))
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(keys))

    def made(keys, labels):
        table = Table(keys, labels[:, None])
        read, values = table.read(slice(0, len(keys)))
        features, _ = table.features(this, read, np.empty(len(keys) * TABLES[kind].features))
        return np.concatenate(
            [
                features[0],
                this.weighed(features, values, None)[0],
                confidence_and_curvature(this, features[0], labels),
                label_and_probabilities(this, features[0], labels),
            ],
            axis=1,
        )

    whole = made(keys, labels)
    assert np.array_equal(made(keys[order], labels[order]), whole[order])
    front = np.concatenate([keys[::-1], keys]), np.concatenate([labels[::-1], labels])
    assert np.array_equal(made(*front)[len(keys) :], whole)
    for at in range(len(keys)):
        assert np.array_equal(made(keys[at : at + 1], labels[at : at + 1])[0], whole[at])


def test_a_map_of_columns_stays_what_it_is_if_a_column_of_it_is_empty():
    """A list without a category, and numbers in one bin: such rows say next to nothing."""
    for columns in ((TABLES["categories"].columns[2],), (TABLES["numbers"].columns[1],)):
        kernel = TableColumns(columns)
        keys = np.array([[0.0], [7.0], [MISSING]])
        features = kernel.key_features(keys).features
        assert features.shape == (3, kernel.features)
        assert np.all(np.linalg.norm(features, axis=1) <= FEATURE_RADIUS)
        assert np.array_equal(features[0], features[1])
