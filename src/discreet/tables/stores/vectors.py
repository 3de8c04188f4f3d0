"""An index of FAISS and a query of PostgreSQL, as a caller describes them. PRIVATE."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.tables.columns import InMemory


@dataclass(frozen=True, eq=False, repr=False)
class Vectors(InMemory):
    """An index of FAISS, and what belongs to its vectors. PRIVATE.

    An index has vectors and ids, and no columns. So they are given here, and the names that they
    get are those to ask for::

        rows = Vectors(index, {"rating": {7: 0.5, 9: -1.0}, "customer": {7: "ann", 9: "bob"}})
        discreet.build(rows, values="rating", groups="customer", ...)

    Indices that keep vectors as they are can be read (flat, HNSW and IVF of flat ones, with ids of
    their own or without). Others keep codes, by a table that was trained on some vectors; what is
    reconstructed of a code is near the vector and not the vector, and **it depends on all vectors
    that were trained on**. If those were private, no bound on what one row can change would hold.

    Args:
        index: a `faiss.Index`. It must hold still.
        columns: by name, a number, a list of numbers or a text for each vector: an array, whose
            place i belongs to the vector with id i (0, 1, ... in the order of `add`, where no ids
            were given); or a mapping from ids.
        trained_on_public: whether codes were trained on public vectors alone. Then indices of
            product and scalar quantisers are read, too, and keys are what is reconstructed.
    """

    index: Any
    columns: Mapping[str, Any] = field(default_factory=dict)
    trained_on_public: bool = False

    def __repr__(self) -> str:
        return "<Vectors: private>"


@dataclass(frozen=True, eq=False, repr=False)
class Query(InMemory):
    """What a query of PostgreSQL returns, in binary and a few rows at a time. PRIVATE.

    Columns of numbers, of `real[]` and other arrays of numbers, of pgvector's `vector` and
    `halfvec`, of texts; and lists that are written as texts or JSON, "[1, 2, 3]"::

        rows = Query("postgresql://reader@host/shop", "SELECT embedding, rating FROM reviews")
        discreet.build(rows, values="rating", ...)

    Each row that it returns is one row of the guarantee. So none may depend on others (LIMIT,
    averages, ranks), and those that a JOIN repeats need `groups`.

    All passes see the rows that there were when the first began: they are one read-only transaction
    (REPEATABLE READ), which ends with the build, or with `Rows.close`. Needs the extra `postgres`.

    Args:
        source: an address, or a connection of psycopg. That has to be in no transaction, or in one
            that is REPEATABLE READ or stricter; nobody else may use it meanwhile.
        query: a SELECT, or whatever may stand in parentheses after FROM.
        parameters: for the places that psycopg fills, `%s` or `%(name)s`.
    """

    source: Any
    query: str
    parameters: Any = None

    def __repr__(self) -> str:
        return "<Query: private>"
