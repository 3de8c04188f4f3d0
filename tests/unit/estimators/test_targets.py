"""Labels and numbers become values of a known length."""

import numpy as np
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from discreet.sklearn.ranges import Ranges
from discreet.sklearn.targets import Labels, Targets


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
    np.testing.assert_allclose(targets.lengths(np.ones((1, 3))), [[5, 1, 0]])


def test_single_targets_keep_their_shape():
    targets = Targets(Ranges.of("target_bounds", (0, 10), 1), single=True)
    assert targets.values(np.zeros(4)).shape == (4, 1)
    assert targets.numbers(np.zeros((4, 1))).tolist() == [5] * 4
