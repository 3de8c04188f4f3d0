"""A privacy budget on disk: what was spent on each data set, by whom, and what is left."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet import _validate
from discreet._warn import warn
from discreet.accounting import Mechanism, Receipt
from discreet.accounting.compose import check_mechanisms
from discreet.accounting.receipt import Carrier
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.ledger import records
from discreet.ledger.account import Account
from discreet.ledger.limits import broken_by, refuse
from discreet.ledger.statement import State, Statement
from discreet.ledger.store import Store
from discreet.privacy import Neighbours, Privacy

UNITS = ("row", "record")


@dataclass(frozen=True, init=False)
class Ledger:
    """A privacy budget in a file, for everybody who releases something about the same people.

    Whatever is drawn under it stays within each data set's limit, in whatever order, by however
    many processes, and wherever they crash: `docs/privacy.md`, "Ledger". The file is only ever
    added to, and holds nothing but receipts, which are public.

    Nothing is opened before it is needed, and nothing is kept open: a ledger may be shared by
    threads, sent to other processes, and forked.

    Args:
        path: of the file, on a local disk; by any symbolic link, but with no hard link beside it,
            and not mounted without its folder. `create` makes it.
    """

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", Path(os.path.abspath(path)))

    @property
    def _store(self) -> Store:
        return Store(self.path)

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
                (name, limit.epsilon, limit.delta, str(limit.neighbours), unit, records.now()),
            )

    def limit_analyst(self, dataset: str, analyst: str, *, epsilon: float, delta: float) -> None:
        """Give an analyst a limit of his own, for ever: all that he releases must fit it, too.

        What he has released before counts.
        """
        _validate.text("analyst", analyst)
        with self._store.writing() as connection:
            found = records.dataset_named(connection, dataset)
            limit = _limit(epsilon, delta, found.limit.neighbours)
            if analyst in records.analyst_limits(connection, found):
                raise InvalidInput(f"Expected analyst={analyst!r} to have no limit yet.")
            connection.execute(
                "INSERT INTO limits VALUES (?, ?, ?, ?, ?)",
                (dataset, analyst, limit.epsilon, limit.delta, records.now()),
            )

    def account(self, dataset: str, analyst: str | None = None) -> Account:
        """Return what builds count on: a data set, and who asks."""
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
        """
        pairs = check_mechanisms(mechanisms)
        delta = _delta(delta)
        with self._store.reading() as connection:
            found = records.dataset_named(connection, dataset)
            found.check(pairs, unit)
            bounds = records.bounds(connection, found, analyst)
        refuse(broken_by(bounds, pairs), bounds, pairs, delta=delta)

    def reserve(
        self, dataset: str, receipt: Receipt, *, delta: float, analyst: str | None = None
    ) -> None:
        """Count a release whose noise is yet to be drawn, or raise `BudgetExceeded`.

        Check and count are one step: no two requests ever fit the same rest. `Account.reserve`
        returns what is to be done next.
        """
        _validate.instance("receipt", receipt, Receipt)
        delta = _delta(delta)
        with self._store.writing() as connection:
            found = records.dataset_named(connection, dataset)
            found.check(receipt.mechanisms, receipt.unit)
            bounds = records.bounds(connection, found, analyst)
            broken = broken_by(bounds, receipt.mechanisms)
            if not broken:
                records.add_spend(connection, found, receipt, delta=delta, analyst=analyst)
        # Outside, because it takes a while to find out what would fit, and others wait.
        refuse(broken, bounds, receipt.mechanisms, delta=delta)

    def draw(self, id: str) -> None:  # noqa: A002 (what it is called everywhere)
        """Note that the noise of a reservation is about to be drawn; from then on it is spent."""
        with self._store.writing() as connection:
            state = records.state_of(connection, id)
            if state is not State.RESERVED:
                raise BudgetExceeded(
                    f"Expected {id} to be reserved, and it is {state}: its noise is not drawn."
                )
            records.add_event(connection, id, "drawn")

    def void(self, id: str) -> bool:  # noqa: A002
        """Take back a reservation whose noise was never drawn, for instance after a crash.

        Whoever still means to draw it will fail. What was drawn cannot be taken back.

        It counts no more, unless something of the same data set was drawn since it was reserved.
        Then it keeps counting, and a warning says so: whoever looks at a release, and then chooses
        what becomes of another, would gain more than the limit allows. `docs/privacy.md`, "Ledger".

        Returns whether it keeps counting.
        """
        with self._store.writing() as connection:
            state = records.state_of(connection, id)
            if state is not State.RESERVED:
                raise InvalidInput(
                    f"Expected {id} to be reserved, and it is {state}: only what was never drawn "
                    "can be voided."
                )
            records.add_event(connection, id, "voided")
            dataset = records.dataset_counting(connection, id)
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
        """
        receipt = _receipt_of(release)
        if delta is None:
            if isinstance(release, Receipt):
                raise InvalidInput("Expected a delta for a receipt: it has none of its own.")
            delta = release.guarantee.delta
        delta = _delta(delta)
        with self._store.writing() as connection:
            found = records.dataset_named(connection, dataset)
            found.check(receipt.mechanisms, receipt.unit, drawn=True)
            broken = broken_by(records.bounds(connection, found, analyst), receipt.mechanisms)
            records.add_spend(connection, found, receipt, delta=delta, analyst=analyst)
            records.add_event(connection, receipt.id, "drawn")
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
        """
        receipt, place = _receipt_of(release), _validate.text("where", os.fspath(where))
        with self._store.writing() as connection:
            state = records.state_of(connection, receipt.id)
            if state not in (State.SPENT, State.RELEASED):
                raise InvalidInput(f"Expected {receipt.id} to be spent, and it is {state}.")
            records.add_event(connection, receipt.id, "released", place)

    def datasets(self) -> list[str]:
        """Return the names of all data sets."""
        with self._store.reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM datasets ORDER BY 1")]

    def statement(self, dataset: str, *, analyst: str | None = None) -> Statement:
        """Return limit, spends and what is left, of a data set or of an analyst with a limit."""
        with self._store.reading() as connection:
            found = records.dataset_named(connection, dataset)
            limits = records.analyst_limits(connection, found)
            if analyst is not None and analyst not in limits:
                raise InvalidInput(f"Expected analyst={analyst!r} to have a limit of his own.")
            return Statement(
                dataset=dataset,
                analyst=analyst,
                unit=found.unit,
                bounds=tuple(records.bounds(connection, found, analyst)),
                spends=records.spends(connection, found, analyst),
                limits=limits,
            )


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


def _limit(epsilon: float, delta: float, neighbours: Neighbours) -> Privacy:
    epsilon = _validate.real("epsilon", epsilon, above=0, at_most=500)
    return Privacy(epsilon, _delta(delta), neighbours)


def _delta(delta: float) -> float:
    return _validate.real("delta", delta, above=0, below=1)


def _receipt_of(release: Receipt | Carrier) -> Receipt:
    receipt = release if isinstance(release, Receipt) else getattr(release, "receipt", None)
    if not isinstance(receipt, Receipt):
        _validate.reject_argument("release", release, "a release, or a receipt")
    return receipt
