"""What a ledger counts, refuses and says."""

import concurrent.futures
import copy
import multiprocessing
import pickle
import re
import sqlite3

import pytest
from ledgers import DELTA, build, gaussian, receipt

import discreet
from discreet.accounting import TruncatedLaplace
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.ledger import Ledger, State, limits

LARGEST = re.compile(r"at most ε = ([\d.e-]+) still fits")


# What opens the file by other means; `test_server.py` does the same with a database.
IN_A_FILE = pytest.mark.parametrize("place", ["file"], indirect=True)


@pytest.fixture
def ledger(place):
    made = Ledger(place)
    made.create("clinic", epsilon=2.0, delta=1e-5)
    return made


def count(ledger, epsilon, *, dataset="clinic", analyst=None):
    made = receipt(epsilon)
    reservation = ledger.account(dataset, analyst).reserve(made, delta=DELTA)
    reservation.draw()
    return made


def test_nothing_is_opened_before_it_is_needed(tmp_path):
    made = Ledger(tmp_path / "nothing" / "budget.db")
    assert list(tmp_path.iterdir()) == []
    assert made == pickle.loads(pickle.dumps(made)) == copy.copy(made)
    # A pickled Path loads neither in every version of Python nor on every system.
    assert all(b"pathlib" not in pickle.dumps(made, each) for each in range(6))


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Ledger("budget.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    made.create("clinic", epsilon=1.0, delta=1e-6)
    assert (tmp_path / "budget.db").exists()


def test_spends_add_up_as_combine_says(ledger):
    made = [count(ledger, 0.5) for _ in range(3)]
    stated = ledger.statement("clinic")
    assert stated.spent.epsilon == pytest.approx(discreet.combine(made, delta=1e-5).epsilon)
    assert [each.id for each in stated.spends] == [each.id for each in made]
    assert {each.state for each in stated.spends} == {State.SPENT}
    assert stated.spends[0].receipt == made[0]
    assert stated.private
    assert "ε = " in str(stated)


def test_what_is_said_to_fit_can_be_asked_for(ledger):
    for _ in range(6):
        with pytest.raises(BudgetExceeded) as refused:
            count(ledger, 2.5)
        assert "'clinic'" in str(refused.value)
        assert "ε = 2.5" in str(refused.value)
        found = LARGEST.search(str(refused.value))
        if not found:
            break
        left = float(found[1])
        with pytest.raises(BudgetExceeded):
            count(ledger, left * 1.001 + 1e-5)
        count(ledger, left / 2)
        with pytest.raises(BudgetExceeded) as refused:
            count(ledger, 2.5)
        count(ledger, float(LARGEST.search(str(refused.value))[1]))
    assert ledger.statement("clinic").spent.epsilon <= 2.0 * (1 + 1e-12)


def test_what_a_statement_has_left_can_be_asked_for(ledger):
    count(ledger, 1.0)
    left = ledger.statement("clinic").left
    shown = float(re.search(r"ε = (\S+) is left", str(ledger.statement("clinic")))[1])
    assert 0.999 * left <= shown <= left
    made = receipt(gaussian(shown, delta=1e-5))
    ledger.account("clinic").reserve(made, delta=1e-5)
    assert ledger.statement("clinic").left < 0.1


def test_when_nothing_fits_that_is_said(ledger):
    made = receipt(gaussian(2.0, delta=1e-5))
    ledger.account("clinic").reserve(made, delta=1e-5)
    with pytest.raises(BudgetExceeded, match="nothing fits any more"):
        count(ledger, 0.1)
    assert ledger.statement("clinic").left == 0
    assert "nothing is left" in str(ledger.statement("clinic"))


def test_an_analyst_has_a_limit_of_his_own(ledger):
    ledger.limit_analyst("clinic", "eve", epsilon=0.5, delta=1e-6)
    count(ledger, 0.3, analyst="eve")
    with pytest.raises(BudgetExceeded, match="analyst 'eve' of data set 'clinic'"):
        count(ledger, 0.5, analyst="eve")
    count(ledger, 0.5, analyst="bob")
    count(ledger, 0.5)
    own = ledger.statement("clinic", analyst="eve")
    assert own.limit.epsilon == 0.5
    assert len(own.spends) == 1
    assert len(ledger.statement("clinic").spends) == 3
    assert ledger.statement("clinic").limits["eve"].epsilon == 0.5
    with pytest.raises(InvalidInput, match="no limit yet"):
        ledger.limit_analyst("clinic", "eve", epsilon=5.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="limit of his own"):
        ledger.statement("clinic", analyst="bob")
    # The whole data set's limit binds him, too.
    ledger.limit_analyst("clinic", "rich", epsilon=50.0, delta=1e-5)
    with pytest.raises(BudgetExceeded, match="that data set 'clinic'"):
        count(ledger, 3.0, analyst="rich")


def test_other_neighbours_and_units_are_refused(ledger):
    other = receipt(gaussian(0.1, neighbours="replace"))
    with pytest.raises(InvalidInput, match="one row under 'replace'"):
        ledger.account("clinic").reserve(other, delta=DELTA)
    with pytest.raises(InvalidInput, match="one record under 'add_remove'"):
        ledger.account("clinic").reserve(receipt(0.1, unit="record"), delta=DELTA)
    with pytest.raises(InvalidInput, match="do not add up"):
        ledger.spend("clinic", other, delta=DELTA)
    assert ledger.statement("clinic").spends == ()


def test_names(ledger):
    with pytest.raises(InvalidInput, match="name='clinic' to be new"):
        ledger.create("clinic", epsilon=9.0, delta=1e-5)
    with pytest.raises(InvalidInput, match="dataset='other' to be in the ledger"):
        ledger.statement("other")
    ledger.create("other", epsilon=1.0, delta=1e-6, neighbours="replace", unit="record")
    assert ledger.datasets() == ["clinic", "other"]
    for wrong in (
        {"name": " "},
        {"unit": "person"},
        {"epsilon": 0},
        {"delta": 1},
        {"name": "a\nb"},
    ):
        with pytest.raises(InvalidInput):
            ledger.create(**{"name": "new", "epsilon": 1.0, "delta": 1e-6} | wrong)


def test_a_release_counts_once(ledger):
    made = count(ledger, 0.5)
    with pytest.raises(InvalidInput, match="in it already, for data set 'clinic'"):
        ledger.spend("clinic", made, delta=DELTA)


def test_what_was_made_elsewhere_is_counted_even_beyond_the_limit(ledger):
    ledger.spend("clinic", receipt(1.0), delta=DELTA, analyst="eve")
    with pytest.raises(BudgetExceeded, match="counted all the same"):
        ledger.spend("clinic", receipt(3.0), delta=DELTA)
    stated = ledger.statement("clinic")
    assert len(stated.spends) == 2
    assert stated.spent.epsilon > 2.0
    with pytest.raises(BudgetExceeded, match="nothing fits"):
        count(ledger, 0.1)
    with pytest.raises(InvalidInput, match="delta"):
        ledger.spend("clinic", receipt(0.1))
    with pytest.raises(InvalidInput, match="a release, or a receipt"):
        ledger.spend("clinic", "memory.safetensors", delta=DELTA)


def test_a_memory_from_a_file_is_counted(ledger, tmp_path):
    memory = build(None, 1.0, dataset=None)
    memory.save(tmp_path / "it.safetensors")
    ledger.spend("clinic", discreet.load(tmp_path / "it.safetensors"))
    [spend] = ledger.statement("clinic").spends
    assert (spend.id, spend.delta) == (memory.receipt.id, DELTA)
    assert spend.guarantee.epsilon == pytest.approx(1.0)


def test_test_noise_is_counted_and_marked(ledger):
    ledger.spend("clinic", receipt(0.5), delta=DELTA)
    ledger.spend("clinic", receipt(0.5, private=False), delta=DELTA)
    stated = ledger.statement("clinic")
    assert not stated.private
    assert str(stated).startswith("NOT PRIVATE: ")
    assert "NOT PRIVATE" in str(stated.spent)
    assert not stated.to_dict()["private"]


def test_states_follow_events(ledger):
    made = receipt(0.5)
    reservation = ledger.account("clinic").reserve(made, delta=DELTA)
    assert ledger.statement("clinic").spends[0].state is State.RESERVED
    with pytest.raises(InvalidInput, match="to be spent, and it is reserved"):
        ledger.released(made, "it.safetensors")
    reservation.draw()
    ledger.released(made, "it.safetensors")
    ledger.released(made, "copy.safetensors")
    [spend] = ledger.statement("clinic").spends
    assert spend.state is State.RELEASED
    assert spend.places == ("it.safetensors", "copy.safetensors")


def test_only_what_was_never_drawn_can_be_voided(ledger):
    before = ledger.statement("clinic").left
    made = receipt(1.0)
    reservation = ledger.account("clinic").reserve(made, delta=DELTA)
    assert ledger.statement("clinic").spent.epsilon > 0
    ledger.void(made.id)
    stated = ledger.statement("clinic")
    assert (stated.spent.epsilon, stated.left) == (0, before)
    assert stated.spends[0].state is State.VOIDED
    with pytest.raises(BudgetExceeded, match="it is voided: its noise is not drawn"):
        reservation.draw()
    drawn = ledger.account("clinic").reserve(receipt(1.0), delta=DELTA)
    drawn.draw()
    for wrong in (drawn.void, reservation.void):
        with pytest.raises(InvalidInput, match="only what was never drawn"):
            wrong()
    with pytest.raises(BudgetExceeded, match="it is spent"):
        drawn.draw()
    with pytest.raises(InvalidInput, match="in the ledger"):
        ledger.void("of no release")


def test_draw_and_void_never_both_succeed(ledger):
    def tried(step):
        try:
            step()
        except discreet.DiscreetError:
            return False
        return True

    outcomes = set()
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for _ in range(12):
            held = ledger.account("clinic").reserve(receipt(1e-3), delta=DELTA)
            steps = [held.draw, held.void, held.draw, held.void]
            done = list(threads.map(tried, steps))
            assert sum(done) == 1
            drew = done[0] or done[2]
            state = ledger.statement("clinic").spends[-1].state
            assert state is (State.SPENT if drew else State.VOIDED)
            outcomes.add(drew)


def test_many_threads_never_overspend(ledger):
    def ask(_):
        try:
            return count(ledger, 0.4)
        except BudgetExceeded:
            return None

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        made = [each for each in threads.map(ask, range(24)) if each is not None]
    assert len(ledger.statement("clinic").spends) == len(made)
    assert discreet.combine(made, delta=1e-5).epsilon <= 2.0 * (1 + 1e-12)
    with pytest.raises(BudgetExceeded):
        count(ledger, 0.4)


def test_who_asks_between_check_and_count_does_not_get_the_same_rest(ledger, monkeypatch):
    """Each alone would fit: who comes second waits until the first is written down."""
    asked = []

    def slowly(bounds, mechanisms):
        broken = limits.broken_by(bounds, mechanisms)
        if not asked:
            asked.append(second.submit(count, ledger, 1.9))
            concurrent.futures.wait(asked, timeout=1.0)  # it has to wait for the first
        return broken

    monkeypatch.setattr("discreet.ledger.ledger.broken_by", slowly)
    with concurrent.futures.ThreadPoolExecutor(1) as second:
        first = count(ledger, 1.9)
    with pytest.raises(BudgetExceeded):
        asked[0].result()
    assert [each.id for each in ledger.statement("clinic").spends] == [first.id]


def _count_in_a_child(ledger):
    count(ledger, 0.1)


def test_a_ledger_survives_a_fork(ledger):
    count(ledger, 0.1)
    child = multiprocessing.get_context("fork").Process(target=_count_in_a_child, args=(ledger,))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert len(ledger.statement("clinic").spends) == 2


@IN_A_FILE
@pytest.mark.parametrize("table", ["datasets", "limits", "spends", "events"])
def test_no_row_is_ever_changed_or_deleted(ledger, table):
    ledger.limit_analyst("clinic", "eve", epsilon=1.0, delta=1e-6)
    count(ledger, 0.1)
    with sqlite3.connect(ledger.path) as raw:
        columns = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
        for attempt in (
            *(f"UPDATE {table} SET {column} = {column}" for column in columns),
            f"DELETE FROM {table}",
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
                raw.execute(attempt)
    raw.close()


@IN_A_FILE
def test_the_database_itself_refuses_a_void_after_a_draw(ledger):
    made = count(ledger, 0.1)
    with sqlite3.connect(ledger.path) as raw, pytest.raises(sqlite3.IntegrityError):
        raw.execute("INSERT INTO events VALUES (NULL, ?, 'voided', '', '')", (made.id,))
    raw.close()


def test_structures_with_tails_add_up(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("line", epsilon=1.0, delta=1e-5, neighbours="replace")
    law = TruncatedLaplace(sensitivity=64, epsilon=0.3, delta=1e-8, neighbours="replace")
    for _ in range(3):
        ledger.account("line").reserve(receipt(law), delta=DELTA)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.account("line").reserve(receipt(law), delta=DELTA)
    left = float(LARGEST.search(str(refused.value))[1])
    smaller = TruncatedLaplace(sensitivity=64, epsilon=left, delta=1e-8, neighbours="replace")
    ledger.account("line").reserve(receipt(smaller), delta=DELTA)
    stated = ledger.statement("line")
    assert stated.spent.epsilon <= 1.0 + 1e-12
    made = [each.receipt for each in stated.spends]
    assert discreet.combine(made, delta=1e-5).epsilon <= stated.spent.epsilon * (1 + 1e-9)
