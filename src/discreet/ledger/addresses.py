"""Where a ledger on a server is, and what was seen there: what it may not have forgotten later.

No password is in what is shown, compared, pickled or written down.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from discreet.errors import InvalidInput, LedgerError
from discreet.ledger.store import PATIENCE, Store

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = ("password", "sslpassword")


def is_address(path: str) -> bool:
    """Return whether this is the address of a database, and no file."""
    return path.startswith(_SCHEMES)


def shown(path: str) -> str:
    """Return a path as it is, and an address without its password.

    Raises:
        InvalidInput: if it is an address that makes no sense.
    """
    return Address.parse(path).shown if is_address(path) else path


def database_at(address: "Address") -> Callable[[], Store]:
    """Return what opens the ledger of a database; psycopg is looked for when that is called."""
    witness = Witness(address.witness)

    def opened() -> Store:
        try:
            from discreet.ledger.postgres import Database
        except ImportError:
            raise LedgerError(
                f"The ledger {address.shown} is on a server: please install psycopg "
                "(pip install 'discreet[postgres]'). Nothing was released."
            ) from None
        return Database(address, witness)

    return opened


@dataclass(frozen=True)
class Address:
    """Of a database of PostgreSQL.

    Attributes:
        shown: all of it but passwords.
        url: for libpq, with the password if one was given.
        witness: the file that keeps what was seen, if any.
        hidden: what no message may have in it.
    """

    shown: str
    url: str = field(repr=False)
    witness: Path | None
    hidden: tuple[str, ...] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the parts of an address.

        Raises:
            InvalidInput: if it makes no sense; the message has nothing of it.
        """
        parts = _split(text)
        login, at, hosts = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        hidden, public, whole, witness = [unquote(password)], [], [], None
        for each in filter(None, parts.query.split("&")):
            name, _, value = each.partition("=")
            if unquote(name) == "witness":
                witness = Path(os.path.abspath(unquote(value)))
                public.append(f"witness={quote(str(witness))}")
                continue
            whole.append(each)
            if unquote(name) in _SECRET:
                hidden.append(unquote(value))
            else:
                public.append(each)
        return cls(
            shown=urlunsplit(parts._replace(netloc=user + at + hosts, query="&".join(public))),
            url=urlunsplit(parts._replace(query="&".join(whole))),
            witness=witness,
            hidden=tuple(filter(None, hidden)),
        )

    def scrubbed(self, text: str) -> str:
        """Return a text without what this address hides, should that be in it."""
        for each in (*self.hidden, *map(quote, self.hidden)):
            text = text.replace(each, "***")
        return text


def _split(text: str) -> SplitResult:
    """Return the parts of an address, if no part of a password can be taken for another."""
    wrong = "Expected the address of a ledger's database, postgresql://user@host/name"
    if not text.isprintable():
        raise InvalidInput(f"{wrong}, in printable characters.")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise InvalidInput(f"{wrong}.") from None
    if text.count("@") != parts.netloc.count("@") or text.count("@") > 1 or "#" in text:
        raise InvalidInput(
            f"{wrong}: in names and passwords, write @ as %40, # as %23, / as %2F and ? as %3F. "
            "Better, leave the password to ~/.pgpass or PGPASSWORD."
        )
    return parts


@dataclass(frozen=True)
class Entry:
    """One of the history of a ledger: what is there follows from it, and from nothing else.

    Attributes:
        number: from 1 on.
        digest: a hash of the row that it is for, of who wrote it, and of the entry before.
    """

    number: int
    digest: str


class Witness:
    """The latest entry of a ledger's history that was seen: in memory, and in a file if asked for.

    One file is for one ledger. It is a small SQLite database, because those are shared by processes
    and survive their end.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: Entry | None = None

    def last(self) -> Entry | None:
        """Return the latest entry that was seen, if any was.

        Raises:
            LedgerError: if the file cannot be read.
        """
        return self._seen if self._path is None else self._kept(self._path, None)

    def note(self, entry: Entry) -> None:
        """Keep an entry, unless a later one was seen.

        Raises:
            LedgerError: if the file cannot be written.
        """
        if self._path is not None:
            self._kept(self._path, entry)
        elif self._seen is None or self._seen.number < entry.number:
            # Threads may overtake each other here: then one remembers less, until its next step.
            self._seen = entry

    @staticmethod
    def _kept(path: Path, entry: Entry | None) -> Entry | None:
        """Return the latest entry in the file, after putting one there."""
        try:
            with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as file:
                file.execute("PRAGMA synchronous = FULL")
                file.execute(
                    "CREATE TABLE IF NOT EXISTS seen (number INTEGER PRIMARY KEY, digest TEXT)"
                )
                if entry is not None:
                    file.execute("BEGIN IMMEDIATE")
                    file.execute(
                        "INSERT INTO seen SELECT ?1, ?2 "
                        "WHERE NOT EXISTS (SELECT 1 FROM seen WHERE number >= ?1)",
                        (entry.number, entry.digest),
                    )
                    file.execute("DELETE FROM seen WHERE number < (SELECT MAX(number) FROM seen)")
                    file.execute("COMMIT")
                row = file.execute("SELECT number, digest FROM seen").fetchone()
        except sqlite3.Error as error:
            raise LedgerError(
                f"The witness {path} of a ledger could not be read and written ({error}): nothing "
                "was released."
            ) from None
        return None if row is None else Entry(*row)
