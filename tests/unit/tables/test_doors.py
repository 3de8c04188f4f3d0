"""Front doors that take a store: here one that looks like Chroma's; no library is needed."""

import threading

import numpy as np
import pytest
from vector_stores import COUNT, EMBEDDING, KIND, NAME, RATING, bits, coefficients, logits

import discreet
from discreet.errors import InvalidInput
from discreet.tables import Rows
from discreet.tables.rows import read_ahead
from discreet.tables.stores import chroma, is_store
from discreet.testing import Seeded


class Collection:
    """What is asked of a collection of Chroma."""

    __module__ = "chromadb.api.models.Collection"

    def get(self, *, include, ids=None):
        ids = [str(place) for place in range(COUNT)] if ids is None else ids
        places = [int(each) for each in ids]
        cells = [
            {"rating": RATING[place].item(), "name": NAME[place], "kind": KIND[place]}
            for place in places
        ]
        return {"ids": ids, "embeddings": EMBEDDING[places], "metadatas": cells}


Subclass = type("Subclass", (Collection,), {"__module__": "elsewhere"})


def test_a_store_is_known_by_its_type():
    assert is_store(Collection())
    assert is_store(Subclass())
    for other in ("Collection", EMBEDDING, [Collection()], Collection, None, {"a": 1}):
        assert not is_store(other)


def test_names_may_be_given_by_place_and_by_name():
    expected = bits(EMBEDDING, RATING[:, None], groups=NAME)
    for store in (Collection(), Subclass()):
        np.testing.assert_array_equal(bits(store, "rating", groups="name"), expected)
    got = discreet.build(
        keys=Collection(),
        values="rating",
        groups="name",
        epsilon=1.0,
        delta=1e-6,
        scale=1.0,
        kernel="minimax",
        eps_s=0.2,
        entropy=Seeded(3),
    )
    np.testing.assert_array_equal(got.released.state, expected)


def test_every_front_door_takes_one():
    same = np.testing.assert_array_equal
    same(logits(Collection(), "kind"), logits(EMBEDDING, KIND))
    same(coefficients(Collection(), "rating"), coefficients(EMBEDDING, RATING[:, None]))
    options = {"p": 2, "features": 100, "bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-6}
    one = discreet.distances(Collection(), weights="rating", **options, entropy=Seeded(1))
    two = discreet.distances(EMBEDDING, RATING, **options, entropy=Seeded(1))
    same(one.query(np.eye(8)), two.query(np.eye(8)))


def test_what_is_no_name_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="names of values, or of labels"):
        bits(Collection())
    with pytest.raises(InvalidInput, match=r"values to be names of .* it is a ndarray"):
        bits(Collection(), RATING)
    with pytest.raises(InvalidInput, match="groups to be the name of one column"):
        bits(Collection(), "rating", groups=NAME)
    with pytest.raises(InvalidInput, match="workers"):
        bits(Collection(), "rating", workers=2)
    np.savez(tmp_path / "rows.npz", rating=RATING)
    with pytest.raises(InvalidInput, match="keys to be names of columns"):
        Rows(tmp_path / "rows.npz", values="rating")


def test_what_is_kept_is_let_go_of(monkeypatch):
    closed = []
    monkeypatch.setattr(chroma._Collection, "close", lambda _: closed.append(1))
    bits(Collection(), "rating")
    with pytest.raises(InvalidInput, match="missing value in price"):
        bits(Collection(), "price")
    with pytest.raises(InvalidInput, match="to be numbers"):
        bits(Collection(), "name")
    assert len(closed) == 3


def test_another_thread_reads_ahead_and_ends():
    readers, made = set(), []

    def chunks():
        for number in range(5):
            readers.add(threading.current_thread().name)
            made.append(number)
            yield number
        raise InvalidInput("Expected more.")

    before = threading.active_count()
    ahead = read_ahead(chunks())
    assert next(ahead) == 0
    ahead.close()
    assert made in ([0], [0, 1])
    got = []
    with pytest.raises(InvalidInput, match="more"):
        got += list(read_ahead(chunks()))
    assert threading.active_count() == before
    assert readers.isdisjoint({threading.current_thread().name})
