"""Any interleaving of reservations, draws and voids is counted as a plain rule says."""

import tempfile
import warnings
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledgers import DELTA, receipt

import discreet
from discreet.accounting import Receipt
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger, Reservation, State

LIMITS = {"clinic": 2.0, "school": 0.9}
OWN = {"eve": 1.2}
LIMIT_DELTA = 1e-5

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["reserve", "reserve", "spend"]),
            st.sampled_from(sorted(LIMITS)),
            st.sampled_from([None, "eve", "bob"]),
            st.sampled_from([0.2, 0.5, 0.8]),
        ),
        st.tuples(st.sampled_from(["draw", "void"]), st.integers(0, 9)),
    ),
    max_size=16,
)


@dataclass
class Known:
    """What the rule knows of a spend: when each thing happened to it, in steps."""

    receipt: Receipt
    dataset: str
    analyst: str | None
    reserved: int
    reservation: Reservation | None = None
    drawn: int | None = None
    voided: int | None = None


def counts(spend, spends):
    """The rule: what was voided counts if anything of its data set was drawn while it was open."""
    return spend.voided is None or any(
        spend.reserved < other.drawn < spend.voided
        for other in spends
        if other.dataset == spend.dataset and other.drawn is not None
    )


def total(spends):
    """What receipts come to: Gaussians add up exactly, in any order."""
    return discreet.combine(spends, delta=LIMIT_DELTA).epsilon if spends else 0.0


def fits(spends, new, dataset, analyst):
    """The rule for one more: the data set's limit, and the analyst's own."""
    counted = [each for each in spends if counts(each, spends) and each.dataset == dataset]
    own = [each for each in counted if each.analyst == analyst]
    limits = [(LIMITS[dataset], counted)]
    if dataset == "clinic" and analyst in OWN:
        limits.append((OWN[analyst], own))
    return all(total([*(each.receipt for each in some), new]) <= most for most, some in limits)


def compare(ledger, spends):
    """The ledger says of every spend what the rule says, and of all together."""
    for dataset in LIMITS:
        known = [each for each in spends if each.dataset == dataset]
        stated = ledger.statement(dataset)
        assert [each.id for each in stated.spends] == [each.receipt.id for each in known]
        assert [each.counts for each in stated.spends] == [counts(each, spends) for each in known]
        for each, wanted in zip(stated.spends, known, strict=True):
            assert (each.state is State.VOIDED) == (wanted.voided is not None)
        counted = [each.receipt for each in known if counts(each, spends)]
        assert stated.spent.epsilon == pytest.approx(total(counted), rel=1e-9)
    mine = [each for each in spends if (each.dataset, each.analyst) == ("clinic", "eve")]
    counted = [each.receipt for each in mine if counts(each, spends)]
    stated = ledger.statement("clinic", analyst="eve")
    assert stated.spent.epsilon == pytest.approx(total(counted), rel=1e-9)


@settings(max_examples=60)
@given(steps=STEPS)
def test_every_interleaving_is_counted_by_the_rule(steps):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*keeps counting")
        ledger = Ledger(f"{folder}/budget.db")
        for name, epsilon in LIMITS.items():
            ledger.create(name, epsilon=epsilon, delta=LIMIT_DELTA)
        for name, epsilon in OWN.items():
            ledger.limit_analyst("clinic", name, epsilon=epsilon, delta=LIMIT_DELTA)
        spends = []
        for now, (step, *given_) in enumerate(steps):
            take(ledger, spends, now, step, *given_)
        compare(ledger, spends)


def take(ledger, spends, now, step, *given_):
    """Take one step, in the ledger and by the rule."""
    if step in ("draw", "void"):
        open_ = [each for each in spends if each.drawn is None and each.voided is None]
        if open_:
            chosen = open_[given_[0] % len(open_)]
            getattr(chosen.reservation, step)()
            setattr(chosen, {"draw": "drawn", "void": "voided"}[step], now)
        return
    dataset, analyst, epsilon = given_
    new = Known(receipt(epsilon), dataset, analyst, now)
    room = fits(spends, new.receipt, dataset, analyst)
    try:
        if step == "reserve":
            account = ledger.account(dataset, analyst)
            new.reservation = account.reserve(new.receipt, delta=DELTA)
        else:  # it was made elsewhere: drawn when it is counted, whether it fits or not
            new.drawn = now
            ledger.spend(dataset, new.receipt, delta=DELTA, analyst=analyst)
    except BudgetExceeded:
        assert not room
        if step == "reserve":
            return
    else:
        assert room
    spends.append(new)
