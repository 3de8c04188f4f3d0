"""Queries of PostgreSQL: the bits of arrays, one state of the database, no value shown."""

import gc
import itertools
import weakref
from contextlib import closing

import numpy as np
import pytest
from vector_stores import COUNT, EMBEDDING, KIND, NAME, PERSON, RATING, bits, check_bits, refused

from discreet.errors import InvalidInput
from discreet.tables import Query, Rows
from discreet.tables.stores import postgres as reading

psycopg = pytest.importorskip("psycopg", reason="needs psycopg")

_NUMBERS = itertools.count()

ALL = "SELECT * FROM reviews"
QUOTED = '"as ""text"""'
AS_VECTOR = "translate(embedding::text, '{}', '[]')::vector"

# As pgvector's types look from outside, made of texts: an output of "[1,2,3]", and its cast.
_VECTOR = """
CREATE TYPE vector;
CREATE FUNCTION vector_in(cstring) RETURNS vector AS 'textin' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION vector_out(vector) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE vector (INPUT = vector_in, OUTPUT = vector_out, LIKE = text);
CREATE FUNCTION vector_to_float4(vector) RETURNS real[] LANGUAGE sql
    AS $$ SELECT translate(vector_out($1)::text, '[]', '{}')::real[] $$;
CREATE CAST (vector AS real[]) WITH FUNCTION vector_to_float4(vector) AS IMPLICIT;
"""


@pytest.fixture(scope="module")
def cluster():
    from clusters import Cluster

    made = Cluster()
    with made.raw() as raw:
        raw.execute(_VECTOR)
    yield made
    made.remove()


@pytest.fixture
def address(cluster):
    """Return the address of a schema with rows. Whoever waits for a lock gives up soon."""
    schema = f"test_{next(_NUMBERS)}"
    options = f"-csearch_path%3D{schema},public%20-clock_timeout%3D5000"
    address = cluster.address(options=options)
    with psycopg.connect(address) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(
            "CREATE TABLE reviews (embedding real[], rating float8, person int, name text,"
            f" kind varchar, {QUOTED} text)"
        )
        with connection.cursor().copy("COPY reviews FROM STDIN") as copy:
            cells = (EMBEDDING.tolist(), RATING.tolist(), PERSON.tolist(), NAME, KIND)
            for embedding, *others in zip(*cells, strict=True):
                copy.write_row((embedding, *others, str(embedding)))
    return address


@pytest.fixture(autouse=True)
def several_times(monkeypatch):
    monkeypatch.setattr(reading, "_BYTES_AT_ONCE", 10_000)


def execute(address, statement):
    with psycopg.connect(address) as connection:
        connection.execute(statement)


def test_a_query_gives_the_bits_of_arrays(address):
    check_bits(Query(address, f"{ALL};"))
    with psycopg.connect(address) as connection:
        check_bits(Query(connection, f"{ALL} WHERE rating < %s -- all of them", [9]))
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.isolation_level is None
        assert connection.read_only is None


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        (AS_VECTOR, EMBEDDING),
        ("embedding::float8[]", EMBEDDING),
        (QUOTED, EMBEDDING.astype(float)),
        (f"{QUOTED}::jsonb", EMBEDDING.astype(float)),
        ("ARRAY[person, 3]", np.stack([PERSON, np.full(COUNT, 3)], axis=1)),
        ("ARRAY[person, 0.5]::numeric[]", np.stack([PERSON, np.full(COUNT, 0.5)], axis=1)),
    ],
)
def test_lists_may_have_any_type(address, column, keys):
    query = Query(address, f"SELECT {column} AS k, rating FROM reviews")
    rows = Rows(query, keys="k", values="rating")
    got, values = map(np.concatenate, zip(*rows, strict=True))
    np.testing.assert_array_equal(got, keys)
    np.testing.assert_array_equal(values[:, 0], RATING)
    assert rows.count == COUNT
    rows.close()


