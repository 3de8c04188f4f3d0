"""Processes that are killed at any moment: no release goes uncounted, and no count is lost."""

import sqlite3

import pytest
from crowds import crowd

from discreet.ledger import Ledger, State


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.db")
    yield made
    raw = sqlite3.connect(made.path)
    assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()


def test_some_processes_and_some_kills(ledger, tmp_path):
    made = crowd(ledger, tmp_path, epsilon=0.3, builds=10, seed=1)
    made.run(processes=3, kills=10)
    made.check()


@pytest.mark.slow
def test_eight_processes_and_two_hundred_kills(ledger, tmp_path):
    made = crowd(ledger, tmp_path, epsilon=0.08, builds=50, seed=2)
    made.run(processes=8, kills=200)
    files = made.check()
    # The kills fell on every part of a build's life, and the limit was reached in the end.
    states = [each.state for each in made.seen.values()]
    assert State.RESERVED in states
    assert states.count(State.SPENT) + states.count(State.RELEASED) > len(files)
    assert made.ledger.statement("clinic").left < 0.15
