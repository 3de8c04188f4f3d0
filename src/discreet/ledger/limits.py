"""Limits that a request has to stay within, and what is said to one that does not."""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.accounting import tight
from discreet.errors import BudgetExceeded
from discreet.ledger.filter import ROUNDING, Filter, Mechanisms, largest_fitting
from discreet.privacy import rounded_down, rounded_up

# Less than this is of no use to anybody.
_LEAST = 1e-6


@dataclass(frozen=True)
class Bound:
    """One limit, with all that counts against it.

    Attributes:
        whose: for instance "data set 'clinic'".
        filter: the limit itself.
    """

    whose: str
    filter: Filter


def broken_by(bounds: Sequence[Bound], mechanisms: Mechanisms) -> list[Bound]:
    """Return the limits that one more release would not stay within."""
    return [each for each in bounds if not each.filter.plus(mechanisms).fits]


def refuse(
    broken: Sequence[Bound], bounds: Sequence[Bound], mechanisms: Mechanisms, *, delta: float
) -> None:
    """Raise `BudgetExceeded` if a request breaks any limit, and say what would not.

    Args:
        broken: the limits that it breaks (`broken_by`).
        bounds: all that it has to stay within.
        mechanisms: what was asked for.
        delta: at which it was.
    """
    if not broken:
        return
    whose, limit = broken[0].whose, broken[0].filter.limit
    asked = tight(mechanisms, delta=delta) / ROUNDING
    left = largest_epsilon(bounds, mechanisms, delta=delta)
    fits = f"at most ε = {rounded_down(left)} still fits" if left else "nothing fits any more"
    raise BudgetExceeded(
        f"Expected a request that {whose} has the budget for: "
        f"ε = {rounded_up(asked)} (δ = {delta:g}) was asked for, and of ε = {limit.epsilon:g} "
        f"(δ = {limit.delta:g}) it has spent "
        f"ε = {rounded_up(broken[0].filter.epsilon)}; {fits} (δ = {delta:g})."
    )


def largest_epsilon(bounds: Sequence[Bound], mechanisms: Mechanisms, *, delta: float) -> float:
    """Return the ε at this δ of such mechanisms with as much noise as fits all limits; 0 for none.

    Shown with `rounded_down`, it is a number that can be asked for.
    """
    found = largest_fitting([each.filter for each in bounds], mechanisms)
    epsilon = 0.0 if found is None else tight(found, delta=delta)
    return epsilon if epsilon >= _LEAST else 0.0