def test_the_embedding_is_the_only_column_of_vectors(address):
    some = f"SELECT {AS_VECTOR} AS v, rating FROM reviews"
    np.testing.assert_array_equal(
        bits(Query(address, some), values="rating"), bits(EMBEDDING, RATING[:, None])
    )
    refused(Query(address, "SELECT embedding AS b, embedding AS a, rating FROM reviews"), ": a, b")
    refused(Query(address, "SELECT rating FROM reviews"), "no column of embeddings by its type: r")


def test_columns_of_numbers_side_by_side(address):
    query = Query(
        address, "SELECT rating, person::int2 AS p, rating > 0 AS up, kind, name FROM reviews"
    )
    rows = Rows(query, keys="rating,p,up", labels="kind", groups="name")
    assert (rows.key_dim, rows.value_dim, rows.has_texts) == (3, 1, True)
    [(keys, labels, groups)] = rows
    np.testing.assert_array_equal(keys, np.stack([RATING, PERSON, RATING > 0], axis=1))
    np.testing.assert_array_equal(labels, KIND)
    np.testing.assert_array_equal(groups, NAME)
    rows.close()


def test_all_passes_see_one_state(address):
    rows = Rows(Query(address, ALL), values="rating", groups="person")
    before = bits(rows)
    execute(address, "INSERT INTO reviews SELECT * FROM reviews LIMIT 7")
    execute(address, "UPDATE reviews SET rating = 0")
    np.testing.assert_array_equal(bits(rows), before)
    assert rows.count == COUNT
    rows.close()
    assert not np.array_equal(bits(rows), before)
    rows.close()


def test_a_pass_that_stops_leaves_the_transaction_as_it_was(address):
    rows = Rows(Query(address, f"{ALL}, generate_series(1, 100)"), values="rating")
    chunks = rows._alike()
    keys, _, _ = next(chunks)
    execute(address, "DELETE FROM reviews")
    chunks.close()
    again = rows._alike()
    np.testing.assert_array_equal(next(again)[0], keys)
    again.close()
    assert rows.count == 100 * COUNT
    rows.close()


def test_rows_come_in_the_same_order_in_every_pass(address):
    query = "SELECT embedding, current_setting('synchronize_seqscans') AS from_anywhere,"
    query += " current_setting('max_parallel_workers_per_gather') AS processes FROM reviews"
    with psycopg.connect(address) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SET LOCAL synchronize_seqscans = on")
        rows = Rows(Query(connection, query), labels="from_anywhere", groups="processes")
        [(_, labels, groups)] = rows
        assert set(labels) == {"off"}
        assert set(groups) == {"0"}
        shown = connection.execute("SHOW synchronize_seqscans").fetchone()
        assert shown == ("on",)


def test_it_may_be_asked_about_while_it_is_read(address):
    query = Query(address, ALL)
    expected = bits(EMBEDDING, RATING[:, None])
    np.testing.assert_array_equal(bits(query, values="rating", progress=True), expected)
    with closing(Rows(query, values="rating")) as rows:
        chunks = rows._alike()
        next(chunks)
        assert (rows.key_dim, rows.value_dim) == (EMBEDDING.shape[1], 1)
        assert rows.count is None
        chunks.close()
        assert rows.count == COUNT


def test_a_connection_is_closed_with_the_rows(address, monkeypatch):
    opened, connect = [], psycopg.connect

    def noted(*given, **more):
        opened.append(connect(*given, **more))
        return opened[-1]

    monkeypatch.setattr(psycopg, "connect", noted)
    bits(Query(address, ALL), values="rating")
    with pytest.raises(InvalidInput, match="to have one column 'price'"):
        bits(Query(address, ALL), values="price")
    with pytest.raises(InvalidInput, match="names of values"):
        bits(Query(address, ALL))
    rows = Rows(Query(address, ALL), values="rating")
    kept = weakref.ref(rows)
    del rows
    gc.collect()
    assert kept() is None
    assert len(opened) == 4
    assert all(each.closed for each in opened)


