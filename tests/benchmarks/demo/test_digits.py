"""The digits as keys and values, and what their memory is compared with."""

import pytest

from discreet_benchmarks.demo import digits

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def data():
    return digits.splits(2)


def test_every_one_hot_value_has_the_public_norm(data):
    norms = (data[0].values ** 2).sum(axis=1)
    assert norms == pytest.approx(digits.VALUE_NORM**2)


def test_ceilings_are_above_and_the_constant_below(data):
    found = digits.ceilings(data)
    assert found.classifier.mean > 0.97
    assert found.attention.mean > 0.97
    assert min(digits._SCALES) < found.attention.at < max(digits._SCALES)  # the best lies inside
    assert 0.05 < found.constant.mean < 0.15


def test_a_reader_that_learns_is_between_them(data):
    mean = digits.learnt_accuracy(data, 8.0, reader="rounds").mean
    assert 0.9 < mean < digits.ceilings(data).classifier.mean


def test_what_dpsgd_reached_is_shipped():
    assert [each.at for each in digits.dpsgd_accuracy()] == [0.5, 1.0, 2.0, 4.0]
