"""A privacy budget, in a file or on a server: what was spent on each data set, and what is left."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from discreet import _validate
from discreet._validate import warn
from discreet.accounting import Mechanism, Receipt
from discreet.accounting.events import check_mechanisms
from discreet.accounting.receipt import Carrier
from discreet.errors import BudgetExceeded, DiscreetError, InvalidInput
from discreet.ledger import store
from discreet.ledger.addresses import Address, database_at, is_address
from discreet.ledger.limits import State, Statement, broken_by, refuse
from discreet.ledger.sqlite import File
from discreet.privacy import Neighbours, Privacy

UNITS = ("row", "record")


@dataclass(frozen=True, init=False)
class Ledger:
    """A privacy budget, for everybody who releases something about the same people.

    Whatever is drawn under it stays within each data set's limit, in whatever order, by however
    many processes, and wherever they crash: `docs/privacy.md`, "Ledger". It is only ever added
    to, and holds nothing but receipts, which are public.

    Nothing is opened before it is needed, and nothing is kept open: a ledger may be shared by
    threads, sent to other processes, and forked.

    Args:
        path: of the file, on a local disk; by any symbolic link, but with no hard link beside it,
            and not mounted without its folder. `create` makes it. Or for several machines a
            database of PostgreSQL, "postgresql://user@host/database" (extra `postgres`); with
            "?witness=FILE" at its end, what was seen there is kept in a file, and a database that
            has forgotten some of it is refused (docs/howto/ledger.md, "Several machines").

    Attributes:
        path: of the file, absolute; or the address of the database, without the password. Neither
            pickles nor streams keep that: other processes find it in PGPASSWORD or ~/.pgpass.

    Raises:
        InvalidInput: if the address of a database makes no sense.
    """

    path: Path | str
    _open: Callable[[], store.Store] = field(repr=False, compare=False)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        place: Path | str
        opened: Callable[[], store.Store]
        if isinstance(path, str) and is_address(path):
            address = Address.parse(path)
            place, opened = address.shown, database_at(address)
        else:
            place = Path(os.path.abspath(path))
            opened = partial(File, place)
        object.__setattr__(self, "path", place)
        object.__setattr__(self, "_open", opened)

    def __reduce__(self) -> "tuple[type[Ledger], tuple[str]]":
        # The path as a text: a pickled `Path` is not for every version of Python and every system.
        return Ledger, (str(self.path),)

    def __copy__(self) -> "Ledger":
        return self

    def __deepcopy__(self, memo: object) -> "Ledger":
        # It never changes; and a copy by way of `__reduce__` would lack the password.
        return self

    @property
    def _store(self) -> store.Store:
        return self._open()

    def exists(self) -> bool:
        """Return whether there is such a file; of a database, only opening it tells: True."""
        return self._store.exists()

    def create(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        neighbours: str = Neighbours.ADD_REMOVE,
        unit: str = "row",
    ) -> None:
        """Put a data set into the ledger, with the limit that it will have for ever.

        Args:
            name: under which builds will ask for it. There must be none of this name.
            epsilon: of all its releases together.
            delta: likewise.
            neighbours: "add_remove", or "replace": the relation that all its releases must have.
            unit: "row", or "record" for releases with `groups`.

        Raises:
            InvalidInput: if there is a data set of this name, or a number is out of range.
            LedgerError: if it cannot be written, or is no ledger.

        Example:
            >>> ledger = Ledger("budget.db")
            >>> ledger.create("clinic", epsilon=2.0, delta=1e-6)
            >>> spend = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger, "dataset": "clinic"}
            >>> memory = discreet.build([[0.6, 0.8]], [[1.0]], scale=2.0, **spend)
            >>> round(ledger.statement("clinic").spent.epsilon, 3)
            1.0
        """
        _validate.text("name", name)
        limit = _limit(epsilon, delta, Neighbours.parse(neighbours))
        if unit not in UNITS:
            _validate.reject_argument("unit", unit, f"one of {list(UNITS)}")
        self._store.create()
        with self._store.writing() as connection:
            if connection.execute("SELECT 1 FROM datasets WHERE name = ?", (name,)).fetchone():
                raise InvalidInput(
                    f"Expected name={name!r} to be new to the ledger, and it is not."
                )
            connection.execute(
                "INSERT INTO datasets VALUES (?, ?, ?, ?, ?, ?)",
                (name, limit.epsilon, limit.delta, str(limit.neighbours), unit, store.now()),
            )

    def limit_analyst(self, dataset: str, analyst: str, *, epsilon: float, delta: float) -> None:
        """Give an analyst a limit of his own, for ever: all that he releases must fit it, too.

        What he has released before counts.

        Args:
            dataset: its name.
            analyst: who; he must have no limit yet.
            epsilon: of all his releases together.
            delta: likewise.

        Raises:
            InvalidInput: if he has a limit, there is no such data set, or a number is out of range.
            LedgerError: if it cannot be written.
        """
        _validate.text("analyst", analyst)
        with self._store.writing() as connection:
            found = store.dataset_named(connection, dataset)
            limit = _limit(epsilon, delta, found.limit.neighbours)
            if analyst in store.analyst_limits(connection, found):
                raise InvalidInput(f"Expected analyst={analyst!r} to have no limit yet.")
            connection.execute(
                "INSERT INTO limits VALUES (?, ?, ?, ?, ?)",
                (dataset, analyst, limit.epsilon, limit.delta, store.now()),
            )

    def account(self, dataset: str, analyst: str | None = None) -> "Account":
        """Return what builds count on: a data set, and who asks. Opens nothing.

        Args:
            dataset: its name.
            analyst: who asks, if that is to be known.

        Returns:
            An account, for the option `account` of every build.

        Raises:
            InvalidInput: if a name is no printable text.
        """
        _validate.text("dataset", dataset)
        return Account(
            self, dataset, None if analyst is None else _validate.text("analyst", analyst)
        )

    def check(
        self,
        dataset: str,
        mechanisms: Sequence[tuple[Mechanism, int]],
        *,
        unit: str,
        delta: float,
        analyst: str | None = None,
    ) -> None:
        """Raise `BudgetExceeded` if a release would not fit now. Writes nothing.

        Args:
            dataset: its name.
            mechanisms: of the release that is planned.
            unit: whom they protect.
            delta: at which it is asked for.
            analyst: who asks.

        Raises:
            BudgetExceeded: if it would not fit, with what would.
            InvalidInput: if it protects other neighbours or another unit, or there is no such data
                set.
            LedgerError: if it cannot be read.
        """
        pairs = check_mechanisms(mechanisms)
        delta = _delta(delta)
        with self._store.reading() as connection:
            found = store.dataset_named(connection, dataset)
            found.check(pairs, unit)
            bounds = store.bounds(connection, found, analyst)
        refuse(broken_by(bounds, pairs), bounds, pairs, delta=delta)

    def reserve(
        self, dataset: str, receipt: Receipt, *, delta: float, analyst: str | None = None
    ) -> None:
        """Count a release whose noise is yet to be drawn, or raise `BudgetExceeded`.

        Check and count are one step: no two requests ever fit the same rest. `Account.reserve`
        returns what is to be done next.

        Args:
            dataset: its name.
            receipt: of the release.
            delta: at which it is asked for.
            analyst: who asks.

        Raises:
            BudgetExceeded: if it does not fit, with what would; then nothing is counted.
            InvalidInput: if it protects other neighbours or another unit, is in the ledger already,
                or there is no such data set.
            LedgerError: if it cannot be written.
        """
        _validate.instance("receipt", receipt, Receipt)
        delta = _delta(delta)
        with self._store.writing() as connection:
            found = store.dataset_named(connection, dataset)
            found.check(receipt.mechanisms, receipt.unit)
            bounds = store.bounds(connection, found, analyst)
            broken = broken_by(bounds, receipt.mechanisms)
            if not broken:
                store.add_spend(connection, found, receipt, delta=delta, analyst=analyst)
        # Outside, because it takes a while to find out what would fit, and others wait.
        refuse(broken, bounds, receipt.mechanisms, delta=delta)

    def draw(self, id: str) -> None:  # noqa: A002 (what it is called everywhere)
        """Note that the noise of a reservation is about to be drawn; from then on it is spent.

        Args:
            id: of its receipt.

        Raises:
            BudgetExceeded: if it is not reserved any more: its noise may not be drawn.
            InvalidInput: if there is none of this id.
            LedgerError: if it cannot be written.
        """
        with self._store.writing() as connection:
            state = store.state_of(connection, id)
            if state is not State.RESERVED:
                raise BudgetExceeded(
                    f"Expected {id} to be reserved, and it is {state}: its noise is not drawn."
                )
            store.add_event(connection, id, "drawn")

    def void(self, id: str) -> bool:  # noqa: A002
        """Take back a reservation whose noise was never drawn, for instance after a crash.

        Whoever still means to draw it will fail. What was drawn cannot be taken back.

        It counts no more, unless something of the same data set was drawn since it was reserved.
        Then it keeps counting, and a warning says so: whoever looks at a release, and then chooses
        what becomes of another, would gain more than the limit allows. `docs/privacy.md`, "Ledger".

        Args:
            id: of its receipt.

        Returns:
            Whether it keeps counting.

        Raises:
            InvalidInput: if it was drawn or voided before, or there is none of this id.
            LedgerError: if it cannot be written.
        """
        with self._store.writing() as connection:
            state = store.state_of(connection, id)
            if state is not State.RESERVED:
                raise InvalidInput(
                    f"Expected {id} to be reserved, and it is {state}: only what was never drawn "
                    "can be voided."
                )
            store.add_event(connection, id, "voided")
            dataset = store.dataset_counting(connection, id)
        if dataset is not None:
            warn(
                f"{id} is voided and will never be drawn, but it keeps counting: another release "
                f"of data set {dataset!r} was drawn while it was reserved, as far as the ledger "
                "can tell, and whoever takes it back may have looked at that.",
                UserWarning,
            )
        return dataset is not None

    def spend(
        self,
        dataset: str,
        release: Receipt | Carrier,
        *,
        delta: float | None = None,
        analyst: str | None = None,
    ) -> None:
        """Count a release that was made without the ledger: a memory from a file, a receipt.

        It is counted even if it exceeds the limit, since it cannot be taken back; then
        `BudgetExceeded` says so, and nothing will fit any more. Count it at once: the limit does
        not cover what is chosen by looking at a release that the ledger does not know yet.

        Args:
            dataset: whose rows it was made of.
            release: that was made.
            delta: at which it was asked for; by default that of its guarantee.
            analyst: who made it.

        Raises:
            BudgetExceeded: if a limit is exceeded now; it is counted all the same.
            InvalidInput: if it protects other neighbours or another unit, is in the ledger already,
                or there is no such data set.
            LedgerError: if it cannot be written.
        """
        receipt = receipt_of(release)
        if delta is None:
            if isinstance(release, Receipt):
                raise InvalidInput("Expected a delta for a receipt: it has none of its own.")
            delta = release.guarantee.delta
        delta = _delta(delta)
        with self._store.writing() as connection:
            found = store.dataset_named(connection, dataset)
            found.check(receipt.mechanisms, receipt.unit, drawn=True)
            broken = broken_by(store.bounds(connection, found, analyst), receipt.mechanisms)
            store.add_spend(connection, found, receipt, delta=delta, analyst=analyst)
            store.add_event(connection, receipt.id, "drawn")
        if broken:
            raise BudgetExceeded(
                f"The limit of {broken[0].whose} is exceeded by a release that was made without "
                "it. It is counted all the same, and nothing fits any more."
            )

    def released(self, release: Receipt | Carrier, where: str | os.PathLike[str]) -> None:
        """Note where a release went; for the record only.

        Args:
            release: or its receipt.
            where: for instance the name of a file.

        Raises:
            InvalidInput: if it is not spent.
            LedgerError: if it cannot be written.
        """
        receipt, place = receipt_of(release), _validate.text("where", os.fspath(where))
        with self._store.writing() as connection:
            _check_spent(connection, receipt.id)
            store.add_event(connection, receipt.id, "released", place)

    def note_step(self, id: str, step: int, digest: str) -> None:  # noqa: A002
        """Note what a stream releases in a step, before it does. Twice the same changes nothing.

        A stream spends once, for all its steps (`reserve`, `draw`). But its noise must not be drawn
        twice for one step, as it would be by a copy of its folder, or by a backup.

        Args:
            id: of the stream's receipt.
            step: its number, from 1 on.
            digest: a hash of what is released.

        Raises:
            BudgetExceeded: another state of this step was noted: this one may not be released.
            InvalidInput: if the stream is not spent here.
            LedgerError: if it cannot be written.
        """
        with self._store.writing(steps=True) as connection:
            _check_spent(connection, id)
            known = store.add_step(connection, id, step, digest)
        if known != digest:
            raise BudgetExceeded(
                f"Expected step {step:,} of a stream to be released once, and the ledger knows it "
                "with other noise: this is a copy of the stream, or a backup. It is not released; "
                "go on with the stream itself."
            )

    def last_step(self, id: str) -> int:  # noqa: A002
        """Return the number of the last step of a stream that was noted; 0 if none was.

        Args:
            id: of the stream's receipt.

        Raises:
            InvalidInput: if the stream is not spent here.
            LedgerError: if it cannot be read.
        """
        with self._store.writing(steps=True) as connection:
            _check_spent(connection, id)
            return store.last_step(connection, id)

    def datasets(self) -> list[str]:
        """Return the names of all data sets."""
        with self._store.reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM datasets ORDER BY 1")]

    def dataset_of(self, release: Receipt | Carrier) -> str | None:
        """Return the name of the data set that a release was counted for; None if it was not.

        Args:
            release: or its receipt.

        Raises:
            LedgerError: if it cannot be read.
        """
        with self._store.reading() as connection:
            return store.dataset_with(connection, receipt_of(release).id)

    def statement(self, dataset: str, *, analyst: str | None = None) -> Statement:
        """Return limit, spends and what is left, of a data set or of an analyst with a limit.

        Args:
            dataset: its name.
            analyst: one with a limit of his own; None for the whole data set.

        Returns:
            The statement, as of now.

        Raises:
            InvalidInput: if there is no such data set, or the analyst has no limit.
            LedgerError: if it cannot be read.
        """
        with self._store.reading() as connection:
            found = store.dataset_named(connection, dataset)
            limits = store.analyst_limits(connection, found)
            if analyst is not None and analyst not in limits:
                raise InvalidInput(f"Expected analyst={analyst!r} to have a limit of his own.")
            return Statement(
                dataset=dataset,
                analyst=analyst,
                unit=found.unit,
                bounds=tuple(store.bounds(connection, found, analyst)),
                spends=store.spends(connection, found, analyst),
                limits=limits,
            )


@dataclass(frozen=True)
class Account:
    """A data set of a ledger, and who asks. `Ledger.account` makes one.

    Attributes:
        ledger: where it is counted.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
    """

    ledger: Ledger
    dataset: str
    analyst: str | None = None

    def check(
        self, mechanisms: Sequence[tuple[Mechanism, int]], *, unit: str, delta: float
    ) -> None:
        """Raise `BudgetExceeded` if a release of these mechanisms would not fit. Writes nothing.

        For the time before rows are read: others may be faster, and `reserve` checks again.

        Args:
            mechanisms: of the release that is planned.
            unit: whom they protect.
            delta: at which it is asked for.

        Raises:
            BudgetExceeded: if it would not fit, with what would.
        """
        self.ledger.check(self.dataset, mechanisms, unit=unit, delta=delta, analyst=self.analyst)

    def reserve(self, receipt: Receipt, *, delta: float) -> "Reservation":
        """Count a release before its noise is drawn, or raise `BudgetExceeded`.

        From now on it counts, whatever happens, unless it is voided before its noise, or that of
        another release of the data set, is drawn.

        Args:
            receipt: of the release.
            delta: at which it is asked for.

        Returns:
            The reservation, to be drawn or voided.

        Raises:
            BudgetExceeded: if it does not fit, with what would; then nothing is counted.
        """
        self.ledger.reserve(self.dataset, receipt, delta=delta, analyst=self.analyst)
        return Reservation(self.ledger, receipt.id)


@dataclass(frozen=True)
class Reservation:
    """A release that counts, and whose noise may be drawn after `draw`, and only then.

    Attributes:
        ledger: where it counts.
        id: of its receipt.
    """

    ledger: Ledger
    id: str

    def draw(self) -> None:
        """Note on the disk that the noise is about to be drawn.

        Raises:
            BudgetExceeded: if this was voided: the noise may not be drawn.
        """
        self.ledger.draw(self.id)

    def void(self) -> bool:
        """Take it back.

        Returns:
            Whether it keeps counting all the same, because another release was drawn meanwhile; a
            warning says so, too (`Ledger.void`).

        Raises:
            InvalidInput: once `draw` was called.
        """
        return self.ledger.void(self.id)


def check(
    account: Account | None,
    mechanisms: Sequence[tuple[Mechanism, int]],
    *,
    unit: str,
    delta: float,
) -> None:
    """Check a release that is planned (`Account.check`), if anybody counts."""
    if account is not None:
        account.check(mechanisms, unit=unit, delta=delta)


def count(account: Account | None, receipt: Receipt, *, delta: float) -> None:
    """Count a release for good, if anybody does: its noise may be drawn when this returns.

    If it raises, no noise may be drawn, and nothing is counted as far as that can be known.
    """
    if account is None:
        return
    reservation = account.reserve(receipt, delta=delta)
    try:
        reservation.draw()
    except BaseException:
        # It stays reserved then, or was voided too late, and counts; that is not what went wrong.
        with suppress(DiscreetError, UserWarning):
            reservation.void()
        raise


def account_of(
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    account: Account | None = None,
) -> Account | None:
    """Return what a release is counted on; None if nobody counts.

    Args:
        ledger: where.
        dataset: the name that its rows have there; goes with a ledger.
        analyst: who asks; needs both.
        account: all three in one (`Ledger.account`), in their place.
    """
    if account is not None:
        _validate.instance("account", account, Account)
        if any(each is not None for each in (ledger, dataset, analyst)):
            raise InvalidInput("Expected account, or ledger and dataset, not both.")
        return account
    if ledger is None:
        for name, value in (("dataset", dataset), ("analyst", analyst)):
            if value is not None:
                _validate.reject_argument(name, value, "given with a ledger", needs="ledger")
        return None
    _validate.instance("ledger", ledger, Ledger)
    if dataset is None:
        raise InvalidInput(
            "Expected a dataset: the name that the rows have in the ledger.",
            argument="dataset",
            wanted="the name that the rows have in the ledger",
        )
    return ledger.account(dataset, analyst)


def _check_spent(connection: store.Connection, name: str) -> None:
    """Raise `InvalidInput` unless the noise of a release of this id was drawn."""
    state = store.state_of(connection, name)
    if state not in (State.SPENT, State.RELEASED):
        raise InvalidInput(f"Expected {name} to be spent, and it is {state}.")


def _limit(epsilon: float, delta: float, neighbours: Neighbours) -> Privacy:
    epsilon = _validate.real("epsilon", epsilon, above=0, at_most=500)
    return Privacy(epsilon, _delta(delta), neighbours)


def _delta(delta: float) -> float:
    return _validate.real("delta", delta, above=0, below=1)


def receipt_of(release: Receipt | Carrier) -> Receipt:
    """Return the receipt of a release.

    Args:
        release: or its receipt itself.
    """
    receipt = release if isinstance(release, Receipt) else getattr(release, "receipt", None)
    if not isinstance(receipt, Receipt):
        _validate.reject_argument("release", release, "a release, or a receipt")
    return receipt
