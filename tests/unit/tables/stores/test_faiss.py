"""Indices of FAISS: the bits of arrays, whatever the ids; codes only of public tables."""

import numpy as np
import pytest
from vector_stores import (
    CHANGED,
    COUNT,
    DIM,
    EMBEDDING,
    KIND,
    NAME,
    PERSON,
    RATING,
    bits,
    check_bits,
    logits,
    refused,
)

from discreet.errors import InvalidInput
from discreet.tables import Rows, Vectors
from discreet.tables.stores import faiss as reading

faiss = pytest.importorskip("faiss", reason="needs the extra `stores`")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

COLUMNS = {"rating": RATING, "person": PERSON, "name": NAME, "kind": KIND}
IDS = np.random.default_rng(0).permutation(COUNT) * 3 + 10


def index_of(kind, ids=None):
    made = faiss.index_factory(DIM, kind)
    made.train(EMBEDDING)
    if ids is None:
        made.add(EMBEDDING)
    else:
        made.add_with_ids(EMBEDDING, ids)
    return made


def by_id(column, ids=IDS):
    return dict(zip(ids.tolist(), np.asarray(column).tolist(), strict=True))


@pytest.fixture(autouse=True)
def several_times(monkeypatch):
    monkeypatch.setattr(reading, "_NUMBERS_AT_ONCE", 100 * DIM)


@pytest.mark.parametrize("kind", ["Flat", "HNSW8", "IVF4,Flat"])
def test_an_index_gives_the_bits_of_arrays(kind):
    check_bits(Vectors(index_of(kind), COLUMNS))


@pytest.mark.parametrize("kind", ["IDMap,Flat", "IDMap2,Flat", "IVF4,Flat", "IDMap,IVF4,Flat"])
def test_columns_belong_to_ids(kind):
    columns = {name: by_id(column) for name, column in COLUMNS.items()}
    check_bits(Vectors(index_of(kind, IDS), columns))


def test_columns_may_be_given_without_names():
    expected = bits(EMBEDDING, RATING[:, None], groups=NAME)
    got = bits(index_of("Flat"), RATING, groups=NAME)
    np.testing.assert_array_equal(got, expected)
    got = bits(index_of("IDMap,Flat", IDS), by_id(RATING), groups=by_id(NAME))
    np.testing.assert_array_equal(got, expected)
    got = bits(index_of("Flat"), RATING[:, None])
    np.testing.assert_array_equal(got, bits(EMBEDDING, RATING[:, None]))
    np.testing.assert_array_equal(logits(index_of("Flat"), KIND), logits(EMBEDDING, KIND))


def test_columns_of_lists_and_the_vectors_themselves():
    rows = Rows(Vectors(index_of("Flat"), {"both": np.eye(COUNT, 2)}), values="both")
    [(keys, values)] = [tuple(map(np.concatenate, zip(*rows, strict=True)))]
    np.testing.assert_array_equal(keys, EMBEDDING)
    np.testing.assert_array_equal(values, np.eye(COUNT, 2))
    lists = {id_: [1.0, 2.0] for id_ in range(COUNT)}
    rows = Rows(Vectors(index_of("Flat"), {"both": lists}), keys="both", values="vectors")
    assert (rows.key_dim, rows.value_dim, rows.count) == (2, DIM, COUNT)


def test_codes_are_read_if_their_table_is_public():
    """Of inverted lists, too: as FAISS itself reconstructs them."""
    for kind, ids in (("SQ8", None), ("IVF4,SQ8", IDS), ("IDMap,PQ4x4", IDS), ("IVF4,PQ4x4", IDS)):
        index = index_of(kind, ids)
        places = np.arange(COUNT)
        columns = {"rating": places if ids is None else by_id(places)}
        refused(Vectors(index, columns), "keeps codes, by a table that was trained on vectors")
        rows = Rows(Vectors(index, columns, trained_on_public=True), values="rating")
        keys, values = map(np.concatenate, zip(*rows, strict=True))
        order = np.argsort(values[:, 0])
        if "IVF" in kind:
            index.set_direct_map_type(faiss.DirectMap.Hashtable)
            expected = index.reconstruct_batch(IDS)
        else:
            base = faiss.downcast_index(getattr(index, "index", index))
            expected = base.reconstruct_n(0, COUNT)
        np.testing.assert_array_equal(keys[order], expected)


@pytest.mark.parametrize("kind", ["LSH", "PCA4,Flat", "IDMap,PCA4,Flat", "IVF4,PQ4x4fs"])
def test_an_index_that_cannot_be_read_is_refused_and_not_asked(kind):
    index = index_of(kind) if "IDMap" not in kind else index_of(kind, IDS)
    store = Vectors(index, {"rating": RATING}, trained_on_public=True)
    refused(store, "Expected one of .*IndexFlat")


def test_what_does_not_fit_is_named_and_not_shown():
    flat, own = index_of("Flat"), index_of("IDMap,Flat", IDS)
    refused(Vectors(flat, {"rating": RATING[1:]}), "rating to have one cell for each vector")
    refused(Vectors(own, {"rating": RATING}), "rating to be a mapping from ids")
    refused(Vectors(own, {"rating": {IDS[0]: 1.0}}), "a cell for each id of the index")
    refused(Vectors(own, {"rating": {}}), "a cell for each id of the index|readable")
    refused(Vectors(own, {"rating": {"secret": 1.0}}), "an array or a mapping of ids")
    refused(Vectors(flat, {"rating": ["secret"] * COUNT}), "array of real numbers")
    refused(Vectors(flat, COLUMNS), "to have 'price' beside it; it has: kind", values="price")
    refused(Vectors(flat, COLUMNS), "rating to hold a whole number or text", groups="rating")
    refused(Vectors(flat, COLUMNS), "to have 'vectors' beside it", groups="vectors")
    missing = [*RATING[:-1].tolist(), None]
    refused(Vectors(flat, {"rating": missing}), "no missing value in rating")
    nan = np.where(PERSON == 3, np.nan, RATING)
    refused(Vectors(flat, {"rating": nan}), "no NaN and no infinity")
    with pytest.raises(InvalidInput, match="an array or a mapping of ids, since an index of FAISS"):
        bits(flat, values="rating")


def test_ids_are_whole_numbers():
    index = index_of("Flat")
    cells = {**by_id(RATING, np.arange(COUNT)), 0.5: 1.0}
    with pytest.raises(InvalidInput, match="rating to be an array or a mapping of ids"):
        bits(Vectors(index, {"rating": cells}), values="rating")


def test_an_index_has_to_hold_still():
    index = index_of("Flat")
    rows = Rows(Vectors(index, COLUMNS), values="rating")
    bits(rows)
    index.add(EMBEDDING[:1])
    with pytest.raises(InvalidInput, match=CHANGED):
        bits(rows)


def test_it_is_neither_shown_nor_pickled():
    import pickle

    store = Vectors(index_of("Flat"), COLUMNS)
    assert repr(store) == "<Vectors: private>"
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(store)
