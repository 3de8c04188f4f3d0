import copy
import pathlib
import pickle
import re

import numpy as np
import pytest
import torch
from data import unit_rows

from discreet import InvalidInput
from discreet.features.fourier import IntegerFrequencies
from discreet.kernels import Fourier, Minimax
from discreet.privacy import Neighbours, Privacy
from discreet.readers.attention.layout import Layout
from discreet.sums import accumulate as adder_module
from discreet.sums.partial import Partial
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import RowSource, Table

KEYS, VALUES = unit_rows(2, 500, 3) * 1.1, unit_rows(2, 500, 4, seed=1)
GROUPS = np.random.default_rng(2).integers(0, 60, 500)


def settings_of(unit=Unit.ROW, kernel=None, group_rows=1.0):
    bounds = {"scale": 2.0, "key_norm": 1.0, "query_norm": 1.0}
    kernel = kernel or Fourier(3, frequencies=30, **bounds)
    layout = Layout(kernel=kernel, heads=(2,), value_dim=4, value_norm=1.0, tau=0.5, resolution=16)
    return Settings(
        layouts=(layout,),
        privacy=Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE),
        unit=unit,
        group_rows=group_rows,
    )


def sums(settings, index=slice(None), groups=None):
    table = Table(KEYS[:, index], VALUES[:, index])
    return Partial.of([table], settings, groups=None if groups is None else groups[index])


def naive(settings):
    """Row by row, in Python's integers."""
    layout = settings.layouts[0]
    total = np.zeros(layout.shape, dtype=object)
    for head in range(2):
        for key, value in zip(KEYS[head], VALUES[head], strict=True):
            mapped = layout.kernel.key_features(key[None])
            weighed = layout.weigh(value[None], mapped.weights)
            outer = np.outer(weighed[0].astype(int).astype(object), mapped.features[0].astype(int))
            total[head] += outer
    return total


def test_the_sum_is_that_of_the_rows_one_by_one():
    for kernel in (None, Minimax(3, degree=3, scale=2.0, key_norm=1.0, query_norm=1.0)):
        settings = settings_of(kernel=kernel)
        assert np.array_equal(sums(settings).sums[0].astype(object), naive(settings))


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_rows_gives_the_same_bits(unit, seed):
    settings = settings_of(unit)
    groups = GROUPS if unit is Unit.RECORD else None
    order = np.random.default_rng(seed).permutation(500)
    assert np.array_equal(
        sums(settings, order, groups).sums[0], sums(settings, slice(None), groups).sums[0]
    )


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("features_at_once", [1, 500, 5_000, 2**25])
def test_any_chunk_size_gives_the_same_bits(monkeypatch, unit, features_at_once):
    settings = settings_of(unit)
    groups = GROUPS if unit is Unit.RECORD else None
    whole = sums(settings, slice(None), groups).sums[0]
    monkeypatch.setattr(adder_module, "_FEATURES_AT_ONCE", features_at_once)
    assert np.array_equal(sums(settings, slice(None), groups).sums[0], whole)


@pytest.mark.parametrize("cuts", [[250], [1, 2, 3], [0, 500], list(range(50, 500, 50))])
def test_any_number_of_partials_gives_the_same_bits(cuts):
    settings = settings_of()
    merged = Partial.empty(settings)
    for index in np.split(np.arange(500), cuts):
        merged = merged.merge(sums(settings, index))
    assert np.array_equal(merged.sums[0], sums(settings).sums[0])
    assert merged.rows == 500


def test_partials_of_whole_records_merge_and_shared_records_do_not():
    settings = settings_of(Unit.RECORD)
    low, high = np.flatnonzero(GROUPS < 30), np.flatnonzero(GROUPS >= 30)
    merged = sums(settings, low, GROUPS).merge(sums(settings, high, GROUPS))
    assert np.array_equal(merged.sums[0], sums(settings, slice(None), GROUPS).sums[0])
    with pytest.raises(InvalidInput, match="record"):
        merged.merge(sums(settings, low[:1], GROUPS))


def test_a_record_contributes_the_same_whatever_other_records_there_are():
    settings = settings_of(Unit.RECORD, group_rows=1.5)
    for record in (3, 17):
        own = np.flatnonzero(record == GROUPS)
        others = np.flatnonzero(record != GROUPS)
        alone = sums(settings, own, GROUPS).sums[0]
        apart = sums(settings, slice(None), GROUPS).sums[0] - sums(settings, others, GROUPS).sums[0]
        assert np.array_equal(alone, apart)


def test_records_within_their_allowance_are_left_alone():
    settings = settings_of(Unit.RECORD, group_rows=30.0)
    assert np.array_equal(sums(settings, slice(None), GROUPS).sums[0], sums(settings_of()).sums[0])


