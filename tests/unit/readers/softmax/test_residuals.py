"""What a row says against W: softmax less the label, cut, and the same to the bit anywhere."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet.readers.softmax.layout import probabilities, residuals

UNIT, BITS = 2.0**20, 19
FREE = 2 * 2**BITS  # nothing is cut: ‖q‖ ≤ √2


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def drawn(count, classes, spread=3.0, seed=0):
    rng = np.random.default_rng(seed)
    logits = np.rint(rng.normal(size=(count, classes)) * spread * UNIT)
    return logits, rng.integers(0, classes, count)


def q_of(logits, labels, radius=FREE, bits=BITS, unit=UNIT):
    return residuals(logits, labels, unit=unit, bits=bits, radius=radius)


def squared(rows):
    return [sum(int(x) ** 2 for x in row) for row in rows]


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("classes", [2, 3, 10, 1_000])
def test_they_are_softmax_less_the_label(classes, spread):
    logits, labels = drawn(200, classes, spread)
    truth = softmax(logits / UNIT)
    np.testing.assert_allclose(probabilities(logits, unit=UNIT), truth, atol=3e-4)
    truth[np.arange(200), labels] -= 1
    np.testing.assert_allclose(q_of(logits, labels) / 2**BITS, truth, atol=3e-4)


def test_likely_classes_are_right_to_a_thousandth():
    logits, _ = drawn(500, 5, spread=4.0)
    truth = softmax(logits / UNIT)
    made = probabilities(logits, unit=UNIT)
    near = truth > 1e-4
    np.testing.assert_allclose(made[near], truth[near], rtol=1.1e-3)


@pytest.mark.parametrize("radius", [1, 77, 2**15, 157_286])
@pytest.mark.parametrize("classes", [2, 3, 500])
def test_no_residual_is_longer_than_the_radius_and_long_ones_reach_it(classes, radius):
    logits, labels = drawn(100, classes, spread=6.0)
    made = q_of(logits, labels, radius)
    assert max(squared(made)) <= radius**2
    lost = math.sqrt(classes) + 1  # cutting towards zero
    long = np.array([math.sqrt(each) for each in squared(q_of(logits, labels))]) > radius
    for norm in np.sqrt(np.array(squared(made), dtype=float))[long]:
        assert norm >= radius - lost


@settings(max_examples=60)
@given(
    logits=hnp.arrays(np.int64, (4, 3), elements=st.integers(-(2**52), 2**52)),
    labels=hnp.arrays(np.int64, 4, elements=st.integers(0, 2)),
    power=st.integers(-40, 60),
    radius=st.integers(1, 2**20),
)
def test_logits_of_any_size_give_residuals_within_the_radius(logits, labels, power, radius):
    made = q_of(logits.astype(float), labels, radius, unit=2.0**power)
    assert made.dtype == np.int64
    assert max(squared(made)) <= radius**2
    free = q_of(logits.astype(float), labels, unit=2.0**power)
    rows = np.arange(4)
    assert np.all(free[rows, labels] <= 0)
    others = free.copy()
    others[rows, labels] = 0
    assert np.all(others >= 0)
    assert np.all(np.abs(free.sum(axis=1)) <= 2)  # they add up to zero, but for rounding


def test_directions_survive_the_cut():
    logits, labels = drawn(50, 4, spread=6.0)
    long, short = q_of(logits, labels).astype(float), q_of(logits, labels, 2**14).astype(float)
    norms = np.linalg.norm(long, axis=1) * np.linalg.norm(short, axis=1)
    cosines = np.sum(long * short, axis=1)[norms > 0] / norms[norms > 0]
    assert cosines.min() > 0.9999


def test_a_row_has_the_same_residual_alone_in_any_batch_and_at_any_place():
    for classes in (2, 7, 100):
        logits, labels = drawn(150, classes, spread=2.0)
        radius = 157_286
        together = q_of(logits, labels, radius)
        order = np.random.default_rng(1).permutation(150)
        assert np.array_equal(q_of(logits[order], labels[order], radius), together[order])
        for row in range(0, 150, 7):
            alone = q_of(logits[row : row + 1], labels[row : row + 1], radius)
            assert np.array_equal(alone[0], together[row])
        wide = np.zeros((150, 2 * classes))
        wide[:, ::2] = logits
        for other in (np.asfortranarray(logits), wide[:, ::2], np.repeat(logits, 2, axis=0)[::2]):
            assert np.array_equal(q_of(other, labels, radius), together)


def test_classes_may_come_in_any_order():
    """A sum of whole numbers is the same in any order, so no class has bits of its own."""
    logits, labels = drawn(60, 301, spread=2.0)
    order = np.random.default_rng(2).permutation(301)
    moved = q_of(logits[:, order], np.argsort(order)[labels])
    assert np.array_equal(moved, q_of(logits, labels)[:, order])


@pytest.mark.parametrize("classes", [2, 2**17])
@pytest.mark.parametrize("at", [0, -1])
def test_labels_at_either_end_are_labels_like_others(classes, at):
    label = at % classes
    made = q_of(np.zeros((1, classes)), np.array([label]))
    truth = np.full(classes, 1 / classes)
    truth[label] -= 1
    np.testing.assert_allclose(made[0] / 2**BITS, truth, atol=2.0**-BITS)


def test_what_was_passed_in_is_not_changed():
    logits, labels = drawn(20, 3)
    before = logits.copy(), labels.copy()
    q_of(logits, labels, 5)
    assert np.array_equal(logits, before[0])
    assert np.array_equal(labels, before[1])


def test_certain_rows_say_nothing_and_wrong_ones_all_they_may():
    logits = np.array([[2.0**52, -(2.0**52)]] * 2)
    right, wrong = q_of(logits, np.array([0, 1]))
    assert np.abs(right).max() <= 1
    np.testing.assert_allclose(wrong, [2**BITS, -(2**BITS)], atol=1)
