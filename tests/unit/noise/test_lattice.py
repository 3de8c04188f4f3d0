import numpy as np
import pytest

from discreet import InvalidInput
from discreet.noise import Lattice, checked_add, clip_integer_rows, exact_product

GRID = Lattice(bits=10)


def test_rounding_is_to_the_nearest_point():
    values = np.array([[0.0, 1.0], [-0.5, 0.3], [0.3005, -0.3005]])
    assert GRID.round(values).tolist() == [[0, 1024], [-512, 307], [308, -308]]
    assert np.abs(GRID.to_real(GRID.round(values)) - values).max() <= GRID.step / 2
    assert GRID.round(values).dtype == np.int64


@pytest.mark.parametrize("bits", [-901, 901, 1.5, None])
def test_bad_bits_are_named(bits):
    with pytest.raises(InvalidInput, match="bits="):
        Lattice(bits=bits)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_without_a_grid_point_are_refused(bad):
    with pytest.raises(InvalidInput, match="values"):
        GRID.round([1.0, bad])
    with pytest.raises(InvalidInput, match="rows"):
        GRID.clip_rows([[1.0, bad]], norm=1.0)


def test_values_beyond_the_lattice_are_refused_without_being_shown():
    for values in ([1.25e300], [0.5, 1.25e300]):
        with pytest.raises(InvalidInput) as caught:
            GRID.round(values)
        assert "1.25" not in str(caught.value)


@pytest.mark.parametrize("norm", [0, -1, np.nan, 1e-9, 1e30])
def test_a_bad_norm_is_named(norm):
    with pytest.raises(InvalidInput, match="norm="):
        GRID.clip_rows(np.ones((2, 3)), norm=norm)


def test_clipping_shrinks_long_rows_only_and_keeps_their_direction():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [3e300, -4e300], [5e-324, 0.0]])
    clipped = GRID.to_real(GRID.clip_rows(rows, norm=1.0))
    np.testing.assert_allclose(clipped[0], [0.6, 0.8], atol=2 * GRID.step)
    np.testing.assert_allclose(clipped[1], [0.3, 0.4], atol=GRID.step)
    np.testing.assert_allclose(clipped[2], [0.0, 0.0])
    np.testing.assert_allclose(clipped[3], [0.6, -0.8], atol=2 * GRID.step)
    np.testing.assert_allclose(clipped[4], [0.0, 0.0])


def test_a_row_on_the_bound_stays():
    row = np.array([[3, 4]], dtype=np.int64)
    assert clip_integer_rows(row, radius=5).tolist() == [[3, 4]]
    assert clip_integer_rows(row, radius=4).tolist() == [[2, 3]]
    assert clip_integer_rows(row, radius=0).tolist() == [[0, 0]]


