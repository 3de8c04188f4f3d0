"""Where a released file stands in a ledger: what it was counted for, and what else there is.

The file itself cannot know. Whoever keeps the ledger can hold both beside each other.
"""

from dataclasses import dataclass
from functools import cached_property

from discreet.accounting import Receipt
from discreet.accounting.receipt import Carrier
from discreet.errors import InvalidInput
from discreet.ledger.ledger import Ledger, receipt_of
from discreet.ledger.limits import Spend, Statement
from discreet.privacy import NOT_PRIVATE, rounded_up

# What is said of other releases where nobody has given a ledger.
UNKNOWN = (
    "nobody here can say which there are of the same data; all of them add up, and the builder's "
    "ledger knows them"
)


@dataclass(frozen=True)
class Standing:
    """What a ledger knows of one release.

    Attributes:
        id: of its receipt.
        statement: of the data set that it is counted for; None if the ledger does not know it.
    """

    id: str
    statement: Statement | None

    @classmethod
    def of(cls, release: Receipt | Carrier, ledger: Ledger) -> "Standing":
        """Return where a release stands.

        Args:
            release: or its receipt.
            ledger: to look it up in.

        Raises:
            InvalidInput: the ledger has another receipt under its name.
            LedgerError: the ledger cannot be read.
        """
        receipt = receipt_of(release)
        dataset = ledger.dataset_of(receipt)
        if dataset is None:
            return cls(receipt.id, None)
        standing = cls(receipt.id, ledger.statement(dataset))
        counted = standing.spend
        if counted is None or dict(counted.receipt.mechanisms) != dict(receipt.mechanisms):
            raise InvalidInput(
                f"Expected the ledger to have the receipt that the release has: under {receipt.id} "
                "it has counted something else."
            )
        return standing

    @cached_property
    def spend(self) -> Spend | None:
        """What was counted for the release; None if the ledger does not know it."""
        found = [each for each in self._spends if each.id == self.id]
        return found[0] if found else None

    @property
    def others(self) -> tuple[Spend, ...]:
        """All else that was counted for the same data set, in the order in which it came."""
        return tuple([each for each in self._spends if each.id != self.id])

    @property
    def _spends(self) -> tuple[Spend, ...]:
        return () if self.statement is None else self.statement.spends

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Titles and texts for people."""
        if self.statement is None or self.spend is None:
            return [
                ("ledger", f"does not know this release ({self.id}): it was not counted there"),
                ("other releases", UNKNOWN),
            ]
        others = self.others
        return [
            ("ledger", str(self.statement)),
            ("this release", told(self.spend)),
            ("other releases", f"{len(others):,} of the same data" if others else "none"),
            *((f"other {place:,}", told(each)) for place, each in enumerate(others, 1)),
        ]

    def to_dict(self) -> dict[str, object]:
        """Return what there is to know, as plain JSON types."""
        known = None if self.statement is None else self.statement.to_dict()
        return {"release": self.id, "statement": known}


def lines_of(standing: Standing | None) -> list[tuple[str, str]]:
    """Return what is said beside a card: what a ledger knows, or that nobody asked one.

    Args:
        standing: of the release; None without a ledger.
    """
    return [("other releases", UNKNOWN)] if standing is None else standing.lines


def told(spend: Spend) -> str:
    """Return what a ledger says of one release, in a line.

    Args:
        spend: as it was counted.
    """
    counts = "" if spend.counts else ", counts no more"
    mark = "" if spend.receipt.private else f" {NOT_PRIVATE}"
    who = "" if spend.analyst is None else f", by {spend.analyst}"
    places = f" to {', '.join(spend.places)}" if spend.places else ""
    figures = f"ε = {rounded_up(spend.epsilon)}, δ = {spend.delta:g}"
    return (
        f"{spend.at[:10]}, {figures}, {spend.state}{counts}{mark}{spend.receipt.note}{who}{places}"
    )
