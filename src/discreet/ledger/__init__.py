"""A privacy budget, for a data set that is released more than once, by more than one.

`Ledger` is where it is kept: a file, or a database for several machines. Builds count a release
there if they are given `account=` (what `Ledger.account` returns), or its parts: `ledger=`,
`dataset=` and `analyst=`.
"""

from discreet.ledger.ledger import Account, Ledger, Reservation
from discreet.ledger.limits import Spend, State, Statement
from discreet.ledger.standing import Standing

__all__ = ["Account", "Ledger", "Reservation", "Spend", "Standing", "State", "Statement"]
