"""What a ledger keeps, and what is read and written of it inside a transaction.

`Store` is where: a file (`sqlite`), or a database on a server (`postgres`). What is below it is the
same for both, in the SQL that both understand.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from discreet import _validate
from discreet.accounting import Receipt
from discreet.errors import InvalidInput, LedgerError
from discreet.ledger.limits import Bound, Charge, Filter, Mechanisms, Spend, State
from discreet.privacy import Neighbours, Privacy

# "disc", so that `file` and we know the file again; and which tables it has.
APPLICATION_ID, VERSION = 0x64697363, 2

# How long to wait for others, in seconds.
PATIENCE = 60.0

_STATES = {"drawn": State.SPENT, "released": State.RELEASED, "voided": State.VOIDED}

# Whether a spend counts: unless it was voided, and nothing of its data set was drawn between its
# reservation and that. Who has seen another release may not take this one back because of it.
_COUNTS = """
NOT EXISTS (
    SELECT 1 FROM events AS void
    WHERE void.spend = spends.id AND void.kind = 'voided' AND NOT EXISTS (
        SELECT 1 FROM events AS draw CROSS JOIN spends AS other WHERE other.id = draw.spend
        AND draw.number > spends.events_before AND draw.number < void.number
        AND draw.kind = 'drawn' AND other.dataset = spends.dataset
    )
)
"""
_OF_AN_ACCOUNT = (
    "FROM spends WHERE dataset = ? AND (CAST(? AS TEXT) IS NULL OR analyst = ?) ORDER BY number"
)

# A spend without its receipt, which takes longest to read.
_CHARGES = f"SELECT id, square, tail, loss, {_COUNTS} {_OF_AN_ACCOUNT}"
_SPENDS = f"SELECT id, receipt, delta, analyst, at, {_COUNTS} {_OF_AN_ACCOUNT}"


class Rows(Protocol):
    """What a statement gives back."""

    def fetchone(self) -> Any:  # noqa: ANN401 (a row)
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """Yield all rows that are left."""


class Connection(Protocol):
    """A transaction that is open."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Carry out a statement, with a value for each question mark."""


class Store(Protocol):
    """Where a ledger is kept."""

    def create(self) -> None:
        """Make it, unless it is there."""

    def exists(self) -> bool:
        """Return whether it is there, as far as that is known without opening it."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a transaction that sees one state of the ledger."""

    def writing(self, *, steps: bool = False) -> AbstractContextManager[Connection]:
        """Return a transaction that nobody else writes beside; kept at its end, or nowhere.

        Args:
            steps: whether it is about steps of a stream, whose table comes with the first of them.
        """


@dataclass(frozen=True)
class Dataset:
    """What was fixed when a data set was made.

    Attributes:
        name: of the data set.
        limit: that all its releases together stay within.
        unit: whom it protects.
    """

    name: str
    limit: Privacy
    unit: str

    def check(self, mechanisms: Mechanisms, unit: str, *, drawn: bool = False) -> None:
        """Raise `InvalidInput` if these protect other neighbours or another unit, with a remedy.

        Args:
            mechanisms: of a release.
            unit: whom they protect.
            drawn: whether it is made already, and can no longer be asked for otherwise.
        """
        neighbours, wanted = mechanisms[0][0].neighbours, self.limit.neighbours
        if (neighbours, unit) == (wanted, self.unit):
            return
        changes = "" if drawn else f"{self._changes(neighbours, unit)}, or "
        advice = (
            f"{changes}count it in another data set, with a limit of its own, that is made for "
            f"unit {unit!r} and neighbours {str(neighbours)!r} (Ledger.create, or discreet ledger "
            f"create --unit {unit} --neighbours {neighbours})."
        )
        raise InvalidInput(
            f"Expected a release for data set {self.name!r}, whose limit is for one "
            f"{self.unit} under {str(wanted)!r}, and it is for one {unit} under "
            f"{str(neighbours)!r}: the two do not add up. {advice[0].upper()}{advice[1:]}"
        )

    def _changes(self, neighbours: Neighbours, unit: str) -> str:
        """Return how to ask for a release that would add up."""
        changes = []
        if unit != self.unit:
            give = "give `groups` where it takes them"
            changes.append(give if self.unit == "record" else "leave `groups` out")
        if neighbours is not self.limit.neighbours:
            wanted = str(self.limit.neighbours)
            changes.append(f"ask for `neighbours` {wanted!r} where it can be chosen")
        return " and ".join(changes)


def dataset_named(connection: Connection, name: str) -> Dataset:
    """Return a data set, or raise `InvalidInput` if there is none of this name."""
    row = connection.execute(
        "SELECT epsilon, delta, neighbours, unit FROM datasets WHERE name = ?", (name,)
    ).fetchone()
    if row is None:
        _validate.reject_argument("dataset", name, "in the ledger; `create` puts it there")
    epsilon, delta, neighbours, unit = row
    return Dataset(name, Privacy(epsilon, delta, Neighbours.parse(neighbours)), unit)


def analyst_limits(connection: Connection, dataset: Dataset) -> dict[str, Privacy]:
    """Return the limits of analysts that have one."""
    rows = connection.execute(
        "SELECT analyst, epsilon, delta FROM limits WHERE dataset = ? ORDER BY analyst",
        (dataset.name,),
    )
    neighbours = dataset.limit.neighbours
    return {analyst: Privacy(epsilon, delta, neighbours) for analyst, epsilon, delta in rows}


