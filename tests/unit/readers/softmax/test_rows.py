"""Rows that are read again in every round: what may be given, and that no way of giving matters."""

import copy
import pickle
import re

import numpy as np
import pytest
import torch
from data import unit_rows
from maps import maps, public_rows

import discreet
from discreet import InvalidInput
from discreet.readers.rounds import cached
from discreet.readers.rounds.cached import CachedFeatures, with_cached_features
from discreet.readers.softmax.rows import Labels, labelled
from discreet.sums.source import RowSource, Table
from discreet.testing import Seeded

ROWS, DIM = 137, 3
KEYS = unit_rows(ROWS, DIM) * np.linspace(0.3, 1.4, ROWS)[:, None]
LABELS = np.array(["no", "yes"])[(KEYS[:, 0] > 0).astype(int)]
GROUPS = np.random.default_rng(3).integers(0, 40, ROWS)
CLASSES = Labels.of(["no", "yes"], distinct=True)
CUTS = [slice(0, 50), slice(50, 51), slice(51, 51), slice(51, ROWS)]
MAPS = maps(DIM)


def made(keys=KEYS, labels=LABELS, **options):
    """The released integers."""
    given = {"classes": ["no", "yes"], "epsilon": 2.0, "delta": 1e-6, "features": MAPS["waves"]}
    given |= {"entropy": Seeded(5), "rows_hint": 100}
    return discreet.softmax_regression(keys, labels, **given | options).released.state


def chunks(groups=None):
    """Rows in pieces; whole records if there are groups."""
    if groups is None:
        return [(KEYS[cut], LABELS[cut]) for cut in CUTS]
    parts = (np.flatnonzero(groups % 3 == rest) for rest in range(3))
    return [(KEYS[part], LABELS[part], groups[part]) for part in parts]


class Again:
    """Can be iterated over again and again."""

    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        return iter(self.parts)


@pytest.mark.parametrize("features", [*MAPS])
def test_kept_or_computed_again_in_one_chunk_or_many_the_bits_are_the_same(features):
    whole = made(features=MAPS[features])
    for keys, labels, limit in (
        (KEYS, LABELS, 0),
        (lambda: iter(chunks()), None, 0),
        (chunks(), None, 6_000),  # less than all of them
        (Again(chunks()), None, 1e9),
    ):
        again = made(keys, labels, features=MAPS[features], memory_limit=limit)
        assert np.array_equal(again, whole)


@pytest.mark.parametrize("group_rows", [0.5, 1.0, 3.0])
def test_records_in_one_chunk_or_many_give_the_same_bits(group_rows):
    whole = made(groups=GROUPS, group_rows=group_rows)
    assert not np.array_equal(whole, made())
    for limit in (0, 1e9):
        options = {"group_rows": group_rows, "memory_limit": limit}
        assert np.array_equal(made(lambda: iter(chunks(GROUPS)), None, **options), whole)
    named = [f"{group:02}" for group in GROUPS]
    assert np.array_equal(made(groups=named, group_rows=group_rows), whole)


def test_any_order_of_rows_gives_the_same_bits():
    order = np.random.default_rng(0).permutation(ROWS)
    assert np.array_equal(made(KEYS[order], LABELS[order]), made())
    grouped = made(KEYS[order], LABELS[order], groups=GROUPS[order])
    assert np.array_equal(grouped, made(groups=GROUPS))


def test_generators_come_from_a_function_each_time_anew():
    opened = []

    def keys():
        opened.append(1)
        yield from chunks()

    assert np.array_equal(made(keys, None, memory_limit=0), made())
    assert len(opened) == 18  # 17 passes, and one before to see whether features fit
    made(keys, None)
    assert len(opened) == 19  # what is kept is not read again


def test_torch_tensors_memory_maps_and_other_types_give_the_same_bits(tmp_path):
    single = KEYS.astype(np.float32)
    np.save(tmp_path / "keys.npy", single)
    mapped = np.load(tmp_path / "keys.npy", mmap_mode="r")
    labels = (LABELS == "yes").astype(int)
    plain = made(single, labels, classes=[0, 1])
    for limit in (0, 1e9):
        for keys in (mapped, torch.from_numpy(single).requires_grad_(), single[:, ::-1][:, ::-1]):
            assert np.array_equal(made(keys, labels, classes=[0, 1], memory_limit=limit), plain)
    for other in (torch.from_numpy(labels), labels.astype(np.uint8), labels * 1.0, list(labels)):
        assert np.array_equal(made(single, other, classes=(0, 1)), plain)
    assert np.array_equal(made(single, labels.astype(bool), classes=[False, True]), plain)


def test_no_rows_are_data_too():
    nothing = made(KEYS[:0], LABELS[:0])
    assert np.array_equal(made(lambda: iter([(KEYS[:0], [])]), None), nothing)
    assert np.array_equal(made(KEYS[:0], [], memory_limit=0), nothing)
    assert not np.array_equal(nothing, made())
    assert made(KEYS[:0], LABELS[:0], groups=[]).shape == nothing.shape