def test_torch_memory_maps_and_other_dtypes_give_the_same_bits(tmp_path):
    settings = settings_of()
    np.save(tmp_path / "keys.npy", KEYS.astype(np.float32))
    mapped = np.load(tmp_path / "keys.npy", mmap_mode="r")
    tensor = torch.from_numpy(KEYS.astype(np.float32)).requires_grad_()
    plain = Partial.of([Table(KEYS.astype(np.float32), VALUES)], settings).sums[0]
    for keys in (mapped, tensor, KEYS.astype(np.float32).astype(">f4")):
        assert np.array_equal(Partial.of([Table(keys, VALUES)], settings).sums[0], plain)
    half = Partial.of([Table(torch.from_numpy(KEYS).bfloat16(), VALUES)], settings)
    assert half.rows == 500


def test_exact_sums_stay_inside():
    exact = sums(settings_of())
    assert repr(exact) == str(exact) == "<Partial: exact sums, private>"
    assert repr(Table(KEYS, VALUES)) == "<Table: private>"
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private"):
            copier(exact)


def test_partials_with_other_settings_do_not_merge():
    with pytest.raises(InvalidInput, match="settings"):
        sums(settings_of()).merge(sums(settings_of(Unit.RECORD), slice(None), GROUPS))


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (np.zeros((2, 5, 3)), np.zeros((2, 4, 4)), "as many rows"),
        (np.zeros(3), np.zeros(4), "shape"),
        (np.zeros((5, 3)), np.zeros((2, 5, 4)), "shape"),
        (np.ma.masked_array(np.zeros((2, 5, 3))), np.zeros((2, 5, 4)), "real numbers"),
        (torch.zeros((2, 5, 3), dtype=torch.complex64), np.zeros((2, 5, 4)), "real numbers"),
        (np.zeros((2, 5, 0)), np.zeros((2, 5, 4)), "column"),
        (np.array([["secret"]]), np.zeros((1, 4)), "real numbers"),
        (np.array([[object()]]), np.zeros((1, 4)), "real numbers"),
        ([[1.0], [1.0, 2.0]], np.zeros((2, 4)), "real numbers"),
        (np.zeros((2, 5, 2)), np.zeros((2, 5, 4)), "d_v"),
    ],
)
def test_bad_shapes_and_types_are_refused(keys, values, message):
    with pytest.raises(InvalidInput, match=message):
        Partial.of([Table(keys, values)], settings_of())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_messages_carry_no_private_value(bad):
    keys = KEYS.copy()
    keys[1, 7] = 123456.789
    keys[1, 7, 0] = bad
    with pytest.raises(InvalidInput) as caught:
        Partial.of([Table(keys, VALUES)], settings_of())
    assert "123456" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_more_rows_than_fit_int64_are_refused(monkeypatch):
    settings = settings_of()
    monkeypatch.setattr(Layout, "most_rows", 499)
    with pytest.raises(InvalidInput, match="at most 499 rows"):
        sums(settings)
    half = sums(settings, slice(0, 250))
    with pytest.raises(InvalidInput, match="at most 499 rows"):
        half.merge(sums(settings, slice(250, None)))


def test_the_largest_sums_fit_int64():
    layout = settings_of().layouts[0]
    term = layout.kernel.entry_bound * max(layout.value_radius, layout.tau_units)
    assert layout.most_rows * term <= 2**62
    assert layout.exact_rows * term <= 2**53


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(499, int), "each row"),
        (["1"] * 250 + [1] * 250, "groups"),
        (7, "each row"),
        ("a" * 500, "groups"),
        (b"a" * 500, "groups"),
        (dict.fromkeys(range(500)), "groups"),
        (set(range(500)), "groups"),
        (np.ma.masked_array(np.zeros(500, int), mask=[True] + [False] * 499), "groups"),
        ([None] * 500, "groups"),
        ([1.0] * 500, "groups"),
        ([True] * 500, "groups"),
        (np.array([1, "1"] * 250, dtype=object), "groups"),
        (torch.zeros(500, dtype=torch.bfloat16), "groups"),
        (np.zeros((500, 1), int), "groups"),
        (np.zeros(500), "groups"),
        (None, "groups"),
    ],
)
def test_bad_groups_are_refused(groups, message):
    with pytest.raises(InvalidInput, match=message):
        Partial.of([Table(KEYS, VALUES)], settings_of(Unit.RECORD), groups=groups)


def test_groups_may_be_text():
    settings = settings_of(Unit.RECORD)
    named = np.array([f"patient {group:03}" for group in GROUPS])
    assert np.array_equal(
        Partial.of([Table(KEYS, VALUES)], settings, groups=named).sums[0],
        sums(settings, slice(None), GROUPS).sums[0],
    )


def test_messages_do_not_tell_the_number_of_rows():
    for keys, values, groups in (
        (KEYS[:, :137], VALUES[:, :136], None),
        (KEYS[0, :137], VALUES[:, :137], None),
        (KEYS[0, :137], VALUES[0, :137, 0], None),
        (KEYS[:, :137], VALUES[:, :137], np.zeros(136, int)),
    ):
        with pytest.raises(InvalidInput) as caught:
            Partial.of([Table(keys, values)], settings_of(Unit.RECORD), groups=groups)
        assert not {"137", "136"} & set(re.findall(r"\d+", str(caught.value)))


