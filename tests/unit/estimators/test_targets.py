"""Labels and numbers become values of a known length."""

import numpy as np
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from discreet.sklearn.ranges import Ranges
from discreet.sklearn.targets import Labels, LabelSets, Targets, checked_indicators, logarithms


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        (["b", "a", "c"], np.array(["c", "a", "a", "b"])),
        (["b", "a", "c"], np.array(["c", "a", "a", "b"], dtype=object)),
        ([7, -1, 9], np.array([9, -1, -1, 7])),
        ([7, -1, 9], np.array([9.0, -1.0, -1.0, 7.0])),
    ],
)
def test_labels_are_centred_and_as_long_as_is_said(classes, y):
    labels = Labels.of(classes, distinct=True)
    assert labels.classes.tolist() == sorted(classes)
    np.testing.assert_allclose(labels.values(y), np.eye(3)[[2, 0, 0, 1]] - 1 / 3, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(labels.values(y), axis=1), labels.norm)


def test_a_label_beyond_the_list_is_refused_and_not_quoted():
    with pytest.raises(InvalidInput, match="one of classes") as caught:
        Labels.of(["well", "ill"], distinct=True).values(np.array(["well", "secret"]))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("classes", "message"), [([1], "two classes"), ([1, 1, 2], "distinct"), ([1, None], "one kind")]
)
def test_bad_lists_of_classes_are_refused(classes, message):
    with pytest.raises(InvalidInput, match=message):
        Labels.of(np.array(classes, dtype=object), distinct=True)


def test_labels_of_several_kinds_are_refused_and_not_quoted():
    with pytest.raises(InvalidInput, match="one kind") as caught:
        Labels.of([0, 1], distinct=True).values(np.array([1, "secret"], dtype=object))
    assert caught.value.__suppress_context__


def test_targets_and_back():
    targets = Targets(Ranges(np.array([0.0, -1, 3]), np.array([10.0, 1, 3])), single=False)
    values = targets.values(np.array([[0.0, 0.0, 5.0], [10.0, 2.0, 3.0]]))
    np.testing.assert_allclose(values, [[-1, 0, 0], [1, 1, 0]])
    assert targets.norm == pytest.approx(np.sqrt(3))
    np.testing.assert_allclose(targets.numbers(values), [[0, 0, 3], [10, 1, 3]])
    np.testing.assert_allclose(targets.numbers(values * 9), [[0, 0, 3], [10, 1, 3]])
    np.testing.assert_allclose(targets.lengths(np.ones((1, 3)), np.zeros((1, 3))), [[5, 1, 0]])


def test_single_targets_keep_their_shape():
    targets = Targets(Ranges.of("target_bounds", (0, 10), 1), single=True)
    assert targets.values(np.zeros(4)).shape == (4, 1)
    assert targets.numbers(np.zeros((4, 1))).tolist() == [5] * 4


# Logarithms.

COUNTS = Targets(Ranges(np.array([0.0, -5.0]), np.array([1e6, 5.0])), single=False, log=True)


def counts(rows=500):
    generator = np.random.default_rng(0)
    return np.column_stack(
        [generator.lognormal(3, 3, rows).clip(0, 1e6), generator.uniform(-5, 5, rows)]
    )


def test_logarithms_are_those_of_base_two():
    numbers = np.concatenate([[1.0, 2.0, 3.0, 2.0**40], np.exp(np.linspace(0, 60, 5000))])
    np.testing.assert_allclose(logarithms(numbers), np.log2(numbers), atol=2e-9)
    assert logarithms(2.0 ** np.arange(50)).tolist() == list(range(50))


def test_logarithms_never_fall():
    numbers = np.sort(np.random.default_rng(0).uniform(1, 8, 100_000))
    assert np.diff(logarithms(numbers)).min() >= 0


def test_a_target_has_the_same_logarithm_to_the_bit_wherever_it_stands():
    targets = counts()
    values = COUNTS.values(targets)
    order = np.random.default_rng(1).permutation(len(targets))
    assert np.array_equal(COUNTS.values(targets[order]), values[order])
    assert np.array_equal(COUNTS.values(np.asfortranarray(targets)), values)
    alone = [COUNTS.values(targets[row : row + 1])[0] for row in range(0, 500, 7)]
    assert np.array_equal(alone, values[::7])
    single = targets.astype(np.float32)
    assert np.array_equal(COUNTS.values(single), COUNTS.values(single.astype(np.float64)))


def test_logarithms_and_back():
    targets = counts()
    values = COUNTS.values(targets)
    assert np.abs(values).max() <= 1
    np.testing.assert_allclose(COUNTS.numbers(values), targets, rtol=1e-7, atol=1e-7)
    ends = np.array([[0.0, -5.0], [1e6, 5.0], [-1e9, -1e9], [1e9, 1e9]])
    np.testing.assert_array_equal(COUNTS.values(ends), [[-1, -1], [1, 1], [-1, -1], [1, 1]])
    beyond = COUNTS.numbers(np.array([[-9.0, -9.0], [9.0, 9.0]]))
    np.testing.assert_allclose(beyond, [[0, -5], [1e6, 5]], atol=1e-4)
    assert beyond.max() <= 1e6


def test_lengths_of_logarithms_are_slopes():
    targets = counts()[:50]
    values, step = COUNTS.values(targets), 1e-6
    wanted = (COUNTS.numbers(values + step) - COUNTS.numbers(values - step)) / (2 * step)
    found = COUNTS.lengths(np.ones_like(values), targets)
    inside = np.abs(values) < 1 - 2 * step
    np.testing.assert_allclose(found[inside], wanted[inside], rtol=1e-4)


# Several labels.


def test_several_labels_are_values_as_they_are():
    given = np.array([[True, False, True], [False, False, False]])
    assert np.array_equal(LabelSets(3).values(checked_indicators(given)), given)
    assert LabelSets(3).norm == pytest.approx(np.sqrt(3))


@pytest.mark.parametrize("odd", [2, -1, 0.5, np.nan, np.inf])
def test_labels_that_are_neither_there_nor_not_are_refused(odd):
    with pytest.raises(InvalidInput, match="0 or 1"):
        checked_indicators(np.array([[0, 1], [odd, 1]]))
    with pytest.raises(InvalidInput, match="0 or 1"):
        checked_indicators(np.array([["0", "1"]]))
