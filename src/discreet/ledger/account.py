"""Whom a release is counted for, and the steps that come before its noise."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from discreet.accounting import Mechanism, Receipt
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


class Counted(TypedDict, total=False):
    """What every release takes to be counted: by name, for type checkers.

    Attributes:
        ledger: where it is counted; None for nowhere.
        dataset: the name that its rows have there.
        analyst: who asks, if that is to be known.
        account: all three in one (`Ledger.account`), in their place.
    """

    account: "Account | None"
    ledger: "Ledger | None"
    dataset: str | None
    analyst: str | None


@dataclass(frozen=True)
class Account:
    """A data set of a ledger, and who asks. `Ledger.account` makes one."""

    ledger: "Ledger"
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
        """
        self.ledger.check(self.dataset, mechanisms, unit=unit, delta=delta, analyst=self.analyst)

    def reserve(self, receipt: Receipt, *, delta: float) -> "Reservation":
        """Count a release before its noise is drawn, or raise `BudgetExceeded`.

        From now on it counts, whatever happens, unless it is voided before its noise, or that of
        another release of the data set, is drawn.
        """
        self.ledger.reserve(self.dataset, receipt, delta=delta, analyst=self.analyst)
        return Reservation(self.ledger, receipt.id)


@dataclass(frozen=True)
class Reservation:
    """A release that counts, and whose noise may be drawn after `draw`, and only then."""

    ledger: "Ledger"
    id: str

    def draw(self) -> None:
        """Note on the disk that the noise is about to be drawn; fails if this was voided."""
        self.ledger.draw(self.id)

    def void(self) -> bool:
        """Take it back; fails once `draw` was called.

        Returns whether it keeps counting all the same, because another release was drawn
        meanwhile; a warning says so, too (`Ledger.void`).
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