def test_partials_with_other_frequencies_do_not_merge():
    bounds = {"scale": 2.0, "key_norm": 1.0, "query_norm": 1.0}
    plain = Fourier(3, frequencies=30, **bounds)
    moved = plain.integer_frequencies
    moved = IntegerFrequencies(moved.values + 1, moved.turn_bits)
    other = Fourier(3, frequencies=30, stored=moved, **bounds)
    assert plain == other
    with pytest.raises(InvalidInput, match="settings"):
        sums(settings_of(kernel=plain)).merge(sums(settings_of(kernel=other)))


def test_chunks_with_ids_of_several_types_do_not_merge():
    settings = settings_of(Unit.RECORD)
    numbers = sums(settings, slice(0, 100), np.arange(500))
    texts = sums(settings, slice(100, 200), np.array([str(i) for i in range(500)]))
    with pytest.raises(InvalidInput, match="one type"):
        numbers.merge(texts)


@pytest.mark.parametrize("ends", [(b"a", b"a\0"), ("a", "a\0"), ("a", "a\0\0"), (b"", b"\0")])
def test_ids_that_differ_by_zeros_at_the_end_are_refused(ends):
    """In an array of fixed texts they would be one record, and in a list and an array two."""
    named = [ends[0]] * 250 + [ends[1]] * 250
    for groups in (named, np.array(named, dtype=object)):
        with pytest.raises(InvalidInput, match="end in a null character"):
            Partial.of([Table(KEYS, VALUES)], settings_of(Unit.RECORD), groups=groups)


def test_no_rows_have_no_groups():
    settings = settings_of(Unit.RECORD)
    for groups in ([], np.array([]), np.array([], dtype=int), torch.zeros(0)):
        assert Partial.of([Table(KEYS[:, :0], VALUES[:, :0])], settings, groups=groups).rows == 0


def test_groups_may_come_in_any_container():
    settings = settings_of(Unit.RECORD)
    plain = sums(settings, slice(None), GROUPS).sums[0]
    for groups in (
        GROUPS.tolist(),
        tuple(GROUPS),
        iter(GROUPS),
        torch.from_numpy(GROUPS),
        GROUPS.astype(np.uint8),
        np.array([f"{group}" for group in GROUPS], dtype=object),
        np.char.encode(GROUPS.astype(str)),
    ):
        made = Partial.of([Table(KEYS, VALUES)], settings, groups=groups)
        assert np.array_equal(made.sums[0], plain)


def test_the_same_partial_does_not_merge_twice():
    settings = settings_of()
    first, second = sums(settings, slice(0, 250)), sums(settings, slice(250, None))
    merged = first.merge(second)
    for again in (first, second, merged):
        with pytest.raises(InvalidInput, match="twice"):
            merged.merge(again)


def test_a_shard_of_the_same_name_does_not_merge_twice():
    settings = settings_of()
    one, other = (Partial.of([Table(KEYS, VALUES)], settings, shard="file 1") for _ in range(2))
    with pytest.raises(InvalidInput, match="twice"):
        one.merge(other)


@pytest.mark.parametrize("index", [slice(2, 9), np.array([4, 1])])
def test_rows_are_copied_before_they_are_looked_at(tmp_path, index):
    """A mapped file that somebody writes into, or a tensor, changes nothing that was checked."""
    one, values_of_one = KEYS[0].copy(), VALUES[0]  # without heads, some rows lie side by side
    np.save(tmp_path / "keys.npy", one)
    mapped = np.load(tmp_path / "keys.npy", mmap_mode="r+")
    for keys in (one.copy(), mapped, torch.from_numpy(one.copy())):
        read, values = Table(keys, values_of_one).read(index)
        before = read.copy()
        assert not np.shares_memory(read, np.asarray(keys))
        assert not np.shares_memory(values, values_of_one)
        keys[...] = 1e30
        assert np.array_equal(read, before)


def test_who_writes_while_rows_are_looked_at_changes_none_of_them(monkeypatch):
    """What is added up is what was looked at: another thread may write into the caller's array."""
    keys, looked = KEYS[0].copy(), np.isfinite
    table = Table(keys, VALUES[0])

    def writing(rows):
        found = looked(rows)
        keys[...] = np.nan
        return found

    monkeypatch.setattr(np, "isfinite", writing)
    read, values = table.read(slice(0, 5))
    assert np.array_equal(read, KEYS[0][:5])
    assert np.array_equal(values, VALUES[0][:5])
    assert np.all(np.isnan(keys))


@pytest.mark.parametrize(
    ("keys", "values"),
    [((0, 5, 2), (0, 5, 1)), ((5, 0), (5, 1)), ((5, 2), (5, 0)), ((2, 0, 5, 2), (2, 0, 5, 1))],
)
def test_rows_without_heads_or_columns_are_refused(keys, values):
    with pytest.raises(InvalidInput, match="at least one head and column"):
        Table(np.ones(keys), np.ones(values))


@pytest.mark.parametrize("rows", ["rows.parquet", pathlib.Path("rows.parquet")])
def test_a_path_is_no_array_and_the_way_to_read_it_is_named(rows):
    with pytest.raises(InvalidInput, match=r"discreet\.tables\.Rows"):
        RowSource.of(rows, None, None)