@pytest.mark.parametrize(
    "keys",
    [
        iter(chunks()),
        (part for part in chunks()),
        map(tuple, chunks()),
        zip(KEYS, LABELS, strict=True),
    ],
)
def test_an_iterator_is_refused_with_the_reason(keys):
    for labels in (None, LABELS):
        with pytest.raises(InvalidInput, match=r"read again.*read once.*function without argument"):
            made(keys, labels)


def test_a_function_that_returns_the_same_iterator_again_is_refused():
    once = iter(chunks())
    with pytest.raises(InvalidInput, match="iterator"):
        made(lambda: once, None, memory_limit=0)


def test_features_that_are_kept_need_one_pass_over_a_stream():
    once = iter(chunks())
    assert np.array_equal(made(lambda: once, None), made())


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("changed_pass", [2, 16, 17])
def test_another_number_of_rows_in_a_later_pass_is_refused(changed_pass, change):
    begun = []

    def keys():
        begun.append(1)
        late = len(begun) - 1 >= changed_pass  # one before, to see whether features fit
        rows = np.arange(ROWS + (change if late else 0)) % ROWS
        return iter([(KEYS[rows], LABELS[rows])])

    with pytest.raises(InvalidInput, match="number has changed") as caught:
        made(keys, None, memory_limit=0)
    [note] = caught.value.__notes__
    assert f"drawn in {changed_pass - 1} of 17 passes" in note
    assert not {"136", "137", "138"} & set(re.findall(r"\d+", f"{caught.value} {note}"))


@pytest.mark.parametrize(
    ("keys", "labels", "options", "message"),
    [
        (KEYS, None, {}, "labels"),
        (torch.from_numpy(KEYS), None, {}, "labels"),
        (7, None, {}, "labels"),
        (lambda: 7, None, {}, "iterator of chunks"),
        (lambda: iter([]), None, {}, "at least one chunk"),
        ([], None, {}, "at least one chunk"),
        (lambda: iter([KEYS]), None, {}, "chunks"),
        (lambda: iter([(KEYS,)]), None, {}, "chunks"),
        (lambda: iter([(KEYS, LABELS, GROUPS, 1)]), None, {}, "chunks"),
        (lambda: iter(chunks()), None, {"groups": GROUPS}, "come with the chunks"),
        (lambda: iter(chunks()), LABELS, {}, "labels to come with the chunks"),
        (KEYS, LABELS[:, None], {}, "one for each row"),
        (KEYS, "yes", {}, "one for each row"),
        (KEYS, iter(LABELS), {}, "one for each row"),
        (KEYS, LABELS[1:], {}, "as many labels"),
        (KEYS[0], LABELS, {}, r"keys of shape \(n, d\)"),
        (np.stack([KEYS, KEYS]), LABELS, {}, "no heads"),
        (KEYS[None], LABELS, {}, "no heads"),
        (KEYS.astype(str), LABELS, {}, "real numbers"),
        (KEYS * np.nan, LABELS, {}, "NaN"),
        (KEYS, LABELS, {"groups": GROUPS[1:]}, "each row"),
        (KEYS, LABELS, {"groups": GROUPS * 1.0}, "groups"),
        ([chunks(GROUPS)[0], chunks()[0]], None, {}, "groups with every chunk"),
        ([chunks()[0], chunks(GROUPS)[0]], None, {}, "groups with every chunk"),
        ([(KEYS, LABELS, GROUPS), (KEYS[:1], LABELS[:1], GROUPS[:1])], None, {}, "one chunk"),
    ],
)
@pytest.mark.parametrize("limit", [0, 1e9])
def test_what_are_no_rows_is_refused_with_what_is_wrong(keys, labels, options, message, limit):
    with pytest.raises(InvalidInput, match=message) as caught:
        made(keys, labels, memory_limit=limit, **options)
    numbers = set(re.findall(r"\d+", str(caught.value)))
    assert not {"136", "137"} & numbers  # how many rows there are is nobody's business


def test_a_chunk_of_another_width_is_refused():
    with pytest.raises(InvalidInput, match="first chunk"):
        made([chunks()[0], (KEYS[:, :2], LABELS)], None, memory_limit=0)


def test_a_chunk_of_another_width_is_refused_if_features_are_kept():
    with pytest.raises(InvalidInput, match="first chunk"):
        made([chunks()[0], (KEYS[:, :2], LABELS)], None)


def test_classes_may_be_a_tensor():
    assert Labels.of(torch.tensor([1, 0]), distinct=True).classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    "labels", [["maybe-4711"] * ROWS, [4711] * ROWS, [None] * ROWS, [2.5] * ROWS]
)
def test_a_label_beyond_the_classes_is_refused_and_not_quoted(labels):
    for keys, given in ((KEYS, labels), (lambda: iter([(KEYS, labels)]), None)):
        with pytest.raises(InvalidInput, match=r"label") as caught:
            made(keys, given)
        assert not any(text in str(caught.value) for text in ("4711", "2.5", "None", "137"))
        assert caught.value.__cause__ is None


