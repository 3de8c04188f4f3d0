"""Features of columns: the contract of all maps, and what is about bins, categories and waves."""

import contextlib
import json
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from map_contract import SymmetricContract, in_torch, squared_norms
from maps import TABLES, cells, table_keys, tables

from discreet import InvalidInput
from discreet._keys import LARGEST, MISSING
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS
from discreet.features.columns import (
    _TABLE,
    BINS,
    Bins,
    Categories,
    TableColumns,
    Unknown,
)
from discreet.features.fourier import UnitFourier

MADE = tables()


@pytest.fixture(params=TABLES, scope="module")
def kernel(request):
    return MADE[request.param]


def mapped(table, keys):
    """φ of queries, in numpy."""
    return table.query_features(np.asarray(keys, dtype=float)[None], table.query_arrays())[0]


def integers(table, keys):
    """The integer features of rows."""
    return table.key_features(np.asarray(keys, dtype=float)).features


class TestTableColumns(SymmetricContract):
    """Keys are numbers, places and what is missing: not points in a ball."""

    def keys(self, kernel, count=200, seed=0):
        return table_keys(kernel, count, seed)

    def drawn(self, kernel, data):
        numbers = st.floats(allow_nan=False, allow_infinity=False)
        whole = st.integers(-2, 600).map(float)
        odd = st.sampled_from([MISSING, LARGEST, -LARGEST, -1.0, 0.0])
        seed = data.draw(st.integers(0, 2**32))
        keys = table_keys(kernel, 6, seed)
        for at in data.draw(st.lists(st.integers(0, kernel.dim - 1), max_size=8)):
            keys[data.draw(st.integers(0, 5)), at] = data.draw(numbers | whole | odd)
        return keys

    def test_queries_have_the_features_of_rows(self, kernel):
        keys = self.keys(kernel)
        rows = integers(kernel, keys) / kernel.unit
        np.testing.assert_allclose(self.mapped(kernel, keys), rows, atol=2e-4)

    @pytest.mark.parametrize("precision", [np.float64, np.float32])
    def test_torch_has_the_features_of_numpy(self, kernel, precision):
        queries = np.clip(self.keys(kernel, 40), -LARGEST, MISSING).astype(np.float32)
        queries = queries.astype(precision)
        arrays = {
            name: each.astype(precision) if each.dtype.kind == "f" else each.copy()
            for name, each in kernel.query_arrays().items()
        }
        ours = kernel.query_features(queries[None], arrays)[0]
        theirs = kernel.query_features(torch.from_numpy(queries[None]), in_torch(arrays))[0]
        atol = 1e-9 if precision is np.float64 else 1e-4
        np.testing.assert_allclose(theirs.numpy(), ours, atol=atol)


# How long rows are.


def test_no_row_is_longer_than_the_radius_in_exact_arithmetic(kernel):
    for row in integers(kernel, table_keys(kernel, 60, seed=3)):
        whole = [int(each) for each in row]
        assert whole == row.tolist()
        assert sum(each * each for each in whole) <= FEATURE_RADIUS**2


LISTED = [kind for kind in TABLES if kind not in {"one category of one", "columns that were found"}]


@pytest.mark.parametrize("kind", LISTED)
def test_every_row_without_an_unknown_value_uses_the_whole_radius(kind):
    features = integers(MADE[kind], table_keys(MADE[kind], 300, known=True))
    norms = squared_norms(MADE[kind], features)
    assert norms.min() >= 0.95 * FEATURE_RADIUS**2


def test_the_constant_is_first_and_has_its_share(kernel):
    features = integers(kernel, table_keys(kernel))
    assert set(features[:, 0]) == {round(kernel.constant * FEATURE_RADIUS)}
    assert kernel.constant == pytest.approx(np.sqrt(0.05), abs=1e-4)


