"""As `test_crashes`, under a server that is killed, too."""

import pytest
from crowds import crowd

from discreet.ledger import Ledger, State


@pytest.fixture
def under(cluster, database):
    """Return a ledger, and what kills its server and starts it again."""

    def restart():
        cluster.kill()
        cluster.start()

    return Ledger(database), restart


def test_some_processes_some_kills_and_a_restart(under, tmp_path):
    ledger, restart = under
    options = {"epsilon": 0.3, "builds": 10, "seed": 1, "life": 0.4}
    made = crowd(ledger, tmp_path, **options, restart=restart, restarts=1)
    made.run(processes=2, kills=4)
    made.check()


@pytest.mark.slow
def test_eight_processes_two_hundred_kills_and_twenty_restarts(under, tmp_path):
    ledger, restart = under
    options = {"epsilon": 0.12, "builds": 50, "seed": 2, "life": 1.0}
    made = crowd(ledger, tmp_path, **options, restart=restart, restarts=20)
    made.run(processes=8, kills=200)
    files = made.check()
    # The kills fell on every part of a build's life, and the limit was reached in the end.
    states = [each.state for each in made.seen.values()]
    assert State.RESERVED in states
    assert states.count(State.SPENT) + states.count(State.RELEASED) > len(files)
    assert made.ledger.statement("clinic").left < 0.15
