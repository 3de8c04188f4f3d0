"""The file of a ledger: an SQLite database that is only ever added to.

There is a connection for each operation and none in between, so that a ledger survives forks and
threads. What was committed is on the disk (write-ahead log, `synchronous=FULL`). `sqlite3`'s
exceptions end here.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from discreet._files import is_mounted_alone
from discreet.errors import LedgerError
from discreet.ledger import store
from discreet.ledger.store import APPLICATION_ID, VERSION

_TABLES = """
CREATE TABLE datasets (
    name TEXT PRIMARY KEY NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    neighbours TEXT NOT NULL,
    unit TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE TABLE limits (
    dataset TEXT NOT NULL REFERENCES datasets (name),
    analyst TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (dataset, analyst)
);
CREATE TABLE spends (
    number INTEGER PRIMARY KEY,
    id TEXT UNIQUE NOT NULL,
    dataset TEXT NOT NULL REFERENCES datasets (name),
    analyst TEXT,
    receipt TEXT NOT NULL,
    delta REAL NOT NULL,
    square REAL NOT NULL,  -- this and the next two follow from the receipt, to be added up quickly
    tail REAL NOT NULL,
    loss REAL NOT NULL,
    at TEXT NOT NULL,
    events_before INTEGER NOT NULL DEFAULT 0  -- the number of the last event when it was reserved
);
CREATE INDEX spends_of_a_dataset ON spends (dataset);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    spend TEXT NOT NULL REFERENCES spends (id),
    kind TEXT NOT NULL CHECK (kind IN ('drawn', 'released', 'voided')),
    detail TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX events_of_a_spend ON events (spend);
-- Noise is drawn once or the reservation voided once, never both.
CREATE UNIQUE INDEX drawn_or_voided ON events (spend) WHERE kind IN ('drawn', 'voided');
"""

# REPLACE deletes without asking a trigger on DELETE; so a row that is there refuses another.
_ONLY_ADDED_TO = """
CREATE TRIGGER {table}_{what} BEFORE {what} ON {table} {when}
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
"""
_KEYS = {
    "datasets": "name = NEW.name",
    "limits": "dataset = NEW.dataset AND analyst = NEW.analyst",
    "spends": "id = NEW.id OR number = NEW.number",
    "events": "number = NEW.number OR spend = NEW.spend AND kind <> 'released' "
    "AND NEW.kind <> 'released'",
}


# Of streams: what each step released. Made with the first of them, so that a ledger without streams
# is what it was.
_STEPS = """
CREATE TABLE IF NOT EXISTS steps (
    spend TEXT NOT NULL REFERENCES spends (id),
    step INTEGER NOT NULL,
    digest TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (spend, step)
)
"""
_STEPS_KEY = "spend = NEW.spend AND step = NEW.step"

# Version 1 has not kept which events came before a reservation. As if there had been none, all that
# was drawn was drawn after it: what is voided counts rather too often than not often enough.
_MAKE_IT_VERSION_2 = (
    "ALTER TABLE spends ADD COLUMN events_before INTEGER NOT NULL DEFAULT 0",
    "PRAGMA user_version = 2",
)
_READ_IT_AS_VERSION_2 = (
    "CREATE TEMP VIEW spends AS SELECT *, 0 AS events_before FROM main.spends",
)


@dataclass(frozen=True)
class File:
    """A ledger in a file, for one operation: a `store.Store`.

    Attributes:
        path: of the file, absolute.
    """

    path: Path

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that sees one state of the ledger."""
        mode = "rw" if os.access(self.path, os.W_OK) else self._only_read
        with self._transaction("BEGIN", "read", mode, _READ_IT_AS_VERSION_2) as connection:
            yield connection

    @contextmanager
    def writing(self, *, steps: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection that nobody else writes beside; on the disk at the end, or nowhere.

        Args:
            steps: whether the table of steps is made, if there is none.
        """
        if self.path.exists() and not os.access(self.path, os.W_OK):
            # SQLite would leave a file beside it that stays read-only when this one is not.
            raise LedgerError(self._failed("written", "read-only"))
        with self._transaction(
            "BEGIN IMMEDIATE", "written", "rw", _MAKE_IT_VERSION_2
        ) as connection:
            for statement in _steps_table() if steps else ():
                connection.execute(statement)
            yield connection

    @cached_property  # a store serves one operation, which checks and opens the same file
    def _file(self) -> Path:
        """The file itself, if `path` is a symbolic link: SQLite's log lies beside that."""
        return Path(os.path.realpath(self.path))

    @property
    def _only_read(self) -> str:
        """How to open a file that nobody may write: alone, unless others have a log beside it."""
        try:
            alone = not os.path.getsize(f"{self._file}-wal")
        except FileNotFoundError:
            alone = True
        except OSError:  # whoever opens it will say why
            alone = False
        return "ro&immutable=1" if alone else "ro"

    def exists(self) -> bool:
        """Return whether there is such a file."""
        return self.path.exists()

    def create(self) -> None:
        """Make the file and its tables, unless they are there."""
        self._check_that_it_can_be_shared()
        with self._sentences("written"), self._connection("rwc") as connection:
            if _is_blank(connection):
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _statements() if _is_blank(connection) else ():
                    connection.execute(statement)
                connection.execute("COMMIT")
            self._version(connection)

    @contextmanager
    def _transaction(
        self, begin: str, verb: str, mode: str, from_version_1: Sequence[str]
    ) -> Iterator[sqlite3.Connection]:
        if not os.path.exists(self.path):  # Path.exists raises where we may not look
            raise LedgerError(
                f"Expected {self.path} to be a ledger, and there is no such file: "
                "Ledger.create makes it (discreet ledger create)."
            )
        self._check_that_it_can_be_shared()
        with self._sentences(verb), self._connection(mode) as connection:
            connection.execute(begin)
            for statement in from_version_1 if self._version(connection) == 1 else ():
                connection.execute(statement)
            yield connection
            connection.execute("COMMIT")

    def _check_that_it_can_be_shared(self) -> None:
        """Raise `LedgerError` if there may be another name for the file, in another folder.

        The log that SQLite keeps, with all that was written last, is found by the file's name. Who
        comes by another name has another log, and neither counts what the other spends. Whoever
        comes by a name that was made just now finds it here, too: so a check at the beginning of
        each operation is enough.
        """
        names = _number_of_names(self._file)
        if names > 1:
            raise LedgerError(
                f"Expected the ledger {self.path} to have one name, and it has {names} (hard "
                "links): what is counted by one is not seen by the other, because SQLite keeps a "
                "log beside each. Remove all but one; nothing was released."
            )
        if is_mounted_alone(self._file):
            raise LedgerError(
                f"Expected the ledger {self.path} to be mounted with its folder, and the file is "
                "mounted by itself: what is counted here is not seen elsewhere, because SQLite "
                "keeps a log beside it. Mount the folder (docker run -v /folder:/ledger); nothing "
                "was released."
            )
        if (log := _log_without_a_file(self._file.parent)) is not None:
            raise LedgerError(
                f"{log} is the log of a database that is gone. If that was the ledger {self.path} "
                "under another name, the last that was spent is in it: give the file its old name "
                "back, and let no log be left before it is renamed. If not, move the log away; "
                "nothing was released."
            )

    @contextmanager
    def _connection(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Yield a connection, and close it; what was not committed is then rolled back."""
        address = f"{self._file.as_uri()}?mode={mode}"
        with closing(
            sqlite3.connect(address, uri=True, timeout=store.PATIENCE, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            yield connection

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return which tables it has, or raise `LedgerError` if it is no ledger that we know."""
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise LedgerError(f"Expected {self.path} to be a ledger, and it is another database.")
        if version > VERSION:
            raise LedgerError(
                f"Expected {self.path} to be a ledger of version {VERSION}, and it is of version "
                f"{version}: a newer discreet made it."
            )
        return int(version)

    @contextmanager
    def _sentences(self, verb: str) -> Iterator[None]:
        """Turn whatever SQLite says into one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(self._sentence(error, verb)) from None

    def _sentence(self, error: sqlite3.Error, verb: str) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return f"Expected {self.path} to be a ledger, and it is none, or damaged."
        reasons = {
            "SQLITE_FULL": "disk full",
            "SQLITE_IOERR": f"input or output failed ({name}); is the disk full?",
            "SQLITE_READONLY": "read-only",
            "SQLITE_BUSY": f"others have locked it for more than {store.PATIENCE:g} seconds",
            "SQLITE_CANTOPEN": self._why_closed(),
        }
        found = [reason for start, reason in reasons.items() if name.startswith(start)]
        reason = found[0] if found else str(error)
        return self._failed(verb, reason)

    def _failed(self, verb: str, reason: str) -> str:
        return f"The ledger {self.path} could not be {verb} ({reason}): nothing was released."

    def _why_closed(self) -> str:
        parent = self.path.parent
        if not parent.is_dir():
            return f"there is no directory {parent}"
        writable = os.access(parent, os.W_OK)
        return "it cannot be opened" if writable else "its directory is read-only"


def _number_of_names(file: Path) -> int:
    """Return how many hard links there are to a file, as far as its file system tells; or 0."""
    try:
        found = os.stat(file)
    except OSError:  # not there yet, or whoever opens it will say why
        return 0
    return found.st_nlink if stat.S_ISREG(found.st_mode) else 0


def _log_without_a_file(folder: Path) -> str | None:
    """Return a log of SQLite that has something in it, and no database beside it; None if none."""
    try:
        with os.scandir(folder) as found:
            for each in found:
                gone = each.name.endswith("-wal") and not os.path.exists(each.path[:-4])
                if gone and each.stat().st_size:
                    return each.path
    except OSError:  # whoever opens the file will say why
        pass
    return None


def _is_blank(connection: sqlite3.Connection) -> bool:
    """Return whether this is a file without any table, as SQLite makes it."""
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _statements() -> Iterator[str]:
    """Yield what makes an empty ledger."""
    yield from _TABLES.split(";\n")
    for table, key in _KEYS.items():
        yield from _only_added_to(table, key)
    yield f"PRAGMA application_id = {APPLICATION_ID}"
    yield f"PRAGMA user_version = {VERSION}"


def _steps_table() -> Iterator[str]:
    """Yield what makes the table of steps, unless it is there."""
    yield _STEPS
    for statement in _only_added_to("steps", _STEPS_KEY):
        yield statement.replace("CREATE TRIGGER", "CREATE TRIGGER IF NOT EXISTS")


def _only_added_to(table: str, key: str) -> Iterator[str]:
    """Yield what keeps rows of a table from being changed or removed."""
    there = f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key})"  # noqa: S608 (our own names)
    for what, when in (("UPDATE", ""), ("DELETE", ""), ("INSERT", there)):
        yield _ONLY_ADDED_TO.format(table=table, what=what, when=when)