def test_a_connection_in_another_transaction_is_refused(address):
    with psycopg.connect(address) as connection:
        connection.execute("SELECT 1")
        refused(Query(connection, ALL), "in no transaction, or in one that is REPEATABLE READ")
        connection.rollback()
        connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        bits(Query(connection, ALL), values="rating")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        connection.rollback()
        connection.autocommit = True
        bits(Query(connection, ALL), values="rating")
        assert connection.autocommit
        connection.execute("SET client_encoding = 'LATIN1'")
        refused(Query(connection, ALL), "client_encoding is UTF8")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("rating = NULL", "no missing value in rating of the query"),
        ("rating = 'NaN'", "no NaN and no infinity"),
        ("embedding = NULL", "complete, in embedding"),
        ("embedding = embedding[:3]", "lists of one length, complete, in embedding"),
        ("embedding[5] = NULL", "lists of one length, complete, in embedding"),
        ("embedding = '{}'", "lists of one length, complete, in embedding"),
        ("embedding = ARRAY[embedding[:4], embedding[5:]]", "one length, complete, in embedding"),
        ("person = NULL", "no missing value in person"),
        ("name = NULL", "no missing value in name"),
    ],
)
@pytest.mark.parametrize("which", ["person = 77", "true"])
def test_what_does_not_fit_is_named_and_not_shown(address, change, match, which):
    execute(address, f"UPDATE reviews SET {change} WHERE {which}")
    if change.startswith("embedding = embedding") and which == "true":
        return  # all of them as long
    groups = "name" if "name" in change else "person" if "person" in change else None
    refused(Query(address, ALL), match, groups=groups)


@pytest.mark.parametrize(
    "text",
    [
        "[1, secret]",
        "[1,2",
        "{1,2}",
        "[1]",
        "[1,,2]",
        "[1, ,1,1,1,1,1,1]",
        "[1_0,1,1,1,1,1,1,1]",
        "[1,null]",
        "",
    ],
)
def test_texts_that_are_no_lists_are_refused(address, text):
    execute(address, f"UPDATE reviews SET {QUOTED} = '{text}' WHERE person = 77")
    refused(
        Query(address, ALL),
        "of one length, as .1, 2, 3., in as .text. of the query",
        keys='as "text"',
    )


def test_warnings_of_others_are_not_touched(address, monkeypatch):
    """Other threads warn meanwhile: filters are everybody's."""
    with monkeypatch.context() as patch:
        patch.setattr("warnings.simplefilter", None)
        [(keys, _)] = Rows(Query(address, ALL), keys='as "text"', values="rating")
    assert len(keys) == COUNT


def test_names_of_columns_may_have_what_stands_for_parameters(address):
    query = 'SELECT embedding, rating AS "a%%s%%b" FROM reviews WHERE person >= %s'
    named = Query(address, query, [0])
    plain = Query(address, "SELECT embedding, rating FROM reviews")
    ours, theirs = bits(named, values="a%s%b"), bits(plain, values="rating")
    np.testing.assert_array_equal(ours, theirs)


def test_what_is_wrong_with_a_query_is_said_without_its_message(address):
    refused(Query(address, "SELECT 'secret'::int"), "answers to the end, and there was")
    refused(Query(address, "SELECT embedding, 1/(person - 7) AS rating FROM reviews"), "DivisionBy")
    refused(Query(address, "SELECT 1 AS a, 2 AS a"), "a name of its own")
    refused(Query(address, ALL), "lists of one length, as .1, 2, 3., in name", values="name")
    refused(Query(address, ALL), "a whole number or text for each row", groups="rating")
    refused(Query(address, ALL), "one column of lists", values="rating,embedding")
    refused(Query(address, f"{ALL} WHERE false"), "to have rows")
    refused(Query("postgresql:///nowhere?host=/nowhere", ALL), "there was a OperationalError")
    refused(Query(5, ALL), "an address of PostgreSQL, or a connection")
    assert repr(Query(address, ALL)) == "<Query: private>"
