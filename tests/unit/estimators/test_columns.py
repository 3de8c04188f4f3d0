"""Rows become keys: within the ball, and each row alone."""

import numpy as np
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from discreet.sklearn.columns import Columns, Embeddings
from discreet.sklearn.ranges import Ranges

LOW, HIGH = np.array([0.0, -3.0, 10.0, 0.0, 5.0]), np.array([100.0, 3.0, 20.0, 1e-3, 5.0])
COLUMNS = Columns(Ranges(LOW, HIGH))  # the last has one number only, as data may have


def rows(count, seed=0, dtype=np.float64):
    generator = np.random.default_rng(seed)
    return (LOW + (HIGH - LOW) * generator.uniform(-0.2, 1.2, (count, 5))).astype(dtype)


def test_columns_go_to_their_part_of_the_ball():
    table = rows(500)
    fractions = np.clip((table - LOW) / np.where(HIGH > LOW, HIGH - LOW, 1), 0, 1)
    begin_at_zero = fractions[:, [0, 3]]
    fractions[:, [0, 3]] = (begin_at_zero + 2 * np.sqrt(begin_at_zero)) / 3
    wanted = (2 * fractions - 1) / np.sqrt(5)
    wanted[:, 4] = 0
    np.testing.assert_allclose(COLUMNS.keys(table), wanted, atol=1e-7)


def test_ends_of_ranges_and_what_is_beyond_are_corners_of_the_ball():
    corners = COLUMNS.keys(np.array([LOW, HIGH, LOW - 1e9, HIGH + 1e9])) * np.sqrt(5)
    ends = np.array([1, 1, 1, 1, 0])
    np.testing.assert_allclose(corners, [-ends, ends, -ends, ends], atol=1e-7)
    assert COLUMNS.norm == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_key_is_longer_than_one_in_any_precision(dtype):
    lengths = np.linalg.norm(COLUMNS.keys(rows(2000, dtype=dtype)).astype(float), axis=1)
    assert lengths.max() <= 1 + 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_is_the_same_key_to_the_bit_wherever_it_stands(dtype):
    table = rows(3001, dtype=dtype)
    keys = COLUMNS.keys(table)
    np.testing.assert_array_equal(COLUMNS.keys(table.astype(np.float64)), keys)
    order = np.random.default_rng(1).permutation(len(table))
    np.testing.assert_array_equal(COLUMNS.keys(table[order]), keys[order])
    np.testing.assert_array_equal(COLUMNS.keys(np.asfortranarray(table)), keys)
    np.testing.assert_array_equal(COLUMNS.keys(table[7:]), keys[7:])
    alone = np.concatenate([COLUMNS.keys(table[i : i + 1]) for i in range(200)])
    np.testing.assert_array_equal(alone, keys[:200])


def test_more_rows_than_are_mapped_at_a_time(monkeypatch):
    table = rows(1000)
    whole = COLUMNS.keys(table)
    monkeypatch.setattr("discreet.sklearn.columns._AT_ONCE", 37)
    np.testing.assert_array_equal(COLUMNS.keys(table), whole)


def test_larger_numbers_are_never_smaller_keys():
    line = np.linspace(-1, 101, 100_001)[:, None]
    steps = np.diff(Columns(Ranges.of("bounds", (0, 100), 1)).keys(line)[:, 0])
    assert steps.min() >= 0


def test_directions_are_longer_than_any_bound_and_forget_how_bright_a_picture_is():
    ranges = Ranges.of("bounds", (0, 1), 3)
    rows = np.random.default_rng(0).uniform(0.2, 0.5, (50, 3))
    keys = Columns(ranges, directions=True).keys(rows)
    assert np.linalg.norm(keys, axis=1).min() > 1e4
    spread = (rows + 2 * np.sqrt(rows)) / 3
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (keys, spread)]
    np.testing.assert_allclose(*unit, atol=1e-7)
    assert not np.any(Columns(ranges, directions=True).keys(np.zeros((1, 3))))


def test_embeddings_are_keys_as_they_are():
    table = rows(10)
    assert Embeddings(2.5).keys(table) is table
    assert Embeddings(2.5).norm == 2.5
    with pytest.raises(InvalidInput, match="norm=-1"):
        Embeddings(-1)


def test_which_columns_are_alike():
    assert Ranges.of("bounds", (0, 16), 3).alike
    assert Ranges.of("bounds", ([0, 0], [1, 1]), 2).alike
    assert not Ranges.of("bounds", ([0, 0], [1, 2]), 2).alike
    assert not Ranges.of("bounds", ([0, -1], 2), 2).alike


@pytest.mark.parametrize(
    "pair",
    [
        3,
        (1, 2, 3),
        (2, 1),
        (1, 1),
        [(0, 10), (0, 80)],
        ([0, 0], [1, -1]),
        ([0, 0, 0], 1),
        (0, np.inf),
        (np.nan, 1),
        (-1e308, 1e308),
        ("a", "b"),
        (0, [[1, 1]]),
    ],
)
def test_bad_ranges_are_refused(pair):
    with pytest.raises(InvalidInput, match="bounds"):
        Ranges.of("bounds", pair, 2)


def test_ranges_and_back():
    ranges = Ranges.of("target_bounds", (-5, [5, 10]), 2)
    table = np.array([[-5.0, 10.0], [0.5, 2.0], [9.0, -9.0]])
    wanted = np.clip(table, [-5, -5], [5, 10])
    np.testing.assert_allclose(ranges.numbers(ranges.fractions(table)), wanted, atol=1e-14)
    np.testing.assert_array_equal(ranges.numbers(np.array([[-1.0, 2.0]])), [[-5, 10]])


@pytest.mark.parametrize("pair", [[(0, 60), (40, 120)], ((0, 60), (40, 120)), ([0, 60], [40, 120])])
def test_ranges_of_two_columns_that_can_be_read_both_ways_are_refused(pair):
    """Lows and highs, or one pair for each column: nobody can tell."""
    for given in (pair, np.array(pair)):
        with pytest.raises(InvalidInput, match=r"one pair for each of the two columns.*np\.array"):
            Ranges.of("bounds", given, 2)
    arrays = Ranges.of("bounds", tuple(np.array(side) for side in pair), 2)
    assert (arrays.low.tolist(), arrays.high.tolist()) == ([0, 60], [40, 120])


@pytest.mark.parametrize("pair", [([18, 0], [90, 99]), ([0, 1], [1, 2]), (0, [1, 2]), ([0, 1], 2)])
def test_ranges_of_two_columns_that_can_be_read_one_way_are_taken(pair):
    ranges = Ranges.of("bounds", pair, 2)
    assert ranges.low.tolist() == np.broadcast_to(pair[0], 2).tolist()
    assert ranges.high.tolist() == np.broadcast_to(pair[1], 2).tolist()
