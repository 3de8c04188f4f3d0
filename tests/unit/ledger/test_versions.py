"""Ledgers of version 1, which have not kept what was drawn before a reservation."""

import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import pytest
from ledgers import DELTA, receipt

from discreet.errors import InvalidInput
from discreet.ledger import Ledger, State, store

# As an earlier discreet made it: four data sets, named after what was done.
VERSION_1 = pathlib.Path(__file__).with_name("version_1.sql")
NOBODY = 65534


def version_of(path):
    raw = sqlite3.connect(path)
    [version] = raw.execute("PRAGMA user_version").fetchone()
    raw.close()
    return version


def write_version_1(path):
    raw = sqlite3.connect(path)
    raw.executescript(VERSION_1.read_text())
    raw.execute(f"PRAGMA application_id = {store.APPLICATION_ID}")
    raw.execute("PRAGMA user_version = 1")
    raw.execute("PRAGMA journal_mode = WAL")
    raw.close()


@pytest.fixture
def ledger(tmp_path):
    write_version_1(tmp_path / "budget.db")
    return Ledger(tmp_path / "budget.db")


def states(ledger, dataset):
    return [(each.state, each.counts) for each in ledger.statement(dataset).spends]


DRAWN = (State.SPENT, True)


def check_all(ledger):
    """Every void counts that may have come after a look, and no other."""
    assert states(ledger, "voided after a draw") == [(State.VOIDED, True), DRAWN]
    assert states(ledger, "voided before any draw") == [(State.VOIDED, False), DRAWN]
    # Whether that draw came before the reservation, the file does not say.
    assert states(ledger, "voided after an earlier draw") == [DRAWN, (State.VOIDED, True)]
    assert states(ledger, "still reserved") == [(State.RESERVED, True), DRAWN]
    for dataset, least in (("voided after a draw", 0.45), ("voided before any draw", 0.2)):
        assert least < ledger.statement(dataset).spent.epsilon < least + 0.1
    own = ledger.statement("voided after a draw", analyst="eve")
    [held] = own.spends
    assert own.spent.epsilon == pytest.approx(held.receipt.guarantee(delta=1e-5).epsilon)


def test_reading_leaves_it_as_it_is(ledger):
    check_all(ledger)
    mechanisms = receipt(0.1).mechanisms
    ledger.check("still reserved", mechanisms, unit="row", delta=DELTA)
    assert version_of(ledger.path) == 1


def test_the_first_write_makes_it_version_2_and_nothing_else_changes(ledger):
    before = {name: ledger.statement(name).to_dict() for name in ledger.datasets()}
    ledger.create("new", epsilon=1.0, delta=1e-6)
    assert version_of(ledger.path) == store.VERSION == 2
    check_all(ledger)
    assert before == {name: ledger.statement(name).to_dict() for name in before}


def test_what_is_reserved_from_then_on_is_judged_exactly(ledger):
    account = ledger.account("voided after an earlier draw")
    assert account.reserve(receipt(0.1), delta=DELTA).void() is False
    held = account.reserve(receipt(0.1), delta=DELTA)
    account.reserve(receipt(0.1), delta=DELTA).draw()
    with pytest.warns(UserWarning, match="keeps counting"):
        assert held.void() is True


def test_what_was_still_reserved_is_voided_as_if_it_had_been_there_from_the_start(ledger):
    [held, _] = ledger.statement("still reserved").spends
    with pytest.warns(UserWarning, match="keeps counting"):
        assert ledger.void(held.id) is True


def test_a_write_that_fails_upgrades_nothing(ledger):
    with pytest.raises(InvalidInput, match="to be new to the ledger"):
        ledger.create("still reserved", epsilon=1.0, delta=1e-6)
    assert version_of(ledger.path) == 1
    check_all(ledger)


def test_an_upgraded_ledger_is_only_added_to(ledger):
    ledger.create("new", epsilon=1.0, delta=1e-6)
    raw = sqlite3.connect(ledger.path)
    for attempt in ("UPDATE spends SET events_before = 9", "DELETE FROM spends"):
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            raw.execute(attempt)
    raw.close()


def test_it_is_read_by_somebody_who_may_not_write():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_version_1(folder / "budget.db")
        (folder / "budget.db").chmod(0o444)
        folder.chmod(0o555)
        code = f"""
import os
import discreet.cli.files
if os.getuid() == 0: os.setuid({NOBODY})
from discreet.ledger import Ledger
ledger = Ledger({str(folder / "budget.db")!r})
print([each.counts for name in ledger.datasets() for each in ledger.statement(name).spends])
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        folder.chmod(0o755)
    assert done.stdout.strip() == str([True] * 6 + [False, True]), done.stderr
