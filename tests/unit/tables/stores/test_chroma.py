"""Collections of Chroma: the bits of arrays, the ids that there were at first, no value shown."""

import itertools

import numpy as np
import pytest
from vector_stores import (
    BOTH,
    CHANGED,
    COUNT,
    EMBEDDING,
    KIND,
    NAME,
    PERSON,
    RATING,
    bits,
    check_bits,
    refused,
)

from discreet.errors import InvalidInput
from discreet.tables import Rows
from discreet.tables.stores import chroma

chromadb = pytest.importorskip("chromadb", reason="needs the extra `stores`")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def client():
    return chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))


def filled(client, rows=COUNT, **changed):
    made = client.create_collection(f"rows-{next(_NUMBERS)}", embedding_function=None)
    columns = {"rating": RATING.tolist(), "person": PERSON.tolist(), "name": NAME, "kind": KIND}
    columns |= changed
    cells = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    cells = [{name: cell for name, cell in row.items() if cell is not None} for row in cells]
    if rows:
        ids = [f"id {number}" for number in range(rows)]
        made.add(ids=ids, embeddings=EMBEDDING[:rows], metadatas=cells[:rows])
    return made


def test_a_collection_gives_the_bits_of_arrays(client, monkeypatch):
    monkeypatch.setattr(chroma, "_ROWS_AT_ONCE", 128)  # several times, the last with fewer
    check_bits(filled(client))


def test_values_may_be_the_embeddings_and_keys_numbers(client):
    rows = Rows(filled(client), keys="rating,person", values="embeddings")
    [(keys, values)] = rows
    np.testing.assert_array_equal(values, EMBEDDING)
    np.testing.assert_array_equal(keys, BOTH)
    assert (rows.key_dim, rows.value_dim, rows.count) == (2, 8, 300)


def test_rows_that_come_later_are_not_read_and_none_may_be_gone(client):
    collection = filled(client)
    rows = Rows(collection, values="rating")
    before = bits(rows)
    collection.add(ids=["later"], embeddings=[[1.0] * 8], metadatas=[{"rating": 1.0}])
    np.testing.assert_array_equal(bits(rows), before)
    assert not np.array_equal(bits(collection, values="rating"), before)
    collection.delete(ids=["id 5"])
    with pytest.raises(ValueError, match=CHANGED):
        bits(rows)


def test_rows_come_in_the_order_of_their_ids(client):
    collection = filled(client)
    [(keys, values)] = Rows(collection, values="rating")

    class Shuffled(type(collection)):
        def get(self, **asked):
            got = super().get(**asked)
            if asked.get("ids"):
                got["ids"] = got["ids"][::-1]
                got["embeddings"] = got["embeddings"][::-1]
                got["metadatas"] = got["metadatas"][::-1]
            return got

    collection.__class__ = Shuffled
    [(others, other_values)] = Rows(collection, values="rating")
    np.testing.assert_array_equal(others, keys)
    np.testing.assert_array_equal(other_values, values)


@pytest.mark.parametrize(
    ("changed", "names", "match"),
    [
        ({"rating": [*RATING[:-1].tolist(), None]}, {}, "no missing value in rating"),
        ({"rating": [*RATING[:-1].tolist(), "secret"]}, {}, "rating in the collection to be numb"),
        ({}, {"values": "price"}, "no missing value in price"),
        ({}, {"values": "name"}, "to be numbers"),
        ({}, {"groups": "rating"}, "whole number for each row, or a text"),
        ({"person": [*PERSON[:-1].tolist(), "secret"]}, {"groups": "person"}, "person in the coll"),
        ({"person": [*PERSON[:-1].tolist(), True]}, {"groups": "person"}, "person in the coll"),
        ({"rating": [*RATING[:-1].tolist(), float("nan")]}, {}, "NaN|missing|readable"),
        ({}, {"values": "embeddings,rating"}, "one column of lists"),
    ],
)
def test_what_does_not_fit_is_named_and_not_shown(client, changed, names, match):
    refused(filled(client, **changed), match, **names)


def test_labels_are_of_one_kind_in_every_part(client, monkeypatch):
    """Else one row would decide whether 1 is a number in others, or the text 1.0."""
    monkeypatch.setattr(chroma, "_ROWS_AT_ONCE", 100)
    mixed = filled(client, kind=[*KIND[:100], *RATING[100:].tolist()])
    with pytest.raises(InvalidInput, match="kind in the collection to be numbers, or texts"):
        list(Rows(mixed, labels="kind"))


def test_a_collection_without_rows_tells_no_width(client):
    refused(filled(client, rows=0), "to have rows")
