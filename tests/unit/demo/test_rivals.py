"""What the memory is compared with."""

import pytest

from discreet.demo import digits, rivals


@pytest.fixture(scope="module")
def data():
    return digits.splits(2)


def test_ceilings_are_above_and_the_constant_below(data):
    found = rivals.ceilings(data)
    assert found.classifier.mean > 0.97
    assert found.attention.mean > 0.97
    assert min(rivals._SCALES) < found.attention.at < max(rivals._SCALES)  # the best lies inside
    assert 0.05 < found.constant.mean < 0.15


def test_a_reader_that_learns_is_between_them(data):
    mean = rivals.learnt_accuracy(data, 8.0, reader="rounds").mean
    assert 0.9 < mean < rivals.ceilings(data).classifier.mean


def test_what_dpsgd_reached_is_shipped():
    assert [each.at for each in rivals.dpsgd_accuracy()] == [0.5, 1.0, 2.0, 4.0]
