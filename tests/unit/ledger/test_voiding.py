"""What is taken back makes room only if nobody had anything to look at meanwhile."""

import sqlite3
import warnings

import pytest
from ledgers import DELTA, build, gaussian, receipt

from discreet.accounting import Laplace, tight
from discreet.errors import BudgetExceeded, LedgerError
from discreet.ledger import Ledger, State
from discreet.privacy import Neighbours

KEEPS = r"keeps counting: another release of data set 'clinic' was drawn while it was reserved"


@pytest.fixture
def ledger(place):
    made = Ledger(place)
    made.create("clinic", epsilon=2.0, delta=1e-5)
    made.create("school", epsilon=2.0, delta=1e-5)
    return made


def reserve(ledger, what, *, dataset="clinic", analyst=None):
    return ledger.account(dataset, analyst).reserve(receipt(what), delta=DELTA)


def spent(ledger, dataset="clinic"):
    return ledger.statement(dataset).spent.epsilon


def test_what_was_open_while_another_was_drawn_keeps_counting_and_it_is_said(ledger):
    held = reserve(ledger, 0.5)
    reserve(ledger, 0.25).draw()
    before = spent(ledger)
    with pytest.warns(UserWarning, match=KEEPS) as caught:
        assert held.void() is True
    assert caught[0].filename == __file__
    assert spent(ledger) == before
    stated = ledger.statement("clinic")
    assert [(each.state, each.counts) for each in stated.spends] == [
        (State.VOIDED, True),
        (State.SPENT, True),
    ]
    assert [each["counts"] for each in stated.to_dict()["spends"]] == [True, True]
    assert "all of 2 releases" in stated.spent.scope
    with pytest.raises(BudgetExceeded, match="it is voided"):
        held.draw()


@pytest.mark.parametrize("meanwhile", ["reserved", "voided", "drawn elsewhere"])
def test_what_nobody_could_have_looked_at_changes_nothing(ledger, meanwhile):
    reserve(ledger, 0.25).draw()  # before it was reserved
    before = spent(ledger)
    held = reserve(ledger, 0.5)
    other = reserve(ledger, 0.1, dataset="school" if "elsewhere" in meanwhile else "clinic")
    {"reserved": str, "voided": other.void, "drawn elsewhere": other.draw}[meanwhile]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert held.void() is False
    assert not ledger.statement("clinic").spends[1].counts
    if meanwhile != "reserved":
        assert spent(ledger) == before
    reserve(ledger, 0.1).draw()  # and what is drawn later does not bring it back
    assert not ledger.statement("clinic").spends[1].counts


def test_what_was_counted_afterwards_was_drawn_too(ledger):
    held = reserve(ledger, 0.5)
    ledger.spend("clinic", receipt(0.25), delta=DELTA)
    with pytest.warns(UserWarning, match=KEEPS):
        assert held.void()


def test_a_first_release_that_keeps_counting_counts_exactly(ledger):
    """As what it is, and not as the Gaussian that would cover it."""
    law = Laplace(scale=1.0, sensitivity=1.0, neighbours=Neighbours.ADD_REMOVE)
    held, small = reserve(ledger, law), gaussian(0.2)
    reserve(ledger, small).draw()
    with pytest.warns(UserWarning, match=KEEPS):
        held.void()
    assert spent(ledger) == pytest.approx(tight([(law, 1), (small, 1)], delta=1e-5), rel=1e-9)


def test_it_keeps_counting_for_an_analyst_whoever_drew_the_other(ledger):
    ledger.limit_analyst("clinic", "eve", epsilon=0.6, delta=DELTA)
    held = reserve(ledger, 0.5, analyst="eve")
    reserve(ledger, 0.25, analyst="bob").draw()
    with pytest.warns(UserWarning, match=KEEPS):
        held.void()
    with pytest.raises(BudgetExceeded, match="analyst 'eve'"):
        reserve(ledger, 0.5, analyst="eve")
    own = ledger.statement("clinic", analyst="eve")
    assert own.spent.epsilon == pytest.approx(0.5)
    assert [each.counts for each in own.spends] == [True]


def test_the_order_is_in_the_file_and_not_in_the_clock(ledger, monkeypatch):
    for time in ("2030", "2020", "2010"):
        monkeypatch.setattr("discreet.ledger.store.now", lambda time=time: time)
        if time == "2030":
            held = reserve(ledger, 0.5)
        elif time == "2020":
            reserve(ledger, 0.25).draw()
        else:
            with pytest.warns(UserWarning, match=KEEPS):
                held.void()
    assert ledger.statement("clinic").spends[0].counts


def test_a_draw_that_fails_says_so_even_if_its_reservation_keeps_counting(ledger, monkeypatch):
    def fail(self, id_):
        monkeypatch.undo()
        reserve(ledger, 0.1).draw()
        raise LedgerError("the disk went away")

    monkeypatch.setattr(Ledger, "draw", fail)
    with pytest.raises(LedgerError, match="went away"):
        build(ledger, 1.0)  # warnings are errors here, and even so
    first, second = ledger.statement("clinic").spends
    assert (first.state, first.counts) == (State.VOIDED, True)
    assert second.state is State.SPENT


@pytest.mark.parametrize("place", ["file"], indirect=True)
def test_a_row_that_does_not_say_when_it_was_reserved_counts(ledger):
    """Whoever puts rows in by other means and leaves the order out gains nothing by it."""
    reserve(ledger, 0.25).draw()
    held = reserve(ledger, 0.5)
    with sqlite3.connect(ledger.path) as raw:
        raw.execute(
            "INSERT INTO spends (id, dataset, receipt, delta, square, tail, loss, at) "
            "SELECT 'other', dataset, replace(receipt, id, 'other'), delta, square, tail, loss, at "
            "FROM spends WHERE id = ?",
            (held.id,),
        )
    raw.close()
    with pytest.warns(UserWarning, match=KEEPS):
        assert ledger.void("other")
    assert not held.void()
