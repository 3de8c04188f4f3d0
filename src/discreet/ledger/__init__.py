"""A privacy budget on disk, for a data set that is released more than once, by more than one.

`Ledger` is the file; builds take it with `ledger=`, `dataset=` and `analyst=`.
"""

from discreet.ledger.ledger import Account, Ledger, Reservation
from discreet.ledger.statement import Spend, State, Statement

__all__ = ["Account", "Ledger", "Reservation", "Spend", "State", "Statement"]
