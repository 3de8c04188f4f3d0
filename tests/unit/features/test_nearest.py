"""The nearest of some points: the contract of maps, a loop over points, ties, errors."""

from fractions import Fraction

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from map_contract import RowContract

from discreet.errors import CorruptRelease, InvalidInput
from discreet.features.base import FEATURE_RADIUS
from discreet.features.nearest import MOST_POINTS, Nearest
from discreet.features.registry import Registry


@pytest.fixture(scope="module", params=[(1, 1), (7, 3), (300, 8)], ids=["one", "few", "many"])
def kernel(request):
    count, dim = request.param
    return Nearest(unit_rows(count, dim, seed=2))


class TestNearest(RowContract):
    """As every map."""

    registry = Registry(Nearest.argument)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), grid=st.booleans())
def test_it_is_the_first_point_with_the_largest_product_exactly(seed, grid):
    """By fractions, of what rows and points are rounded to; on a grid there are ties."""
    rng = np.random.default_rng(seed)
    draw = (lambda *shape: rng.integers(-2, 3, shape) / 4) if grid else rng.normal
    points = draw(9, 3) if grid else rng.normal(size=(9, 3))
    keys = draw(20, 3) if grid else rng.normal(size=(20, 3))
    made = Nearest(points)
    rows = made.key_lattice.clip_rows(keys, norm=made.key_norm)
    for row, found in zip(rows, made.nearest(keys), strict=True):
        products = [
            sum(Fraction(int(a)) * int(b) for a, b in zip(row, point, strict=True))
            for point in made.points
        ]
        assert found == products.index(max(products))


def test_products_that_differ_in_their_last_unit_are_told_apart():
    """By one of some 2^43 units: single precision, or sums that are rounded, would not see it."""
    unit = 2.0**-22
    near, other = np.array([0.3, 0.4]), np.array([0.3 - 4 * unit, 0.4 + 3 * unit])
    row = np.array([[0.6, 0.8]])
    for points in ([near, other], [other, near]):
        made = Nearest(points)
        [rounded] = made.key_lattice.clip_rows(row, norm=1.0).tolist()
        products = [
            sum(a * b for a, b in zip(rounded, each, strict=True)) for each in made.points.tolist()
        ]
        assert abs(products[0] - products[1]) == 1
        assert made.nearest(row) == [products.index(max(products))]


def test_a_row_of_zeros_and_copies_of_a_point_are_of_the_first():
    made = Nearest([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    assert made.nearest(np.array([[0.0, 0.0], [3.0, 0.1], [0.1, 7.0]])).tolist() == [0, 1, 0]


def test_a_row_marks_its_point_and_no_other(kernel):
    keys = unit_rows(50, kernel.dim)
    features = kernel.key_features(keys).features
    assert np.array_equal(np.argmax(features, axis=1), kernel.nearest(keys))
    assert np.all(np.sort(features, axis=1)[:, -1] == FEATURE_RADIUS)
    assert np.count_nonzero(features) == 50


def test_blocks_of_rows_change_nothing(monkeypatch):
    from discreet.features import nearest

    points, keys = unit_rows(40, 5, seed=1), unit_rows(300, 5)
    whole = Nearest(points).nearest(keys)
    monkeypatch.setattr(nearest, "_BLOCK", 130)
    assert np.array_equal(Nearest(points).nearest(keys), whole)


@pytest.mark.parametrize(
    "points",
    [np.zeros((0, 3)), np.zeros(3), np.zeros((2, 0)), [[np.nan, 1.0]], [["a", "b"]]],
)
def test_points_that_are_none_are_refused(points):
    with pytest.raises(InvalidInput, match="points"):
        Nearest(points)


def test_too_many_points_are_refused():
    with pytest.raises(InvalidInput, match="at most 131,072"):
        Nearest(np.ones((MOST_POINTS + 1, 1)))


@pytest.mark.parametrize(
    "change",
    [lambda points: points * 2, lambda points: points.astype(np.int64), lambda points: points[0]],
)
def test_points_of_a_file_that_no_map_has_are_refused(change):
    made = Nearest(unit_rows(4, 3))
    given_ = {name: each for name, each in made.parameters().items() if name != "kind"}
    with pytest.raises(CorruptRelease):
        Nearest.restore(given_, {"points": change(made.arrays()["points"])})
