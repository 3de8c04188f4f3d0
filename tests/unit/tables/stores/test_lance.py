"""Tables of LanceDB: the bits of arrays, at one version."""

import numpy as np
import pyarrow as pa
import pytest
from vector_stores import EMBEDDING, RATING, TABLE, bits, check_bits, refused

from discreet.tables import Rows

lancedb = pytest.importorskip("lancedb", reason="needs the extra `stores`")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def table(tmp_path):
    return lancedb.connect(tmp_path).create_table("reviews", TABLE)


def test_a_table_gives_the_bits_of_arrays(table):
    check_bits(table)
    assert Rows(table, values="rating").count == len(RATING)


def test_a_table_stays_at_its_version(table):
    rows = Rows(table, values="rating")
    before = bits(rows)
    table.delete("person < 50")
    with pytest.raises(ValueError, match="to stay at version 1"):
        bits(rows)
    table.checkout(1)
    np.testing.assert_array_equal(bits(rows), before)
    table.checkout_latest()
    assert not np.array_equal(bits(table, values="rating"), before)


def test_a_table_that_moves_while_it_is_read_is_an_error(table):
    rows = Rows(table, values="rating")
    chunks = rows._alike()
    next(chunks)
    table.delete("person < 50")
    with pytest.raises(ValueError, match="to stay at version 1"):
        list(chunks)


def test_of_several_vectors_one_has_to_be_named(table):
    both = TABLE.append_column("image", TABLE["embedding"])
    table.add_columns({"unused": "1"})
    made = lancedb.connect(table.uri.rpartition("/")[0]).create_table("both", both)
    refused(made, "Expected keys to name a column of the table.*embedding, image")
    got = bits(Rows(made, keys="image", values="rating"))
    np.testing.assert_array_equal(got, bits(EMBEDDING, RATING[:, None]))


def test_what_does_not_fit_is_named_and_not_shown(table):
    refused(table, "to have one column 'price'; it has: embedding", values="price")
    table.add(pa.Table.from_pylist([{"rating": 0.5}], schema=TABLE.schema))
    refused(table, "no missing value|complete, in embedding")
