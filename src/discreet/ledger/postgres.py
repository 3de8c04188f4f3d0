"""A ledger in a PostgreSQL database, for several machines: only ever added to, as the file is.

There is a connection for each operation and none in between. Those that write wait in line for one
lock, so that no two of them overlap; each row that is added also adds an entry to a history, whose
hash follows from all before it. psycopg's exceptions end here.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from discreet._validate import warn
from discreet.errors import LedgerError
from discreet.ledger import store
from discreet.ledger.addresses import Address, Entry, Witness
from discreet.noise import SystemEntropy

# Which tables it has.
VERSION = 1

_TABLES = """
CREATE SCHEMA discreet;
SET LOCAL search_path = discreet, pg_temp;
CREATE TABLE servers (  -- where the ledger was made; then where its owner said that it may go on
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server TEXT NOT NULL,
    version INTEGER NOT NULL,
    at TEXT NOT NULL
);
CREATE TABLE datasets (
    name TEXT PRIMARY KEY,
    epsilon DOUBLE PRECISION NOT NULL,
    delta DOUBLE PRECISION NOT NULL,
    neighbours TEXT NOT NULL,
    unit TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE TABLE limits (
    dataset TEXT NOT NULL REFERENCES datasets (name),
    analyst TEXT NOT NULL,
    epsilon DOUBLE PRECISION NOT NULL,
    delta DOUBLE PRECISION NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (dataset, analyst)
);
CREATE TABLE spends (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT UNIQUE NOT NULL,
    dataset TEXT NOT NULL REFERENCES datasets (name),
    analyst TEXT,
    receipt TEXT NOT NULL,
    delta DOUBLE PRECISION NOT NULL,
    square DOUBLE PRECISION NOT NULL,
    tail DOUBLE PRECISION NOT NULL,
    loss DOUBLE PRECISION NOT NULL,
    at TEXT NOT NULL,
    events_before BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX spends_of_a_dataset ON spends (dataset);
CREATE TABLE events (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    spend TEXT NOT NULL REFERENCES spends (id),
    kind TEXT NOT NULL CHECK (kind IN ('drawn', 'released', 'voided')),
    detail TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX events_of_a_spend ON events (spend);
CREATE UNIQUE INDEX drawn_or_voided ON events (spend) WHERE kind IN ('drawn', 'voided');
CREATE TABLE steps (
    spend TEXT NOT NULL REFERENCES spends (id),
    step BIGINT NOT NULL,
    digest TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (spend, step)
);
CREATE TABLE history (
    number BIGINT PRIMARY KEY,  -- two who saw the same end of it cannot both go on from there
    digest TEXT NOT NULL
);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'a ledger is only ever added to'; END $$;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql
-- As the owner: others may not write to the history by themselves.
SECURITY DEFINER SET search_path = discreet, pg_temp SET extra_float_digits = 1 AS $$
DECLARE
    before history%ROWTYPE;
BEGIN
    -- Who adds a row by other means waits in line, too.
    PERFORM pg_advisory_xact_lock({lock});
    SELECT * INTO before FROM history ORDER BY number DESC LIMIT 1;
    INSERT INTO history VALUES (
        COALESCE(before.number, 0) + 1,
        encode(sha256(convert_to(json_build_array(
            before.digest, current_setting('discreet.writer', true), TG_TABLE_NAME, row_to_json(NEW)
        )::text, 'UTF8')), 'hex')
    );
    RETURN NULL;
END $$;
"""
_ONLY_ADDED_TO = """
CREATE TRIGGER only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION refuse();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER only_added_to;
"""
_NOTED = """
CREATE TRIGGER noted AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER noted;
"""
_NOTED_TABLES = ("servers", "datasets", "limits", "spends", "events", "steps")

# Settings of this transaction only. An answer is given when what was written is on the disk.
_PREPARE = """
SELECT set_config('search_path', 'discreet, pg_temp', true),
set_config('lock_timeout', %(patience)s, true),
set_config('idle_in_transaction_session_timeout', %(idle)s, true),
set_config('discreet.writer', %(writer)s, true),
set_config('extra_float_digits', '1', true),
set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)
"""
_SAFE = """
SELECT pg_is_in_recovery(), current_setting('fsync'), to_regclass('discreet.servers') IS NOT NULL
"""
# Which cluster this is, and how often it began anew from a backup or a standby (its timeline); and
# the numbers that database and table have there, which are others once a dump is read or a database
# is copied. Earlier versions noted the first two alone.
_SERVER = """
SELECT concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    to_regclass('discreet.servers')::oid)
FROM pg_control_system()
"""
# What the ledger's owner says then.
_GO_ON = "INSERT INTO discreet.servers (server, version, at) VALUES ('{server}', {version}, now());"
_LAST_SERVER = "SELECT server, version FROM servers ORDER BY number DESC LIMIT 1"
_LAST_ENTRY = "SELECT number, digest FROM history ORDER BY number DESC LIMIT 1"


@dataclass(frozen=True)
class Transaction:
    """One that is open: takes the statements of `store`, with a question mark for each value."""

    connection: "psycopg.Connection[Any]"

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> "psycopg.Cursor[Any]":
        """Carry out a statement."""
        return self.connection.execute(statement.replace("?", "%s").encode(), values or None)

    def one(self, statement: str) -> Any:  # noqa: ANN401 (a row)
        """Return the first row that a statement gives."""
        return self.execute(statement).fetchone()


@dataclass(frozen=True)
class Database:
    """A ledger on a server: a `store.Store`.

    Attributes:
        address: of the database.
        witness: what was seen of it before.
    """

    address: Address
    witness: Witness = field(repr=False)

    def exists(self) -> bool:
        """Return True: whether it is there is known to its server alone."""
        return True

    def create(self) -> None:
        """Make the tables, unless they are there."""
        with self._sentences("written"), self._writing(new=True) as transaction:
            if transaction.one("SELECT to_regclass('discreet.servers') IS NULL")[0]:
                for statement in _statements():
                    transaction.execute(statement)
                transaction.execute(
                    "INSERT INTO servers (server, version, at) VALUES (?, ?, ?)",
                    (transaction.one(_SERVER)[0], VERSION, store.now()),
                )

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Yield a transaction that sees one state of the ledger."""
        known = self.witness.last()  # before that state is: so it is in it
        with self._sentences("read"), self._connection() as connection:
            transaction = self._begun(connection, "ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if (changed := self._other_server(transaction)) is not None:
                warn(changed, UserWarning)
            entry = self._checked_history(transaction, known)
            yield transaction
        self.witness.note(entry)

    @contextmanager
    def writing(self, *, steps: bool = False) -> Iterator[Transaction]:  # noqa: ARG002 (made already)
        """Yield a transaction that nobody else writes beside; known to be kept at the end.

        If that cannot be known, or it is not kept, this raises.

        Args:
            steps: all the same here: the table of steps is there.
        """
        with self._sentences("written"), self._writing() as transaction:
            yield transaction

    @contextmanager
    def _writing(self, *, new: bool = False) -> Iterator[Transaction]:
        known = self.witness.last()
        with self._connection() as connection:
            transaction = self._locked(connection, new=new)
            if known is not None or not new:
                self._checked_history(transaction, known)
            yield transaction
            entry = Entry(*transaction.one(_LAST_ENTRY))
            if not self._committed(connection, entry):
                raise LedgerError(self._failed("written", "it was undone"))
        self.witness.note(entry)

    def _begun(
        self, connection: "psycopg.Connection[Any]", how: str, *, new: bool = False
    ) -> Transaction:
        """Begin a transaction, and check that the server keeps what it says it keeps."""
        transaction = Transaction(connection)
        transaction.execute(f"BEGIN {how}")
        patience = round(1000 * store.PATIENCE)
        # Who holds the lock and is not heard of any more loses it before others give up.
        limits = {"patience": f"{patience}ms", "idle": f"{patience // 2}ms"}
        connection.execute(_PREPARE, {**limits, "writer": _new_name()})
        standby, fsync, there = transaction.one(_SAFE)
        if standby:
            raise LedgerError(
                f"Expected {self.address.shown} to be the server of a ledger, and it is a standby "
                "in recovery, which does not know the last of it. Nothing was released."
            )
        if fsync != "on":
            raise LedgerError(
                f"Expected the server of {self.address.shown} to have fsync = on, and it is "
                f"{fsync}: what was counted would be lost with its power. Nothing was released."
            )
        if not there and not new:
            raise LedgerError(
                f"Expected a ledger in {self.address.shown}, and there is none that this role "
                "sees: Ledger.create makes it (discreet ledger create)."
            )
        return transaction

    def _locked(self, connection: "psycopg.Connection[Any]", *, new: bool = False) -> Transaction:
        """Begin a transaction that writes, when all others that write have ended.

        Each statement sees what was committed before it (READ COMMITTED), so those after the lock
        see all that others did. A stricter level would see what was there before it waited.
        """
        how = "ISOLATION LEVEL READ COMMITTED READ WRITE"
        transaction = self._begun(connection, how, new=new)
        transaction.execute("SELECT pg_advisory_xact_lock(?)", (store.APPLICATION_ID,))
        if transaction.one("SELECT to_regclass('discreet.servers') IS NOT NULL")[0]:
            changed = self._other_server(transaction)
            if changed is not None:
                raise LedgerError(changed)
        return transaction

    def _committed(self, connection: "psycopg.Connection[Any]", entry: Entry) -> bool:
        """Commit, and return whether that was done; ask the server again if its answer is lost.

        Raises:
            LedgerError: if nobody can tell.
        """
        try:
            return connection.execute("COMMIT").statusmessage == "COMMIT"
        except psycopg.Error:
            connection.close()
        end = time.monotonic() + store.PATIENCE
        while time.monotonic() < end:
            try:
                # The lock is free when the transaction has ended, in whatever way.
                with self._connection() as other:
                    return self._digest(self._locked(other), entry.number) == entry.digest
            except psycopg.OperationalError:  # the server may be about to come back
                time.sleep(0.2)
        raise LedgerError(
            f"The connection to the ledger {self.address.shown} was lost while it counted, and it "
            "could not be asked since whether it did. Nothing was released; take it as counted "
            "until the ledger says otherwise (discreet ledger show)."
        )

    def _other_server(self, transaction: Transaction) -> str | None:
        """Return what is to be said if this is not the server that the ledger was last on."""
        noted, version = transaction.one(_LAST_SERVER)
        if version > VERSION:
            raise LedgerError(
                f"Expected {self.address.shown} to be a ledger of version {VERSION}, and it is of "
                f"version {version}: a newer discreet made it."
            )
        [here] = transaction.one(_SERVER)
        if noted == here or (noted.count("/") == 1 and here.startswith(f"{noted}/")):
            return None
        return (
            f"Expected the ledger {self.address.shown} where it was, in {noted} (server, timeline, "
            f"database and table), and this is {here}: a standby took over or a backup was "
            "restored, and what was counted last may be missing. Nothing is released here until "
            "the ledger's owner, who counts what is missing (discreet ledger spend) before others "
            "build, says so: " + _GO_ON.format(server=here, version=VERSION)
        )

    def _checked_history(self, transaction: Transaction, known: Entry | None) -> Entry:
        """Return the last entry of the history, if the one that was seen last is in it."""
        if known is not None and self._digest(transaction, known.number) != known.digest:
            raise LedgerError(
                f"Expected the ledger {self.address.shown} to be what was seen there before, and "
                f"entry {known.number:,} of its history is missing, or another: a backup was "
                "restored, or a standby took over that had not received all. What was counted "
                "since is forgotten. Nothing was released."
            )
        return Entry(*transaction.one(_LAST_ENTRY))

    @staticmethod
    def _digest(transaction: Transaction, number: int) -> str | None:
        there = transaction.one("SELECT to_regclass('discreet.history') IS NOT NULL")[0]
        ask = "SELECT digest FROM history WHERE number = ?"
        row = transaction.execute(ask, (number,)).fetchone() if there else None
        return None if row is None else str(row[0])

    @contextmanager
    def _connection(self) -> Iterator["psycopg.Connection[Any]"]:
        """Yield a connection, and close it; what was not committed is then rolled back."""
        wait = f"{round(store.PATIENCE)}"
        # A server that has gone without a word is given up after as long as others are waited for.
        patient = {
            "connect_timeout": "10",
            "tcp_user_timeout": f"{wait}000",
            "keepalives_idle": "10",
        }
        try:
            given = conninfo_to_dict(self.address.url)
        except psycopg.Error:
            raise LedgerError(
                f"Expected {self.address.shown} to be an address that PostgreSQL understands: "
                "postgresql://user@host/name."
            ) from None
        options: dict[str, Any] = {**patient, **given, "client_encoding": "UTF8"}
        with closing(
            psycopg.connect(**options, autocommit=True, prepare_threshold=None)
        ) as connection:
            yield connection

    @contextmanager
    def _sentences(self, verb: str) -> Iterator[None]:
        """Turn whatever psycopg says into one sentence."""
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            waited = f"others have locked it for more than {store.PATIENCE:g} seconds"
            raise LedgerError(self._failed(verb, waited)) from None
        except psycopg.Error as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise LedgerError(self._failed(verb, self.address.scrubbed(said))) from None

    def _failed(self, verb: str, reason: str) -> str:
        return (
            f"The ledger {self.address.shown} could not be {verb} ({reason}): nothing was released."
        )


def _new_name() -> str:
    """Return a name of 128 bits that no other transaction has."""
    return SystemEntropy().words(2).tobytes().hex()


def _statements() -> Iterator[str]:
    """Yield what makes an empty ledger."""
    yield _TABLES.format(lock=store.APPLICATION_ID)
    for table in (*_NOTED_TABLES, "history"):
        yield _ONLY_ADDED_TO.format(table=table)
    for table in _NOTED_TABLES:
        yield _NOTED.format(table=table)