def test_all_columns_are_as_loud():
    table = MADE["mixed"]
    start = integers(table, [[MISSING, -1.0, MISSING, -1.0, MISSING]])[0]
    for at, column in enumerate(table.columns):
        where, _ = table.column_rows(at)
        for key in cells(column):
            if (isinstance(column, Categories) and key not in column.places) or key == MISSING:
                continue
            row = np.array([MISSING, -1.0, MISSING, -1.0, MISSING])
            row[at] = key
            changed = integers(table, row[None])[0]
            length = np.linalg.norm(changed[where]) / FEATURE_RADIUS
            assert length == pytest.approx(np.sqrt(0.95 / 5), rel=1e-3)
            other = np.delete(np.arange(table.features), np.arange(table.features)[where])
            gone, _ = table.missing_feature(at)
            assert np.array_equal(np.delete(changed, gone)[0], np.delete(start, gone)[0])
            assert np.flatnonzero(changed[other] != start[other]).size <= 1


@settings(max_examples=40)
@given(
    numbers=st.integers(0, 4),
    lists=st.lists(st.integers(1, 9), max_size=4),
    waves=st.sampled_from([0, 1, 3]),
    seed=st.integers(0, 2**32),
)
def test_no_table_of_any_shape_has_a_row_that_is_too_long(numbers, lists, waves, seed):
    rng = np.random.default_rng(seed)
    columns = [
        Bins(tuple(np.unique(rng.normal(size=rng.integers(0, 16)) * 10.0 ** rng.integers(-3, 9))))
        for _ in range(numbers)
    ]
    columns += [
        Categories(tuple(np.sort(rng.choice(600, size=each, replace=False)).tolist()))
        for each in lists
    ]
    if not columns:
        return
    table = TableColumns(tuple(rng.permutation(np.array(columns, dtype=object)).tolist()))
    table = table.with_waves(waves) if waves and numbers else table
    features = integers(table, table_keys(table, 50, seed % 97))
    assert features.shape == (50, table.features)
    assert squared_norms(table, features).max() <= FEATURE_RADIUS**2


# The table of bins.


def centred_kernel(width):
    """A Gaussian kernel over 16 bins, centred in rows and columns, with a diagonal of one."""
    places = (np.arange(BINS) + 0.5) / BINS
    gauss = np.exp(-((places[:, None] - places) ** 2) / (2 * width**2))
    centring = np.eye(BINS) - 1 / BINS
    centred = centring @ gauss @ centring
    scale = np.sqrt(np.diag(centred))
    return centred / scale[:, None] / scale


def test_the_table_is_the_kernel_that_its_comment_says():
    rows = _TABLE / 2.0**16
    wanted = (centred_kernel(0.3) + centred_kernel(0.15)) / 2
    np.testing.assert_allclose(rows @ rows.T, wanted, atol=1e-3)
    assert max(sum(int(each) ** 2 for each in row) for row in _TABLE) <= 2**32


def test_the_table_is_its_own_mirror():
    """A column that is turned round has the same kernel, to the bit."""
    signs = np.array([-1, 1, -1, 1, -1, 1, -1, 1, 1])
    assert np.array_equal(_TABLE[::-1], _TABLE * signs)
    inner = _TABLE @ _TABLE.T
    assert np.array_equal(inner, inner[::-1, ::-1])


def test_the_table_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        _TABLE[:] = 0


def test_a_number_is_in_the_bin_after_all_edges_that_it_is_not_below():
    table = TableColumns((Bins.between(0, 16, skewed=False),))
    keys = np.array([-1e300, -0.0, 0.5, 1.0, np.nextafter(1.0, 0), 15.0, 16.0, 1e300, LARGEST])
    rows = np.trunc(_TABLE * (table.column_rows(0)[1][0, 0] * 2**16 / _TABLE[0, 0]))
    found = integers(table, keys[:, None])[:, 1:10]
    for each, bin_ in zip(found, [0, 0, 0, 1, 0, 15, 15, 15, 15], strict=True):
        assert np.argmax(rows @ each) == bin_


def test_bins_between_ends():
    even, skewed = (Bins.between(0, 16, skewed=each) for each in (False, True))
    assert even.edges == tuple(range(1, 16))
    assert skewed.edges == tuple(each * each / 16 for each in range(1, 16))
    low = 1.0
    high = np.nextafter(np.nextafter(low, 2), 2)
    narrow = Bins.between(low, high, skewed=False)
    assert 1 <= len(narrow.edges) < 15  # narrower than float64 can cut


