"""How far sums can move, of a round or of the last release: up to the claim, never beyond.

Distances are measured in the noise that is really drawn: Σ (Δ/σ)² over all parts, in exact
arithmetic, against the round's share of the mechanism's own (1/σ)².
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from maps import KINDS, maps
from rounds import (
    ROUNDED,
    calibration,
    calibration_sums,
    exact_sums,
    moved,
    round_of,
    rounds_of,
    settings_of,
)

from discreet.privacy import Neighbours
from discreet.sums.settings import Unit

MAPS = maps(2, 2.0)
LONG = np.array([2.0, 0.0])
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-200, 1e300, -1e300, 0.49999, 2.0]), st.floats(-3, 3)
)
GROUP_ROWS = [0.5, 1.0, 3.0]
WHICH = ["first", "coarse first", "later"]
ONE = st.just(1)


def drawn_keys(count):
    return hnp.arrays(np.float64, (count, 2), elements=NUMBERS)


@st.composite
def drawn_rows(draw, classes, sizes=ONE):
    """Keys and labels."""
    count = draw(sizes)
    labels = draw(hnp.arrays(np.int64, count, elements=st.integers(0, classes - 1)))
    return draw(drawn_keys(count)), labels


@st.composite
def drawn_round(draw, kind, classes, which, **of_all):
    """The first round, or one with any W: none, short, long, or far too long."""
    whole = settings_of(rounds_of(MAPS[kind], classes), **of_all)
    if which == "first":
        return round_of(whole)
    if which == "coarse first":
        return round_of(whole, coarseness=draw(st.integers(1, 8)))
    shape = (MAPS[kind].features, classes)
    scale = draw(st.sampled_from([0.0, 1e-6, 1.0, 30.0, 1e4, 1e12]))
    seed = draw(st.integers(0, 2**32 - 1))
    return round_of(whole, np.random.default_rng(seed).normal(size=shape) * scale)


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=150)
@given(kind=st.sampled_from(KINDS), which=st.sampled_from(WHICH), data=st.data())
def test_one_row_moves_a_round_by_at_most_the_claim(kind, neighbours, which, data):
    classes = data.draw(st.sampled_from([2, 3, 7]))
    this = data.draw(drawn_round(kind, classes, which, neighbours=neighbours))
    keys, labels = data.draw(drawn_rows(classes, st.just(3)))
    at = data.draw(st.integers(0, 2))
    if neighbours is Neighbours.ADD_REMOVE:
        other_keys, others = np.delete(keys, at, axis=0), np.delete(labels, at)
    else:
        other_keys, others = keys.copy(), labels.copy()
        [other_keys[at]], [others[at]] = data.draw(drawn_rows(classes))
    one, other = exact_sums(this, keys, labels), exact_sums(this, other_keys, others)
    assert moved(this, one, other) <= ROUNDED


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=110)
@given(
    kind=st.sampled_from(["linear", "lines and waves"]),
    group_rows=st.sampled_from(GROUP_ROWS),
    which=st.sampled_from(WHICH),
    data=st.data(),
)
def test_one_record_moves_a_round_by_at_most_the_claim(kind, group_rows, neighbours, which, data):
    of_all = {"neighbours": neighbours, "unit": Unit.RECORD, "group_rows": group_rows}
    this = data.draw(drawn_round(kind, 3, which, **of_all))
    sizes = st.integers(1, 6)
    (keys, labels), (new_keys, new), (rest_keys, rest) = (
        data.draw(drawn_rows(3, each)) for each in (sizes, sizes, st.just(3))
    )
    if neighbours is Neighbours.ADD_REMOVE:
        new_keys, new = new_keys[:0], new[:0]
    one, other = (
        exact_sums(
            this,
            np.concatenate([some_keys, rest_keys]),
            np.concatenate([some, rest]),
            np.array([7] * len(some) + [1, 1, 2]),
        )
        for some_keys, some in ((keys, labels), (new_keys, new))
    )
    assert moved(this, one, other) <= ROUNDED


def between(kind, classes, key=LONG):
    """W with which a key is halfway between the first two classes, and of no other."""
    features = MAPS[kind].key_features(key[None]).features[0] / MAPS[kind].unit
    away = -50.0 * features / (features @ features)
    return np.stack([0 * away] * 2 + [away] * (classes - 2), axis=1)


def pair(this, one, other):
    """How far the sums move from one row, (key, label), to another."""
    sums = (exact_sums(this, key[None], [label]) for key, label in (one, other))
    return moved(this, *sums)


def alone(this, keys, labels, groups=None):
    """How far rows move sums over nothing."""
    sums = exact_sums(this, keys, labels, groups)
    return moved(this, sums, [np.zeros_like(part) for part in sums])


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_reaches_the_claim(kind):
    for classes in (2, 5):
        whole = settings_of(rounds_of(MAPS[kind], classes))
        for weights in (None, between(kind, classes)):
            assert 0.98 <= alone(round_of(whole, weights), LONG[None], [0]) <= ROUNDED


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_nearly_reaches_the_claim_if_features_are_cut_before_they_are_squared(kind):
    """Cutting loses half a unit of each of r features, out of 2^(16 - coarseness) in all."""
    for coarseness in (1, 4, 8):
        this = round_of(settings_of(rounds_of(MAPS[kind])), coarseness=coarseness)
        lost = math.sqrt(MAPS[kind].features) * 2.0 ** (coarseness - 16)
        assert 0.98 - lost <= alone(this, LONG[None], [0]) <= ROUNDED


@pytest.mark.parametrize("kind", KINDS)
def test_opposite_residuals_at_one_key_reach_the_claim_for_replaced_rows(kind):
    for classes in (2, 5):
        whole = settings_of(rounds_of(MAPS[kind], classes), Neighbours.REPLACE)
        this = round_of(whole, between(kind, classes))
        assert 0.98 <= pair(this, (LONG, 0), (LONG, 1)) <= ROUNDED


@pytest.mark.parametrize("kind", KINDS)
def test_two_classes_at_one_key_reach_the_claim_of_the_first_round_for_replaced_rows(kind):
    this = round_of(settings_of(rounds_of(MAPS[kind]), Neighbours.REPLACE))
    assert 0.98 <= pair(this, (LONG, 0), (LONG, 1)) <= ROUNDED


def test_with_more_classes_the_first_round_claims_more_than_rows_can_do():
    """At W = 0 residuals of two classes are at 1/(1 - C), not at -1: slack that no row can use."""
    for classes in (2, 3, 10, 100):
        whole = settings_of(rounds_of(MAPS["linear"], classes), Neighbours.REPLACE)
        reached = pair(round_of(whole), (LONG, 0), (LONG, 1))
        assert reached == pytest.approx(math.sqrt((1 + 1 / (classes - 1)) / 2), rel=2e-3)


def test_rows_at_some_angle_reach_the_claim_where_second_moments_have_most_of_the_first_round():
    """The best of a parabola that has its top inside: neither the same key nor the opposite one."""
    whole = settings_of(rounds_of(MAPS["linear"], moments=0.25), Neighbours.REPLACE)
    this = round_of(whole)
    assert this.layouts[0].share > 0.8
    best = max(
        pair(this, (LONG, 0), (2 * np.array([math.cos(angle), math.sin(angle)]), label))
        for angle in np.linspace(0, math.pi, 200)
        for label in (0, 1)
    )
    assert 0.98 <= best <= ROUNDED


@pytest.mark.parametrize("kind", ["linear", "rays", "waves"])
def test_replaced_rows_reach_nine_tenths_of_the_claim_if_features_are_cut(kind):
    """The claim adds up two worst cases that no pair of rows has both: 2/√(4 + 2·s/(1 - s))."""
    this = round_of(settings_of(rounds_of(MAPS[kind]), Neighbours.REPLACE), coarseness=3)
    share = this.layouts[0].share
    reached = pair(this, (LONG, 0), (LONG, 1))
    assert reached == pytest.approx(1 / math.sqrt(1 + share / (1 - share) / 2), rel=0.01)
    assert 0.88 < reached < 0.91


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize(
    ("size", "group_rows"),
    [(1, 0.5), (1, 3.0), (2, 1.0), (100, 3.0), (128, 0.5), (129, 1.0), (2_000, 3.0)],
)
def test_records_are_cut_exactly_and_not_more_than_needed(which, group_rows, size):
    for kind in ("rays", "waves"):
        for neighbours in Neighbours:
            whole = settings_of(rounds_of(MAPS[kind]), neighbours, Unit.RECORD, group_rows)
            weights = between(kind, 2) if which == "later" else None
            this = round_of(whole, weights, 4 if which == "coarse first" else 0)
            keys = np.tile(LONG, (size, 1)) * (1 + np.arange(size)[:, None] % 5)
            reached = alone(this, keys, np.zeros(size, int), np.zeros(size, int))
            if neighbours is Neighbours.REPLACE:  # an opposite record is twice as far away
                reached *= 2
            wanted = min(size / group_rows, 1.0)
            assert 0.98 * wanted <= reached <= ROUNDED


@pytest.mark.parametrize(("size", "group_rows"), [(5, 1.0), (128, 0.5), (300, 3.0)])
def test_opposite_records_reach_the_claim_for_replaced_records(size, group_rows):
    whole = settings_of(rounds_of(MAPS["waves"]), Neighbours.REPLACE, Unit.RECORD, group_rows)
    this = round_of(whole, between("waves", 2))
    keys, groups = np.tile(LONG, (size, 1)), np.zeros(size, int)
    one, other = (exact_sums(this, keys, np.full(size, label), groups) for label in (0, 1))
    assert 0.98 <= moved(this, one, other) <= ROUNDED


@pytest.mark.parametrize("which", ["first", "coarse first", "later"])
@pytest.mark.parametrize("size", [40, 200])
def test_a_record_of_many_directions_is_cut_exactly(which, size):
    rng = np.random.default_rng(size)
    for kind in ("lines and waves", "landmarks that make no sense"):
        whole = settings_of(rounds_of(MAPS[kind], 3), unit=Unit.RECORD)
        weights = rng.normal(size=(MAPS[kind].features, 3)) * 3 if which == "later" else None
        this = round_of(whole, weights, 6 if which == "coarse first" else 0)
        keys = rng.normal(size=(size, 2)) * 3
        assert alone(this, keys, rng.integers(0, 3, size), np.zeros(size, int)) <= ROUNDED
        same = np.zeros(size, int)
        assert 0.97 <= alone(this, keys, same, same) <= ROUNDED


def test_second_moments_have_their_share_of_all_rounds():
    for moments in (0.01, 0.03, 0.2):
        whole = settings_of(rounds_of(MAPS["linear"], moments=moments))
        this = round_of(whole)
        _, diagonal, upper = exact_sums(this, LONG[None], [0])
        _, on, above = this.laws(this.layouts[0])
        spent = np.sum((diagonal / on.sigma) ** 2) + np.sum((upper / above.sigma) ** 2)
        assert spent * whole.multiplier**2 == pytest.approx(moments, rel=2e-3)


def last_moved(whole, weights, *neighbours):
    """How far the calibration moves between two tables (keys, labels, groups), over the claim."""
    sums = (calibration_sums(whole, weights, *each) for each in neighbours)
    return moved(calibration(whole), *sums)


@st.composite
def drawn_weights(draw, kind, classes):
    scale = draw(st.sampled_from([0.0, 1e-6, 1.0, 30.0, 1e4, 1e12]))
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).normal(size=(MAPS[kind].features, classes)) * scale


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=50)
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_one_row_moves_the_calibration_by_at_most_the_claim(kind, neighbours, data):
    classes = data.draw(st.sampled_from([2, 3, 7]))
    whole = settings_of(rounds_of(MAPS[kind], classes), neighbours)
    keys, labels = data.draw(drawn_rows(classes, st.just(3)))
    at = data.draw(st.integers(0, 2))
    if neighbours is Neighbours.ADD_REMOVE:
        other = np.delete(keys, at, axis=0), np.delete(labels, at)
    else:
        other = keys.copy(), labels.copy()
        [other[0][at]], [other[1][at]] = data.draw(drawn_rows(classes))
    weights = data.draw(drawn_weights(kind, classes))
    assert last_moved(whole, weights, (keys, labels), other) <= ROUNDED


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=40)
@given(
    kind=st.sampled_from(["linear", "lines and waves"]),
    group_rows=st.sampled_from(GROUP_ROWS),
    data=st.data(),
)
def test_one_record_moves_the_calibration_by_at_most_the_claim(kind, group_rows, neighbours, data):
    layout = rounds_of(MAPS[kind], 3, resolution=14)
    whole = settings_of(layout, neighbours, Unit.RECORD, group_rows)
    sizes = st.integers(1, 6)
    (keys, labels), (new_keys, new), (rest_keys, rest) = (
        data.draw(drawn_rows(3, each)) for each in (sizes, sizes, st.just(3))
    )
    if neighbours is Neighbours.ADD_REMOVE:
        new_keys, new = new_keys[:0], new[:0]
    one, other = (
        (
            np.concatenate([some_keys, rest_keys]),
            np.concatenate([some, rest]),
            np.array([7] * len(some) + [1, 1, 2]),
        )
        for some_keys, some in ((keys, labels), (new_keys, new))
    )
    assert last_moved(whole, data.draw(drawn_weights(kind, 3)), one, other) <= ROUNDED


NOTHING = (np.zeros((0, 2)), np.zeros(0, int))


def sure(kind, classes, key=LONG):
    """W with which a key is of the first class, whatever the factor."""
    features = MAPS[kind].key_features(key[None]).features[0] / MAPS[kind].unit
    towards = 200.0 * features / (features @ features)
    return np.stack([towards] + [0 * towards] * (classes - 1), axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_that_is_sure_and_wrong_reaches_the_claim(kind):
    """Each difference is -1 then, and with the label it is 3 long."""
    for classes in (2, 5):
        whole = settings_of(rounds_of(MAPS[kind], classes))
        weights = sure(kind, classes)
        assert 0.999 <= last_moved(whole, weights, (LONG[None], [1]), NOTHING) <= ROUNDED
        right = last_moved(whole, weights, (LONG[None], [0]), NOTHING)
        assert right == pytest.approx(1 / 3, rel=0.01)  # its label is all that it adds


def sure_of_long_ones(classes):
    """W with which LONG is of the first class, and a key of zero of all alike: then the first."""
    weights = np.zeros((MAPS["linear"].features, classes))
    weights[1, 0] = 400.0
    return weights


ZERO = np.zeros((1, 2))


@pytest.mark.parametrize("classes", [2, 3, 10, 200])
def test_replaced_rows_reach_what_labels_and_probabilities_let_them(classes):
    """From sure and wrong to unsure and right: 8 times 2 - 1/C, and two labels.

    No row is less sure than 1/C, and labels of two rows are never opposite: √(8·(2 - 1/C)² + 2) is
    all there is of the claim of 6, from 0.745 of it for two classes to 0.972 for many.
    """
    whole = settings_of(rounds_of(MAPS["linear"], classes), Neighbours.REPLACE)
    reached = last_moved(whole, sure_of_long_ones(classes), (LONG[None], [1]), (ZERO, [0]))
    assert reached == pytest.approx(math.sqrt(8 * (2 - 1 / classes) ** 2 + 2) / 6, rel=1e-3)
    assert reached < 0.972


@pytest.mark.parametrize(
    ("size", "group_rows"),
    [(1, 0.5), (1, 3.0), (2, 1.0), (100, 3.0), (128, 0.5), (129, 1.0), (1_000, 3.0)],
)
def test_calibration_records_are_cut_exactly_and_not_more_than_needed(group_rows, size):
    whole = settings_of(rounds_of(MAPS["waves"]), unit=Unit.RECORD, group_rows=group_rows)
    keys, zeros = np.tile(LONG, (size, 1)), np.zeros(size, int)
    nothing = (*NOTHING, zeros[:0])
    reached = last_moved(whole, sure("waves", 2), (keys, zeros + 1, zeros), nothing)
    assert 0.98 * min(size / group_rows, 1.0) <= reached <= ROUNDED


@pytest.mark.parametrize(("size", "group_rows"), [(100, 0.5), (100, 3.0), (300, 1.0)])
def test_replaced_records_of_many_labels_reach_the_claim(size, group_rows):
    """Labels of many rows are short together, so that nearly opposite records exist."""
    layout = rounds_of(MAPS["linear"], 101, resolution=17)
    whole = settings_of(layout, Neighbours.REPLACE, Unit.RECORD, group_rows)
    zeros = np.zeros(size, int)
    wrong = (np.tile(LONG, (size, 1)), 1 + np.arange(size) % 100, zeros)
    right = (np.tile(ZERO, (size, 1)), zeros, zeros)
    assert 0.98 <= last_moved(whole, sure_of_long_ones(101), wrong, right) <= ROUNDED
