"""Worker processes of this machine: they start early, do tasks, and are replaced if they die.

This file has both ends: `WorkerPool` runs in the process of the builder, `main` in that of a
worker. A worker reads all it needs from its standard input, and the key of the job, too: nothing of
that is on a command line, in the environment or in a file. It writes results to a pipe of their
own, whose number is its only argument.

Why not a pool of the standard library or loky? If one process dies, their pools are broken as a
whole, and all tasks have to start again. These workers also need no `if __name__ == "__main__"`,
load while the builder looks at files, and Ctrl-C does not interrupt them.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from queue import SimpleQueue
from typing import Any, BinaryIO, Self, cast

from discreet.errors import DiscreetError
from discreet.shards.job import Job, JobSecret
from discreet.shards.tasks import guarded
from discreet.sums.settings import Settings

# What a worker does, and what it is given besides its copy of the job.
Task = tuple[Callable[..., Any], tuple[Any, ...]]

# A task that ended so many workers ends the build.
_MOST_DEATHS = 4
TOO_DEADLY = (
    "Expected workers that stay alive, and one task has ended several of them. Is there enough "
    "memory?"
)

# Each worker computes on one processor.
_ONE_THREAD = dict.fromkeys(
    ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class WorkerPool:
    """Processes that do the tasks of one job. To be closed: a context manager.

    They are started at once, and load what they need while the caller gets the job ready. They are
    sessions of their own, so that Ctrl-C is for this process alone; they end with it, whatever
    happens to it.
    """

    def __init__(self, count: int) -> None:
        self._briefing = b""
        self._workers = [_Worker.start() for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def brief(self, state: tuple[JobSecret, Settings[Any]]) -> None:
        """Tell all workers, and those that take their place, what a copy of the job needs."""
        self._briefing = pickle.dumps(state)
        for worker in self._workers:
            worker.tell(self._briefing)

    def results(self, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield what tasks return, in any order; raise what one of them raises.

        A worker that dies is replaced, and its task done again. Results that nobody waits for any
        more end the pool: they would be taken for those of other tasks.
        """
        if not self._workers:
            raise DiscreetError("Expected workers: they have been sent home.")
        waiting = deque((task, 0) for task in tasks)  # and how many workers it has ended
        busy: dict[int, tuple[Task, int]] = {}
        try:
            while waiting or busy:
                for place, worker in enumerate(self._workers):
                    if waiting and place not in busy:
                        busy[place] = waiting.popleft()
                        worker.tell(pickle.dumps(busy[place][0]))
                for place in self._answering(busy):
                    task, deaths = busy.pop(place)
                    try:
                        outcome = pickle.load(self._workers[place].results)  # noqa: S301 (ours)
                    except (EOFError, pickle.UnpicklingError):  # it is dead
                        if deaths + 1 == _MOST_DEATHS:
                            raise DiscreetError(TOO_DEADLY) from None
                        self._replace(place)
                        waiting.appendleft((task, deaths + 1))
                        continue
                    if isinstance(outcome, Exception):
                        raise outcome
                    yield outcome
        finally:
            if busy:
                self.__exit__()

    def _answering(self, busy: Iterable[int]) -> list[int]:
        """Return the places of workers that are done, or dead; wait for the first."""
        places = {self._workers[place].results.fileno(): place for place in busy}
        return [places[ready] for ready in wait(list(places)) if isinstance(ready, int)]

    def _replace(self, place: int) -> None:
        self._workers[place].end()
        self._workers[place] = _Worker.start()
        self._workers[place].tell(self._briefing)


@dataclass(frozen=True, eq=False)
class _Worker:
    """A process, what it is told on, and what it answers on: a pipe that nothing is printed to."""

    process: "subprocess.Popen[bytes]"
    orders: BinaryIO
    results: BinaryIO

    @classmethod
    def start(cls) -> "_Worker":
        """Start a worker that can import what this process can."""
        warnings = [f"-W{option}" for option in sys.warnoptions]
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        ours, theirs = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603 (Python itself)
                [sys.executable, "-P", *warnings, "-m", "discreet.shards.pool", str(theirs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs],
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": paths},
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        return cls(process, cast("BinaryIO", process.stdin), os.fdopen(ours, "rb"))

    def tell(self, message: bytes) -> None:
        """Send something. If the process is dead, whoever waits for its answer will see."""
        with suppress(BrokenPipeError):
            self.orders.write(message)
            self.orders.flush()

    def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        self.process.kill()
        with suppress(BrokenPipeError):  # of what it was told and has not read
            self.orders.close()
        self.results.close()
        self.process.wait()


def main() -> None:
    """Do tasks until there are no more, or whoever gave them is gone."""
    with os.fdopen(int(sys.argv[1]), "wb") as results:
        told: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_listen, args=(sys.stdin.buffer, told), daemon=True).start()
        job = Job.copy_of(*told.get())
        while True:
            work, given = told.get()
            pickle.dump(_outcome(work, job, given), results)
            results.flush()


def _listen(messages: BinaryIO, told: "SimpleQueue[Any]") -> None:
    """Take in what the builder says. When it says no more, end, in the middle of a task, too."""
    try:
        while True:
            told.put(pickle.load(messages))  # noqa: S301 (from the process that started this one)
    finally:
        os._exit(0)


def _outcome(work: Any, job: Job, given: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """Return what a task returns, or the exception that it raises, fit to travel."""
    try:
        return guarded(work, job, *given)
    except Exception as error:  # noqa: BLE001 (all of them travel)
        return error


if __name__ == "__main__":
    main()