def test_labels_of_several_lengths_are_refused_and_not_counted():
    with pytest.raises(InvalidInput) as caught:
        made(labels=[["no"], ["no", "yes"]] * 68 + [["no"]])
    assert "137" not in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_messages_carry_no_private_value(bad):
    keys = KEYS.copy()
    keys[7] = [123456.789, bad, 0.0]
    for limit in (0, 1e9):
        with pytest.raises(InvalidInput) as caught:
            made(keys, memory_limit=limit)
        assert "123456" not in str(caught.value)
        assert caught.value.__cause__ is None


def source(keys=KEYS, labels=LABELS):
    return RowSource.of(keys, labels, None, labelled(CLASSES))


def test_rows_stay_inside():
    rows = source()
    kept = with_cached_features(rows, MAPS["waves"], 1e9)
    for private in (rows, kept):
        assert "0." not in repr(private)
        for copier in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="private"):
                copier(private)
    [([table], _)] = kept.chunks()
    assert repr(table) == "<Table: private>"


def test_features_are_kept_if_they_fit_and_not_if_they_do_not():
    kernel = MAPS["waves"]
    size = ROWS * kernel.features * 4
    for keys, labels in ((KEYS, LABELS), (chunks(), None)):
        rows = source(keys, labels)
        again = with_cached_features(rows, kernel, size - 1)
        assert not any(isinstance(table, CachedFeatures) for [table], _ in again.chunks())
        kept = with_cached_features(rows, kernel, size)
        tables = [table for [table], _ in kept.chunks()]
        assert all(isinstance(table, CachedFeatures) for table in tables)
        assert sum(table.kept.nbytes for table in tables) == size
        assert kept.count() == ROWS


@pytest.mark.parametrize("at_once", [1, 300, 2**22])
@pytest.mark.parametrize("kind", [*MAPS])
def test_kept_features_are_those_of_the_rows(monkeypatch, kind, at_once):
    monkeypatch.setattr(cached, "_FEATURES_AT_ONCE", at_once)
    table = Table(KEYS, np.arange(float(ROWS))[:, None])
    kept = CachedFeatures.of(table, MAPS[kind])
    truth = MAPS[kind].key_features(KEYS).features
    for index in (slice(0, ROWS), slice(20, 21), np.array([4, 100, 4]), slice(3, 3)):
        features, values = kept.read(index)
        mapped, weights = kept.features(None, features, np.empty(ROWS * MAPS[kind].features))
        assert weights is None
        assert mapped.dtype == np.float64
        assert np.array_equal(mapped[0], truth[index])
        assert np.array_equal(values[:, 0], np.arange(float(ROWS))[index])


def test_integer_features_fit_single_precision():
    for kernel in MAPS.values():
        assert kernel.entry_bound <= 2**24


def test_classes_are_numbers_or_texts_each_of_them_once():
    assert Labels.of([3, 1, 2], distinct=True).classes.tolist() == [1, 2, 3]
    assert Labels.of([3, 1, 3], distinct=False).count == 2
    places = Labels.of(["b", "a", "c"], distinct=True).places(np.array(["c", "a", "a", "b"]))
    assert places.tolist() == [2, 0, 0, 1]
    for wrong in ([1, 1, 2], [1], []):
        with pytest.raises(InvalidInput, match="classes"):
            Labels.of(wrong, distinct=True)
    with pytest.raises(InvalidInput, match="one kind"):
        Labels.of(np.array([1, "a"], dtype=object), distinct=True)


@pytest.mark.parametrize("other", [1.0, np.uint64(1), 1 + 0j])
def test_the_type_of_one_label_changes_no_other(other):
    """All whole numbers become floats then, and some of those would be another class."""
    for large in (2**53, -(2**53), 10**40):
        with pytest.raises(InvalidInput, match="below"):
            Labels.of([0, large], distinct=True)
    classes = Labels.of([1, 2**53 - 1, 2**53 - 2], distinct=True)
    for large, place in ((2**53 - 1, 2), (2**53 - 2, 1)):
        assert classes.places(np.asarray([large, 1, other])).tolist() == [place, 0, 0]
    with pytest.raises(InvalidInput, match="one of classes"):
        classes.places(np.asarray([2**53, other]))


class Saying:
    """What numpy asks when it makes an array of it."""

    def __array__(self, *_, **__):
        raise KeyError("secret")


def test_labels_that_say_something_are_not_quoted():
    with pytest.raises(InvalidInput, match="labels of shape") as caught:
        made(labels=Saying())
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("ids", "others"),
    [([2**63, 2**63 + 1, -1], [2**63 + 1, 2**63, -1]), (["a", "b", "c"], ["b", "a", "c"])],
)
def test_rows_stay_with_their_records(ids, others):
    opened = []

    def keys():
        opened.append(1)
        yield KEYS[:3], LABELS[:3], others if len(opened) > 1 else ids

    with pytest.raises(InvalidInput, match="same record in every pass"):
        made(keys, None, memory_limit=0)


def test_public_rows_make_landmarks():
    state = made(features="near_landmarks", public_rows=public_rows(DIM))
    assert np.array_equal(
        made(chunks(), None, public_rows=public_rows(DIM), features="auto"), state
    )
