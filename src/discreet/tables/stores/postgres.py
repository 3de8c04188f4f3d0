"""What queries of PostgreSQL return, within one transaction. Needs the extra `postgres`.

`COPY (query) TO STDOUT (FORMAT BINARY)` sends a row at a time and all numbers as they are; `copied`
makes arrays of many rows at once. One transaction that sees one state of the database holds all
passes together.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from discreet.errors import InvalidInput
from discreet.tables.columns import (
    Chunk,
    Columns,
    Form,
    Forms,
    InMemory,
    Part,
    listed,
    sentences,
    the_one,
)
from discreet.tables.stores import copied
from discreet.tables.stores.copied import Field
from discreet.tables.stores.vectors import Query

# psycopg's own types say little that is of use here.
Connection = Any

# PostgreSQL's own numbers of its types.
_WHOLE = {20, 21, 23}
_NUMBERS = _WHOLE | {16, 700, 701, 1700}
_TEXTS = {19, 25, 1042, 1043, 2950}
_TEXT_LISTS = {25, 1043, 114, 3802}
_LISTS = {
    1021: "real[]",
    **dict.fromkeys((1005, 1007, 1016, 1022, 1231), "double precision[]"),
}
_EMBEDDINGS = {1021, 1022}

# Those of pgvector, whose numbers differ from database to database.
_PGVECTOR = ("vector", "halfvec")

_IN_ORDER = "SET LOCAL synchronize_seqscans = off; SET LOCAL max_parallel_workers_per_gather = 0"

_BYTES_AT_ONCE = 2**22


def part_of(given: Query) -> Part:
    """Return a query as a table."""
    return _QueryPart(given)


@dataclass(frozen=True, eq=False, repr=False)
class _QueryPart(InMemory, Part):
    """A query. PRIVATE."""

    given: Query
    name: str = "query"
    where: str = "the query"
    ahead = True
    _open: list["_Snapshot"] = field(default_factory=list, init=False)

    def own_keys(self) -> str:
        """Return the only column of vectors."""
        with sentences(self.where, _WANTED):
            snapshot = self._snapshot()
            named = [name for name, kind in snapshot.kinds.items() if kind in snapshot.embeddings]
            return the_one(named, snapshot.kinds, self.where)

    def close(self) -> None:
        """End the transaction."""
        while self._open:
            self._open.pop().close()

    def forms(self, columns: Columns) -> Forms:
        """Return what the columns hold: asked for once, since a pass may be going on."""
        known = self._snapshot_forms.get(columns)
        return super().forms(columns) if known is None else known

    @property
    def _snapshot_forms(self) -> dict[Columns, Forms]:
        return self._open[0].forms if self._open else {}

    @contextmanager
    def opened(self, columns: Columns) -> Iterator["_Reading"]:
        """Begin a pass within the transaction, which begins with the first."""
        with sentences(self.where, _WANTED):
            reading = _Reading(self._snapshot(), columns, self.where)
            try:
                yield reading
            finally:
                reading.close()

    def _snapshot(self) -> "_Snapshot":
        if not self._open:
            self._open.append(_Snapshot(self.given))
        return self._open[0]


_WANTED = "a query that PostgreSQL answers to the end"


class _Snapshot:
    """One read-only transaction, and the columns of the query in it. PRIVATE.

    Attributes:
        connection: in which it is.
        source: the query, to stand after FROM.
        kinds: the type of each column, by its name.
        embeddings: those types that embeddings have.
        vectors: those of pgvector.
        forms: what columns hold, as far as somebody has looked.
    """

    def __init__(self, given: Query) -> None:
        try:
            import psycopg
        except ImportError:
            raise InvalidInput(
                "Expected psycopg to ask PostgreSQL: pip install 'discreet[postgres]'."
            ) from None
        if not isinstance(given.query, str):
            raise InvalidInput("Expected query to be a text.")
        self.forms: dict[Columns, Forms] = {}
        self._parameters = given.parameters
        self._rows: int | None = None
        self._copying = False
        # On lines of its own: it may end in a comment.
        self.source = f"(\n{given.query.strip().rstrip(';')}\n) AS source"
        if isinstance(given.source, psycopg.Connection):
            self.connection: Connection = given.source
            self._end = weakref.finalize(self, *_begun(given.source))
        elif isinstance(given.source, str):
            self.connection = psycopg.connect(given.source, client_encoding="utf8")
            self._end = weakref.finalize(self, self.connection.close)
            _begun(self.connection)
        else:
            raise InvalidInput("Expected an address of PostgreSQL, or a connection of psycopg.")
        try:
            if self.connection.info.encoding != "utf-8":
                raise InvalidInput("Expected a connection whose client_encoding is UTF8.")
            self._describe()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the transaction, and close the connection if it was made for it."""
        self._end()

    def count(self) -> int | None:
        """Return the number of rows, if it is known or nothing else is going on. PRIVATE."""
        if self._rows is None and not self._copying:
            with self.connection.cursor() as cursor:
                cursor.execute(f"SELECT count(*) FROM {self.source}", self._parameters)  # noqa: S608
                self._rows = int(cursor.fetchone()[0])
        return self._rows

    @contextmanager
    def copy(self, casts: list[str]) -> Iterator[Iterator[bytes]]:
        """Yield the rows of the query, each as it is sent.

        What is not fetched to the end is cancelled, which undoes the transaction: so there is one
        within it, which is undone in any case. In it a table is read from its beginning and by one
        process: rows come in the same order in every pass.

        Args:
            casts: the columns, as SQL.
        """
        from psycopg import Rollback

        columns = ", ".join(casts)
        if self._parameters is not None:  # then psycopg looks for places to fill, in names, too
            columns = columns.replace("%", "%%")
        query = f"COPY (SELECT {columns} FROM {self.source}) TO STDOUT (FORMAT BINARY)"  # noqa: S608
        with (
            self.connection.transaction(),
            self.connection.cursor() as cursor,
        ):
            cursor.execute(_IN_ORDER)
            with cursor.copy(query, self._parameters) as rows:
                self._copying = True
                yield copied.without_header(iter(rows))
                self._copying = False
                raise Rollback

    def _describe(self) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self.source} LIMIT 0", self._parameters)  # noqa: S608
            names = [each.name for each in cursor.description]
            if len(set(names)) != len(names):
                raise InvalidInput("Expected the query to give each column a name of its own.")
            self.kinds = {each.name: int(each.type_code) for each in cursor.description}
            cursor.execute("SELECT oid::int8 FROM pg_type WHERE typname = ANY(%s)", [[*_PGVECTOR]])
            self.vectors = {int(each) for (each,) in cursor.fetchall()}
        self.embeddings = self.vectors | _EMBEDDINGS