@pytest.mark.parametrize("radius", [2**20, 2**26, 2**29 - 1, 2**29])
def test_rows_a_hair_over_the_bound_end_below_it(radius):
    rows = np.array([[radius, 1], [1, -radius], [radius // 2 + 1, radius]], dtype=np.int64)
    for row in clip_integer_rows(rows, radius=radius):
        assert sum(int(z) ** 2 for z in row) <= radius**2


@pytest.mark.parametrize("wrong", [[[3, 4]], np.ones((1, 2)), np.ones((1, 2), dtype=np.int32)])
def test_what_is_no_int64_array_is_refused(wrong):
    good = np.ones((1, 2), dtype=np.int64)
    with pytest.raises(InvalidInput, match="rows"):
        clip_integer_rows(wrong, radius=5)
    with pytest.raises(InvalidInput, match="left"):
        checked_add(wrong, good)
    with pytest.raises(InvalidInput, match=r"right\.shape"):
        checked_add(good, good[0])
    with pytest.raises(InvalidInput, match="left="):
        exact_product([[1]], good, left_bound=1, right_bound=1)


def test_integers_too_large_to_square_are_refused():
    for sign in (1, -1):
        with pytest.raises(InvalidInput, match="coordinates of rows"):
            clip_integer_rows(np.full((1, 4), sign * 2**31, dtype=np.int64), radius=5)
    with pytest.raises(InvalidInput, match=r"rows\.dtype"):
        clip_integer_rows(np.ones((1, 4), dtype=np.int32), radius=5)


@pytest.mark.parametrize("norm", [0.5, 1.0, 1.5, 1.999, 2.0, 2.0**-60])
def test_a_lattice_is_the_finest_that_a_norm_fits(norm):
    lattice = Lattice.for_norm(norm, resolution=16)
    assert norm / lattice.step <= 2**16 < 2 * norm / lattice.step


def test_a_single_row_is_clipped_and_a_single_number_is_no_row():
    assert GRID.clip_rows([3.0, 4.0], norm=1.0).tolist() == [614, 819]
    with pytest.raises(InvalidInput, match="ndim"):
        GRID.clip_rows(3.0, norm=1.0)


def test_no_rows_and_no_columns_are_fine():
    assert GRID.clip_rows(np.empty((0, 3)), norm=1.0).shape == (0, 3)
    assert GRID.clip_rows(np.empty((3, 0)), norm=1.0).shape == (3, 0)
    empty = exact_product(np.empty((2, 0)), np.empty((0, 3)), left_bound=1, right_bound=1)
    assert empty.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_product_that_float64_would_round_is_exact_in_chunks():
    # Odd terms near 2^52: float64 adds two of them exactly and rounds from then on.
    left = np.full((1, 1003), 2.0**26 - 1)
    right = np.full((1003, 1), 2.0**26 + 1)
    exact = exact_product(left, right, left_bound=2**26, right_bound=2**26 + 1)
    assert int(exact[0, 0]) == 1003 * (2**26 - 1) * (2**26 + 1)
    assert int((left @ right)[0, 0]) != int(exact[0, 0])


def test_an_integer_that_float64_would_round_into_the_bound_is_refused():
    left = np.array([[2**53 + 1, -(2**53)]])
    with pytest.raises(InvalidInput, match="left to hold integers"):
        exact_product(left, np.ones((2, 1)), left_bound=2**53, right_bound=1)


@pytest.mark.parametrize("values", [np.array([1j]), np.array(["1"]), np.array([None])])
def test_what_is_not_a_real_number_is_refused(values):
    with pytest.raises(InvalidInput, match="dtype"):
        GRID.round(values)
    with pytest.raises(InvalidInput, match="dtype"):
        GRID.clip_rows(values, norm=1.0)


def test_single_numbers():
    assert GRID.round(0.5).shape == ()
    with pytest.raises(InvalidInput, match="ndim"):
        GRID.clip_rows(0.5, norm=1.0)


def test_bounds_are_checked_before_anything_is_multiplied():
    one = np.ones((1, 1))
    with pytest.raises(InvalidInput, match="left_bound"):
        exact_product(one, one, left_bound=2**27, right_bound=2**27)
    with pytest.raises(InvalidInput, match="left to hold integers"):
        exact_product(3 * one, one, left_bound=2, right_bound=1)
    with pytest.raises(InvalidInput, match="right to hold integers"):
        exact_product(one, 0.5 * one, left_bound=2, right_bound=1)
    with pytest.raises(InvalidInput, match="right to hold integers"):
        exact_product(one, np.nan * one, left_bound=2, right_bound=1)
    with pytest.raises(InvalidInput, match="shapes"):
        exact_product(np.ones((2, 3)), np.ones((2, 3)), left_bound=1, right_bound=1)


def test_overflow_is_an_error_and_not_a_wrap():
    largest = np.array([2**63 - 1], dtype=np.int64)
    one = np.array([1], dtype=np.int64)
    assert checked_add(largest, -one).tolist() == [2**63 - 2]
    assert checked_add(-largest, -one).tolist() == [-(2**63)]
    with pytest.raises(InvalidInput, match="int64"):
        checked_add(largest, one)
    with pytest.raises(InvalidInput, match="int64"):
        checked_add(-largest - 1, -one)
    rows = np.full((1, 2**11 + 1), 2.0**26)
    with pytest.raises(InvalidInput, match="int64"):
        exact_product(rows, rows.T, left_bound=2**26, right_bound=2**26)


def test_messages_do_not_tell_how_many_rows_there_are():
    left, right = np.ones((3, 7311)), np.ones((7312, 2))
    with pytest.raises(InvalidInput, match="left and right") as caught:
        exact_product(left, right, left_bound=1, right_bound=1)
    assert "731" not in str(caught.value)
