"""What a ledger says of a data set: its limit, what is spent, what is left. Public numbers only."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from discreet.accounting import Receipt
from discreet.accounting.receipt import together
from discreet.ledger.filter import ROUNDING, Bound, largest_epsilon, whole_limit
from discreet.privacy import NOT_PRIVATE, Guarantee, Privacy, rounded_down, rounded_up

# Where no ε holds at all.
_LARGEST = 1e9


class State(StrEnum):
    """How far a spend has come. All but the last count; for that, `Spend.counts` tells."""

    RESERVED = "reserved"
    SPENT = "spent"
    RELEASED = "released"
    VOIDED = "voided"


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One release, as a ledger knows it.

    Attributes:
        receipt: what it is made of.
        delta: at which it was asked for.
        analyst: who asked, if that was said.
        at: when it was reserved, UTC.
        state: how far it has come.
        counts: whether it counts. What was voided does not, unless another release of the data set
            was drawn while it was reserved (`Ledger.void`).
        places: where it went, as far as that was noted.
    """

    receipt: Receipt
    delta: float
    analyst: str | None
    at: str
    state: State
    counts: bool
    places: tuple[str, ...]

    @property
    def id(self) -> str:
        """The name of the receipt."""
        return self.receipt.id

    @cached_property
    def guarantee(self) -> Guarantee:
        """What it promises by itself."""
        return self.receipt.guarantee(delta=self.delta)

    @property
    def epsilon(self) -> float:
        """What it was asked for at, as far as its receipt tells."""
        return self.guarantee.epsilon / ROUNDING

    def to_dict(self) -> dict[str, object]:
        """Return what there is to know, as plain JSON types."""
        return {
            "id": self.id,
            "state": str(self.state),
            "counts": self.counts,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "analyst": self.analyst,
            "at": self.at,
            "places": list(self.places),
            "private": self.receipt.private,
            "leaks": list(self.receipt.leaks),
        }


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The account of a data set, or of one analyst with a limit of his own.

    Attributes:
        dataset: its name.
        analyst: whose account it is; None for the whole data set.
        unit: whom the limit protects: a "row" or a "record".
        bounds: the limits that the next release has to stay within, this account's own the last.
        spends: all of them, in the order in which they came.
        limits: of analysts, by name.
    """

    dataset: str
    analyst: str | None
    unit: str
    bounds: tuple[Bound, ...] = field(repr=False)
    spends: tuple[Spend, ...]
    limits: dict[str, Privacy]

    @property
    def limit(self) -> Privacy:
        """What all releases together stay within."""
        return self.bounds[-1].filter.limit

    @cached_property
    def spent(self) -> Guarantee:
        """What all that counts comes to, at the limit's δ, by the same rules as for the limit.

        `docs/privacy.md`, "Ledger".
        """
        return Guarantee(
            min(self.bounds[-1].filter.epsilon, _LARGEST),
            self.limit.delta,
            self.limit.neighbours,
            unit=self.unit,
            scope=together([each.receipt for each in self._counted], releases=len(self._counted)),
        )

    @cached_property
    def left(self) -> float:
        """The largest ε, at the limit's δ, that a Gaussian release may still have; 0 for none."""
        return largest_epsilon(self.bounds, whole_limit(self.limit), delta=self.limit.delta)

    @property
    def private(self) -> bool:
        """False if any spend that counts was made with a test source of noise."""
        return all(each.receipt.private for each in self._counted)

    @property
    def _counted(self) -> list[Spend]:
        return [each for each in self.spends if each.counts]

    def __str__(self) -> str:
        mark = "" if self.private else f"{NOT_PRIVATE}: "
        whose = "" if self.analyst is None else f", analyst {self.analyst!r}"
        left = f"ε = {rounded_down(self.left)} is left" if self.left else "nothing is left"
        return (
            f"{mark}{self.dataset!r}{whose}: of ε = {self.limit.epsilon:g} "
            f"(δ = {self.limit.delta:g}, {self.limit.neighbours} neighbours, one {self.unit}), "
            f"ε = {rounded_up(self.spent.epsilon)} is spent, and {left} for one more release."
        )

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain JSON types."""
        return {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "epsilon": self.limit.epsilon,
            "delta": self.limit.delta,
            "neighbours": str(self.limit.neighbours),
            "unit": self.unit,
            "spent": self.spent.epsilon,
            "left": self.left,
            "private": self.private,
            "spends": [each.to_dict() for each in self.spends],
            "analysts": {
                name: {"epsilon": each.epsilon, "delta": each.delta}
                for name, each in self.limits.items()
            },
        }
