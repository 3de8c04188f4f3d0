"""The digits as keys and values."""

import pytest

from discreet.demo import digits


def test_every_one_hot_value_has_the_public_norm():
    split = digits.splits(1)[0]
    norms = (split.values**2).sum(axis=1)
    assert norms == pytest.approx(digits.VALUE_NORM**2)
