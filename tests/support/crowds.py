"""Processes that build under one ledger, and are killed at any moment."""

import os
import pathlib
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ledgers import build

import discreet
from discreet.errors import BudgetExceeded, LedgerError
from discreet.ledger import Ledger, State

LIMIT, DELTA = 2.0, 1e-5
LOOK_EVERY = 5


@dataclass
class Crowd:
    """Processes that build and are killed, and what their ledger has said so far.

    Attributes:
        ledger: that all of them ask.
        folder: where releases go.
        epsilon: of each build.
        builds: how many a process makes, if it is left alone.
        seen: the spends of the ledger, as they were last.
        kills: how many there were.
        life: the longest, long enough for some builds, so that kills fall on all their moments.
        restart: kills the server of the ledger and starts it again, if it has one.
        restarts: how often that is done.
    """

    ledger: Ledger
    folder: pathlib.Path
    epsilon: float
    builds: int
    random: random.Random
    seen: dict = field(default_factory=dict)
    kills: int = 0
    life: float = 0.15
    restart: Callable[[], None] | None = None
    restarts: int = 0

    def start(self, number):
        """Return a new process, and when it is to be killed."""
        child = os.fork()
        if child:
            return child, time.monotonic() + self.random.uniform(0, self.life)
        code = 1
        try:
            code = self.work(number)
        finally:
            os._exit(code)

    def work(self, number):
        for index in range(self.builds):
            try:
                memory = build(self.ledger, self.epsilon, analyst=f"process {number}")
            except BudgetExceeded:  # it goes on asking, and may be killed while it does
                continue
            except LedgerError:  # the server is away
                if self.restart is None:
                    raise
                time.sleep(0.05)
                continue
            path = self.folder / f"{number}-{index}.safetensors"
            memory.save(path)
            try:
                self.ledger.released(memory, path)
            except LedgerError:
                if self.restart is None:
                    raise
        return 0

    def look(self):
        """Check that all that was ever in the ledger still is, and went no step back."""
        now = {each.id: each for each in self.ledger.statement("clinic").spends}
        for name, before in self.seen.items():
            assert now[name].receipt == before.receipt
            assert list(State).index(now[name].state) >= list(State).index(before.state)
        self.seen = now

    def run(self, processes, kills):
        """Keep so many processes alive until so many were killed."""
        alive, started = {}, 0
        while self.kills < kills:
            while len(alive) < processes:
                child, end = self.start(started)
                alive[child], started = end, started + 1
            time.sleep(max(min(alive.values()) - time.monotonic(), 0))
            child = min(alive, key=alive.get)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            assert not (os.WIFEXITED(status) and os.WEXITSTATUS(status)), "a process failed"
            del alive[child]
            if not os.WIFSIGNALED(status):  # it had come to its end
                continue
            self.kills += 1
            if self.restarts and self.kills % (kills // self.restarts) == 0:
                self.restart()
            if self.kills % LOOK_EVERY == 0:
                self.look()
        for child in alive:  # these may end in peace
            assert os.waitpid(child, 0)[1] == 0
        self.look()

    def check(self):
        files = {path.name: discreet.load(path) for path in self.folder.glob("*.safetensors")}
        assert len({each.receipt.id for each in files.values()}) == len(files) > 0
        for memory in files.values():
            spend = self.seen[memory.receipt.id]
            assert spend.receipt == memory.receipt
            assert spend.state in (State.SPENT, State.RELEASED)
        given_away = discreet.combine(list(files.values()), delta=DELTA)
        counted = [each.receipt for each in self.seen.values()]
        assert given_away.epsilon <= discreet.combine(counted, delta=DELTA).epsilon
        assert discreet.combine(counted, delta=DELTA).epsilon <= LIMIT * (1 + 1e-12)
        noted = {pathlib.Path(place).name for each in self.seen.values() for place in each.places}
        assert noted <= files.keys()
        return files


def crowd(ledger, folder, *, epsilon, builds, seed, **options):
    ledger.create("clinic", epsilon=LIMIT, delta=DELTA)
    build(ledger, 0.01)  # everything is loaded before the first fork
    return Crowd(ledger, folder, epsilon, builds, random.Random(seed), **options)
