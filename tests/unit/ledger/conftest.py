"""Where a ledger is: in a file, and in a database of a server that all tests share."""

import pytest


@pytest.fixture(scope="session")
def cluster():
    pytest.importorskip("psycopg", reason="needs psycopg")
    from clusters import Cluster

    made = Cluster()
    yield made
    made.remove()


@pytest.fixture
def database(cluster):
    """Return the address of a database without a ledger."""
    cluster.forget()
    return cluster.address()


@pytest.fixture(params=["file", "database"])
def place(request, tmp_path):
    """Return where a ledger may be made."""
    if request.param == "file":
        return tmp_path / "budget.db"
    return request.getfixturevalue("database")
