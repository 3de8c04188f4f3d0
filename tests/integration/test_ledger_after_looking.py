"""Somebody looks at one release, and then decides what becomes of another that is reserved.

The true δ of the best such strategy is integrated from exact hockey sticks, and it is at most the
limit's, whatever the ledger lets through.
"""

import math

import numpy as np
import pytest
from ledgers import receipt
from scipy import integrate, optimize, stats

from discreet.accounting import Gaussian, Laplace, gaussian_sigma, tight
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger
from discreet.privacy import Neighbours

EPSILON, DELTA = 1.0, 1e-5
NEIGHBOURS = Neighbours.ADD_REMOVE
# Δ/σ of the Gaussian that takes up the whole limit.
WHOLE = 1 / gaussian_sigma(epsilon=EPSILON, delta=DELTA)


def normal(ratio):
    return Gaussian(sigma=1 / ratio, sensitivity=1.0, neighbours=NEIGHBOURS)


def laplace(epsilon):
    return Laplace(scale=1 / epsilon, sensitivity=1.0, neighbours=NEIGHBOURS)


# B is looked at. A and B take up the limit; so do B and C.
B = normal(0.08 * WHOLE)
C = normal(math.sqrt(1 - 0.08**2) * WHOLE * (1 - 1e-9))
A = laplace(
    optimize.brentq(
        lambda a: tight([(laplace(a), 1), (B, 1)], delta=DELTA) - EPSILON * (1 - 1e-7), 0.5, 0.9999
    )
)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.db")
    made.create("clinic", epsilon=EPSILON, delta=DELTA)
    return made


def reserve(ledger, mechanism, analyst=None):
    return ledger.account("clinic", analyst).reserve(receipt(mechanism), delta=DELTA)


def true_delta(options):
    """Return δ(ε) if, at each loss of B, the best of the options is taken; of pairs or single."""
    losses = B.spread**2 / 2 + B.spread * np.linspace(-12, 12, 24_001)
    density = stats.norm.pdf(losses, B.spread**2 / 2, B.spread)
    best = np.max([option(EPSILON - losses) for option in options], axis=0)
    return integrate.trapezoid(density * best, losses)


def largest_accepted(ledger, kind, high):
    """Return the largest release of a kind that a ledger lets through now."""

    def fits(size):
        try:
            ledger.check("clinic", [(kind(size), 1)], unit="row", delta=DELTA)
        except BudgetExceeded:
            return False
        return True

    low = 0.0
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return kind(low) if low else None


def test_the_two_curves_cross():
    """Else the tests below would show nothing: whoever could choose between A and C would win."""
    assert true_delta([A.hockey_stick]) <= DELTA
    assert true_delta([C.hockey_stick]) <= DELTA
    assert true_delta([A.hockey_stick, C.hockey_stick]) > 1.9 * DELTA


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*keeps counting")
def test_what_is_voided_after_looking_makes_no_room(ledger):
    first = reserve(ledger, A)
    reserve(ledger, B).draw()  # and B is looked at
    either = [A.hockey_stick]  # A may still be drawn
    first.void()
    with pytest.raises(BudgetExceeded):
        reserve(ledger, C)
    for kind in (normal, laplace):
        largest = largest_accepted(ledger, kind, 1.0)
        either += [] if largest is None else [largest.hockey_stick]
    assert 0.9 * DELTA < true_delta(either) <= DELTA


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*keeps counting")
def test_nor_does_it_where_the_limit_has_room_for_more(ledger):
    """A is smaller here: there is room for a third release, whether A is drawn or voided."""
    smaller = laplace(0.6)
    first = reserve(ledger, smaller)
    reserve(ledger, B).draw()
    with_first = largest_accepted(ledger, normal, 1.0)
    first.void()
    without_first = largest_accepted(ledger, normal, 1.0)
    assert without_first == with_first

    def both(epsilons):
        """The exact hockey stick of A and the third release together."""
        ratio = with_first.spread
        at, weights = np.polynomial.hermite_e.hermegauss(201)
        losses = ratio**2 / 2 + ratio * at
        each = smaller.hockey_stick(epsilons[:, None] - losses)
        return each @ weights / math.sqrt(2 * math.pi)

    assert DELTA / 2 < true_delta([both, without_first.hockey_stick]) <= DELTA


def test_what_is_voided_before_anything_was_drawn_makes_room(ledger):
    reserve(ledger, A).void()
    reserve(ledger, B).draw()
    reserve(ledger, C).draw()
    assert true_delta([C.hockey_stick]) <= DELTA


@pytest.mark.filterwarnings("ignore:.*keeps counting")
@pytest.mark.parametrize("who_is_looked_at", ["eve", "bob", None])
def test_an_analyst_who_looks_gains_nothing_either(ledger, who_is_looked_at):
    """His limit is like the data set's of above, and the data set has room for everything."""
    ledger.create("large", epsilon=50.0, delta=1e-3)
    ledger.limit_analyst("large", "eve", epsilon=EPSILON, delta=DELTA)

    def ask(mechanism, analyst="eve"):
        return ledger.account("large", analyst).reserve(receipt(mechanism), delta=DELTA)

    first = ask(A)
    ask(B, who_is_looked_at).draw()
    first.void()
    with pytest.raises(BudgetExceeded, match="analyst 'eve'"):
        ask(C)