@pytest.mark.parametrize("count", range(1, 17))
def test_fewer_bins_are_spread_over_the_whole_table(count):
    rows = Bins(tuple(range(count - 1))).rows
    assert len(rows) == count
    assert len(set(rows.tolist())) == count
    assert np.array_equal(rows, np.sort(rows))
    # As far from the first row as from the last, or nearly so.
    assert abs(int(rows[0]) - (15 - int(rows[-1]))) <= 1
    assert (count < 16) or rows.tolist() == list(range(16))


# Categories, and what is missing.


def test_a_category_is_a_corner_of_a_simplex():
    for count in (2, 3, 50):
        table = TableColumns((Categories(tuple(range(count))),))
        corners = integers(table, np.arange(count)[:, None])[:, 1 : 1 + count] / FEATURE_RADIUS
        wanted = (np.eye(count) - 1 / count) / np.sqrt(1 - 1 / count) * np.sqrt(0.95)
        np.testing.assert_allclose(corners, wanted, atol=1e-4)


@pytest.mark.parametrize("key", [-1.0, 50.0, 0.5, 1e300, -LARGEST, LARGEST, np.nextafter(1, 0)])
def test_an_unknown_category_adds_nothing(key):
    table = MADE["two columns"]
    where, _ = table.column_rows(0)
    gone, _ = table.missing_feature(0)
    row = integers(table, [[key, 0.5]])[0]
    assert not np.any(row[where])
    assert row[gone] == 0


def test_what_is_missing_has_a_coordinate_of_its_own(kernel):
    rows = integers(kernel, np.full((1, kernel.dim), MISSING))[0]
    wanted = np.zeros(kernel.features)
    wanted[0] = kernel.constant * FEATURE_RADIUS
    for at in range(kernel.dim):
        gone, height = kernel.missing_feature(at)
        wanted[gone] = height * FEATURE_RADIUS
        share = 0.475 if kernel.fourier is not None and at in kernel._numeric else 0.95
        assert height == pytest.approx(np.sqrt(share / kernel.dim), abs=1e-4)
    additive = kernel.block_sizes[0]
    assert np.array_equal(rows[:additive], wanted[:additive])


