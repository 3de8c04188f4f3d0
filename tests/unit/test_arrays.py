import numpy as np
import pytest

from discreet import InvalidInput
from discreet._arrays import MARK_BYTES, digests_of, kind_of, marks_of


def test_ids_have_the_same_hash_whatever_they_are_stored_in():
    numbers = [0, 5, -7, 2**31, 5]
    expected = digests_of(numbers)
    assert (expected.dtype, expected.shape) == (np.dtype("S16"), (5,))
    assert expected[1] == expected[4]
    assert len(set(expected)) == 4
    np.testing.assert_array_equal(digests_of(np.array(numbers)), expected)
    np.testing.assert_array_equal(digests_of(np.array(numbers, object)), expected)
    small = np.array([0, 5, -7], np.int16)
    np.testing.assert_array_equal(digests_of(small), expected[:3])
    texts = ["a", "né", "5", "\ud800"]
    expected = digests_of(texts)
    np.testing.assert_array_equal(digests_of(np.array(texts, "U9")), expected)
    np.testing.assert_array_equal(digests_of(np.array(texts, object)), expected)
    assert len({*digests_of(["5"]), *digests_of([5]), *digests_of([b"5"])}) == 3
    assert digests_of([]).shape == (0,)
    with pytest.raises(InvalidInput, match="whole numbers"):
        digests_of([1.5])


def test_hashes_are_those_that_another_machine_would_find():
    assert digests_of([1]).tobytes().hex() == "68c6aebaa3afe5a00d174ec86a509be3"
    assert not np.array_equal(digests_of(range(99), b"key"), digests_of(range(99)))


def test_hashes_that_end_in_zeros_are_as_different_as_others():
    """Numpy shows bytes without zeros at their end; one in 256 has some."""
    ids = digests_of(range(20_000))
    assert any(len(each) < 16 for each in ids.tolist())
    assert len(np.unique(ids)) == len({each.tobytes() for each in ids.view("V16")}) == 20_000


def test_marks_are_equally_long_and_know_their_type():
    for ids, kind in ((["a", "b" * 999], b"s"), ([1, 10**99], b"i"), ([b"", b"x" * 999], b"b")):
        marks = marks_of(ids)
        assert len(marks) == 2
        assert {len(mark) for mark in marks} == {MARK_BYTES}
        assert set(map(kind_of, marks)) == {kind}