def _begun(connection: Connection) -> tuple[Any, ...]:
    """Begin a read-only transaction that sees one state; return what ends it, with arguments."""
    from psycopg import IsolationLevel
    from psycopg.pq import TransactionStatus

    status = connection.info.transaction_status
    if status == TransactionStatus.INTRANS:
        level = connection.execute("SHOW transaction_isolation").fetchone()[0]
        if level in ("repeatable read", "serializable"):
            return (_nothing,)
    if status != TransactionStatus.IDLE:
        raise InvalidInput(
            "Expected a connection in no transaction, or in one that is REPEATABLE READ: others "
            "may show other rows in each pass."
        )
    before = connection.autocommit, connection.isolation_level, connection.read_only
    connection.autocommit = False
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    return _put_back, connection, before


def _nothing() -> None:
    """Leave a transaction to whoever began it."""


def _put_back(connection: Connection, before: tuple[Any, ...]) -> None:
    """End a transaction; the connection is as it was."""
    if not connection.closed:
        connection.rollback()
        connection.autocommit, connection.isolation_level, connection.read_only = before


class _Reading:
    """One pass over the rows of a query."""

    def __init__(self, snapshot: _Snapshot, columns: Columns, where: str) -> None:
        self._snapshot, self._columns, self._where = snapshot, columns, where
        known = snapshot.kinds
        for name in columns.all:
            if name not in known:
                raise InvalidInput(
                    f"Expected {where} to have one column {name!r}; it has: {listed(known)}."
                )
        self._fields = {role: self._of_role(role) for role in ("keys", "values", "groups")}
        self._begun: Any = nullcontext(iter(()))
        self._first: list[bytes] | None = None
        self._layout: copied.Layout | None = None
        self._rows: Iterator[bytes] = iter(())

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known. PRIVATE."""
        return self._snapshot.count()

    def close(self) -> None:
        """Stop, wherever it is."""
        begun, self._begun = self._begun, nullcontext()
        begun.__exit__(None, None, None)

    def forms(self) -> Forms:
        """Return what the columns hold; of lists, the first row tells how long they are."""
        self._start()
        found = Forms(
            self._form("keys"),
            self._form("values"),
            self._form("groups") if self._columns.groups is not None else None,
            self._where,
        )
        self._snapshot.forms[self._columns] = found
        return found

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, some at a time."""
        self._start()
        some, layout = self._first, self._layout
        while some and layout is not None:
            arrays = layout.arrays(some)
            keys, values, groups = (
                copied.together([arrays[each] for each in self._fields[role]])
                for role in ("keys", "values", "groups")
            )
            if self._columns.labels:
                values = values[:, 0] if values.ndim == 2 else values.astype(str)
            if groups is not None and groups.ndim == 2:
                groups = groups[:, 0]
            yield keys, values, groups
            some = list(islice(self._rows, layout.rows_of(_BYTES_AT_ONCE)))

    def _start(self) -> None:
        """Ask, and keep the first row."""
        if self._first is not None:
            return
        fields = list(dict.fromkeys(each for role in self._fields.values() for each in role))
        fields.sort(key=lambda each: each.kind == "text")  # what has no one length comes last
        self._begun = self._snapshot.copy([each.cast for each in fields])
        self._rows = self._begun.__enter__()
        self._first = list(islice(self._rows, 1))
        if self._first:
            self._layout = copied.Layout.of(self._first[0], fields, self._where)

    def _form(self, role: str) -> Form:
        fields = self._fields[role]
        if fields[0].kind == "text" and not fields[0].parsed:
            return Form("texts")
        if fields[0].kind in ("number", "whole"):
            return Form("numbers", len(fields))
        width = None if self._layout is None else self._layout.widths[fields[0]]
        return Form("lists", width)

    def _of_role(self, role: str) -> tuple[Field, ...]:
        """Return what is fetched for keys, values or groups."""
        columns = self._columns
        if role == "groups":
            return () if columns.groups is None else (self._single(columns.groups, _WHOLE),)
        if role == "values" and columns.labels:
            return (self._single(columns.values[0], _NUMBERS),)
        names = getattr(columns, role)
        fields = tuple(map(self._numbers, names))
        if len(fields) > 1 and any(each.kind != "number" for each in fields):
            raise InvalidInput(
                f"Expected one column of lists in {self._where}, or many of numbers."
            )
        return fields

    def _single(self, name: str, numbers: set[int]) -> Field:
        kind = self._snapshot.kinds[name]
        quoted = _quoted(name)
        if kind in _TEXTS:
            return Field(name, f"{quoted}::text", "text")
        if kind not in numbers:
            wanted = "whole number" if numbers is _WHOLE else "number"
            raise InvalidInput(
                f"Expected {name} in {self._where} to hold a {wanted} or text for each row."
            )
        if numbers is _WHOLE:
            return Field(name, f"{quoted}::int8", "whole")
        return self._numbers(name)

    def _numbers(self, name: str) -> Field:
        kind = self._snapshot.kinds[name]
        quoted = _quoted(name)
        if kind in _NUMBERS:
            through = "::int4" if kind == 16 else ""
            return Field(name, f"{quoted}{through}::double precision", "number")
        if kind in _LISTS or kind in self._snapshot.vectors:
            cast = _LISTS.get(kind, "real[]")
            return Field(name, f"{quoted}::{cast}", "floats" if cast == "real[]" else "doubles")
        if kind in _TEXT_LISTS:
            return Field(name, f"{quoted}::text", "text", parsed=True)
        raise InvalidInput(f"Expected {name} in {self._where} to be numbers, or lists of them.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