def test_rows_of_columns_are_those_of_their_features(kernel):
    for at in {0, kernel.dim // 2, kernel.dim - 1}:
        column = kernel.columns[at]
        where, steps = kernel.column_rows(at)
        if isinstance(column, Categories):
            examples = np.array(column.places, dtype=float)
        else:
            edges = np.asarray(column.edges)
            below = np.nextafter(edges[:1], -np.inf) if len(edges) else np.zeros(1)
            examples = np.concatenate([below, edges])
        keys = np.full((len(examples), kernel.dim), MISSING)
        keys[:, at] = examples
        assert len(steps) == len(examples)
        assert np.array_equal(integers(kernel, keys)[:, where], steps * FEATURE_RADIUS)


def test_columns_do_not_share_features(kernel):
    taken = [0]
    for at in range(kernel.dim):
        where, _ = kernel.column_rows(at)
        taken += [*range(where.start, where.stop), kernel.missing_feature(at)[0]]
    assert sorted(taken) == list(range(kernel.block_sizes[0]))


# Waves.


def test_waves_fall_with_the_number_of_steps_between_rows():
    table = TableColumns((Bins.between(0, 16, skewed=False),) * 2).with_waves(4096)
    keys = np.array([[0.5, 0.5], [1.5, 0.5], [3.5, 0.5], [15.5, 0.5], [15.5, 15.5]])
    waves = integers(table, keys)[:, table.block_sizes[0] :] / FEATURE_RADIUS
    inner = waves @ waves[0] / (waves[0] @ waves[0])
    steps = np.array([0, 1, 3, 15, 30])
    # Thermometers of ±1 at length one: four for each step, over 2·15 coordinates.
    np.testing.assert_allclose(inner, np.exp(-5.0 * 4 * steps / 30 / 2), atol=0.06)


def test_waves_have_half_of_what_numbers_have_and_categories_none():
    with_, without = MADE["mixed, waves"], MADE["mixed"]
    keys = table_keys(with_, 100, known=True)
    additive = with_.block_sizes[0]
    assert without.block_sizes == (additive,)
    waves = integers(with_, keys)[:, additive:] / FEATURE_RADIUS
    np.testing.assert_allclose(np.sum(waves**2, axis=1), 0.95 * 3 / 5 / 2, rtol=0.02)
    for at in (1, 3):
        one, other = (each.column_rows(at)[1] for each in (with_, without))
        assert np.array_equal(one, other)
    for at in (0, 2, 4):
        one, other = (each.column_rows(at)[1] for each in (with_, without))
        np.testing.assert_allclose(one, other / np.sqrt(2), atol=2e-5)


def test_waves_do_not_see_categories():
    table = MADE["mixed, waves"]
    keys = table_keys(table, 20)
    others = keys.copy()
    others[:, [1, 3]] = -1.0
    start = table.block_sizes[0]
    assert np.array_equal(integers(table, keys)[:, start:], integers(table, others)[:, start:])


# What means tell.


@cache
def frequencies(kind, seed=0):
    """Known shares of bins, categories and what is missing, and keys that have them exactly."""
    table = MADE[kind]
    rng = np.random.default_rng(seed)
    rows = 4000
    keys, shares = np.empty((rows, table.dim)), []
    for at, column in enumerate(table.columns):
        if isinstance(column, Categories):
            examples = np.array([*column.places, MISSING], dtype=float)
        else:
            edges = np.asarray(column.edges)
            below = np.nextafter(edges[:1], -np.inf) if len(edges) else np.zeros(1)
            examples = np.concatenate([below, edges, [MISSING]])
        drawn = rng.integers(len(examples), size=rows) * rng.integers(2, size=rows)
        keys[:, at] = examples[drawn]
        shares.append(np.bincount(drawn, minlength=len(examples)) / rows)
    return keys, shares


@pytest.mark.parametrize("kind", ["mixed", "mixed, waves", "columns that were found"])
def test_shares_are_recovered_from_means(kind):
    table = MADE[kind]
    keys, shares = frequencies(kind)
    found = table.shares(mapped(table, keys).mean(axis=0))
    for at, (ours, truth) in enumerate(zip(found, shares, strict=True)):
        assert ours.sum() == pytest.approx(1)
        assert ours.min() > 0
        # Nine numbers cannot tell 16 bins apart: neighbours, or a few of them together, they do.
        if isinstance(table.columns[at], Categories):
            np.testing.assert_allclose(ours, truth, atol=0.01)
        else:
            assert ours[-1] == pytest.approx(truth[-1], abs=0.01)
            steps = table.column_rows(at)[1]
            np.testing.assert_allclose(ours[:-1] @ steps, truth[:-1] @ steps, atol=0.01)
            assert np.abs(np.cumsum(ours - truth)).max() < 0.15


def test_shares_of_means_that_make_no_sense_are_still_shares():
    for kind in ("mixed", "columns that were found"):
        for means in (np.zeros(MADE[kind].features), np.full(MADE[kind].features, -7.0)):
            for each in MADE[kind].shares(means):
                assert each.min() > 0
                assert each.sum() == pytest.approx(1)


def test_imagined_rows_have_the_means_that_were_asked_for():
    table = MADE["mixed"]
    keys, _ = frequencies("mixed")
    means = mapped(table, keys).mean(axis=0)
    made = table.imagined(means, 4096)
    assert made.shape == (4096, table.features)
    np.testing.assert_allclose(made.mean(axis=0), means, atol=0.02)
    assert np.array_equal(made, table.imagined(means, 4096))


# Files, and what is refused.


def test_a_file_of_json_brings_the_same_map_back(kernel):
    parameters = json.loads(json.dumps(kernel.parameters()))
    again = registry.FEATURES.restore(parameters, kernel.arrays())
    assert again == kernel
    keys = table_keys(kernel, 50)
    assert np.array_equal(integers(again, keys), integers(kernel, keys))
    assert np.array_equal(mapped(again, keys), mapped(kernel, keys))


def test_edges_keep_every_bit_in_a_file():
    edges = (-1e300 / 1e270, 5e-324, 0.1, np.nextafter(0.1, 1), 1 / 3, 2.0**126)
    made = json.loads(json.dumps(TableColumns((Bins(edges, found=True),)).parameters()))
    [column] = registry.FEATURES.restore(made, {}).columns
    assert column == Bins(edges, found=True)


@pytest.mark.parametrize(
    "columns",
    [
        [],
        [["bins", [1.0, 0.0], False]],
        [["bins", [1.0, 1.0], False]],
        [["bins", [float(each) for each in range(16)], False]],
        [["bins", [float("nan")], False]],
        [["bins", [float("inf")], False]],
        [["bins", ["a"], False]],
        [["bins", 5, False]],
        [["categories", [1, 0], False]],
        [["categories", [0, 0], False]],
        [["categories", [-1], False]],
        [["categories", [0.5], False]],
        [["categories", [2**24 + 1], False]],
        [["unknown", True, False]],
        [["corners", [1], False]],
    ],
    ids=repr,
)
def test_columns_that_make_no_sense_are_refused(columns):
    parameters = {"kind": "columns", "columns": columns, "fourier": None}
    with pytest.raises(InvalidInput):
        registry.FEATURES.restore(parameters, {})


def test_waves_of_another_table_are_refused():
    waves = MADE["mixed, waves"].fourier
    for columns in (MADE["mixed"].columns[:2], (Categories((0, 1)),)):
        with pytest.raises(InvalidInput, match="fourier"):
            TableColumns(columns, fourier=waves)

    class Louder(UnitFourier):
        _amplitude = 2**20

    louder = Louder(45, frequencies=4, scale=5.0, key_norm=1.0, query_norm=1.0)
    with pytest.raises(InvalidInput, match="fourier"):
        TableColumns(MADE["mixed"].columns, fourier=louder)


def test_a_subclass_of_the_map_is_refused():
    class Longer(TableColumns):
        def _looked_up(self, keys, arrays):
            additive, steps = super()._looked_up(keys, arrays)
            return additive * 9, steps

    with pytest.raises(InvalidInput, match="features"):
        registry.FEATURES.check_registered(Longer(MADE["mixed"].columns))
    registry.FEATURES.check_registered(MADE["mixed"])


def test_a_subclass_of_a_column_is_refused():
    """It could have places twice, and rows that are longer than the radius."""

    class Twice(Categories):
        def __post_init__(self):
            pass

    class Shifted(Bins):
        @property
        def rows(self):
            return super().rows

    for column in (Twice((0, 0, 0, 0)), Shifted((0.0, 1.0))):
        with pytest.raises(InvalidInput, match="columns"):
            TableColumns((column,))


@pytest.mark.parametrize("columns", [(), (None,), ("bins",), (Bins,), ([0.0, 1.0],)])
def test_what_is_no_column_is_refused(columns):
    with pytest.raises(InvalidInput, match="columns"):
        TableColumns(columns)


def test_what_was_checked_cannot_be_changed():
    """Arrays for queries are handed out: what rows are looked up in must not be among them."""
    table = TableColumns(MADE["mixed"].columns)
    keys = table_keys(table)
    before = integers(table, keys).copy()
    for array in table.query_arrays().values():
        with contextlib.suppress(ValueError):  # read-only
            array[...] = array + 1
    assert np.array_equal(integers(table, keys), before)


def test_columns_that_are_to_be_found_have_no_features_yet():
    unknown = TableColumns((Unknown(numbers=True), Categories((0, 1)), Unknown(numbers=False)))
    assert not unknown.known
    assert unknown.numbers == 1
    with pytest.raises(ValueError, match="known"):
        unknown.key_features(np.zeros((1, 3)))
    found = unknown.with_found([Bins((0.0,)), Categories((0, 1)), Categories((7, 9))])
    assert found.known
    assert found.dim == 3
    waves = unknown.with_waves(4).with_found(found.columns)
    assert squared_norms(waves, integers(waves, table_keys(waves))).max() <= FEATURE_RADIUS**2