def bounds(connection: Connection, dataset: Dataset, analyst: str | None) -> list[Bound]:
    """Return all limits that a request of this analyst has to stay within."""
    whose = f"data set {dataset.name!r}"
    found = [Bound(whose, _filter(connection, dataset.limit, dataset.name, None))]
    own = analyst_limits(connection, dataset).get(analyst) if analyst is not None else None
    if own is not None:
        mine = _filter(connection, own, dataset.name, analyst)
        found.append(Bound(f"analyst {analyst!r} of {whose}", mine))
    return found


def _filter(connection: Connection, limit: Privacy, dataset: str, analyst: str | None) -> Filter:
    """Return a limit with the spends of a data set, or of one analyst there."""
    rows = connection.execute(_CHARGES, (dataset, analyst, analyst)).fetchall()
    if not rows:
        return Filter(limit=limit)
    (first, *_, counts), *others = rows
    begun = Filter(limit=limit).plus(receipt_named(connection, first).mechanisms)
    return (begun if counts else begun.without_first()).plus_charges(
        [Charge(*charge) for _, *charge, counts in others if counts]
    )


def receipt_named(connection: Connection, name: str) -> Receipt:
    """Return the receipt of a spend."""
    [text] = connection.execute("SELECT receipt FROM spends WHERE id = ?", (name,)).fetchone()
    return _receipt(text)


def add_spend(
    connection: Connection,
    dataset: Dataset,
    receipt: Receipt,
    *,
    delta: float,
    analyst: str | None,
) -> None:
    """Write down a spend, reserved; raise `InvalidInput` if it is there already."""
    known = dataset_with(connection, receipt.id)
    if known is not None:
        raise InvalidInput(
            f"Expected a release that is new to the ledger: {receipt.id} is in it already, for "
            f"data set {known!r}."
        )
    charge = Charge.of(receipt.mechanisms)
    written = json.dumps(receipt.to_dict(), allow_nan=False)
    connection.execute(
        "INSERT INTO spends "
        "(id, dataset, analyst, receipt, delta, square, tail, loss, at, events_before) "
        "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, COALESCE(MAX(number), 0) FROM events",
        (receipt.id, dataset.name, analyst, written, delta, *astuple(charge), now()),
    )


def add_event(connection: Connection, spend: str, kind: str, detail: str = "") -> None:
    """Write down what has happened to a spend."""
    connection.execute(
        "INSERT INTO events (spend, kind, detail, at) VALUES (?, ?, ?, ?)",
        (spend, kind, detail, now()),
    )


def state_of(connection: Connection, spend: str) -> State:
    """Return how far a spend has come, or raise `InvalidInput` if there is none of this id."""
    if connection.execute("SELECT 1 FROM spends WHERE id = ?", (spend,)).fetchone() is None:
        raise InvalidInput(f"Expected id={spend!r} to be in the ledger.")
    rows = connection.execute("SELECT kind FROM events WHERE spend = ? ORDER BY number", (spend,))
    return _state([kind for (kind,) in rows])


def add_step(connection: Connection, spend: str, step: int, digest: str) -> str:
    """Write down what a stream releases in a step, unless that is known; return what is known."""
    row = connection.execute(
        "SELECT digest FROM steps WHERE spend = ? AND step = ?", (spend, step)
    ).fetchone()
    if row is None:
        connection.execute(
            "INSERT INTO steps (spend, step, digest, at) VALUES (?, ?, ?, ?)",
            (spend, step, digest, now()),
        )
        return digest
    return str(row[0])


def last_step(connection: Connection, spend: str) -> int:
    """Return the number of the last step of a stream that was written down; 0 if none was."""
    [last] = connection.execute(
        "SELECT COALESCE(MAX(step), 0) FROM steps WHERE spend = ?", (spend,)
    ).fetchone()
    return int(last)


def dataset_with(connection: Connection, spend: str) -> str | None:
    """Return the data set that a spend was written down for; None if there is none of this id."""
    row = connection.execute("SELECT dataset FROM spends WHERE id = ?", (spend,)).fetchone()
    return None if row is None else str(row[0])


def dataset_counting(connection: Connection, spend: str) -> str | None:
    """Return the data set that a spend counts for; None if it counts no more."""
    row = connection.execute(
        f"SELECT dataset FROM spends WHERE id = ? AND {_COUNTS}",  # noqa: S608 (our own words)
        (spend,),
    ).fetchone()
    return None if row is None else str(row[0])


def spends(connection: Connection, dataset: Dataset, analyst: str | None) -> tuple[Spend, ...]:
    """Return all spends of a data set, or of one analyst there."""
    events: dict[str, list[tuple[str, str]]] = {}
    for spend, kind, detail in connection.execute(
        "SELECT spend, kind, detail FROM events ORDER BY number"
    ):
        events.setdefault(spend, []).append((kind, detail))
    rows = connection.execute(_SPENDS, (dataset.name, analyst, analyst))
    return tuple(
        Spend(
            receipt=_receipt(receipt),
            delta=delta,
            analyst=who,
            at=at,
            state=_state([kind for kind, _ in events.get(spend, ())]),
            counts=bool(counts),
            places=tuple(detail for kind, detail in events.get(spend, ()) if kind == "released"),
        )
        for spend, receipt, delta, who, at, counts in rows
    )


def now() -> str:
    """Return the time, UTC, by this machine's clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _state(kinds: Sequence[str]) -> State:
    return _STATES[kinds[-1]] if kinds else State.RESERVED


def _receipt(text: str) -> Receipt:
    try:
        return Receipt.from_dict(json.loads(text))
    except ValueError as error:
        raise LedgerError(f"A receipt in the ledger cannot be read: {error}") from None
