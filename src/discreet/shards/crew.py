"""Worker processes of this machine: they start early, do tasks, and are replaced if they die."""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import IO, Any, Self

from discreet.errors import DiscreetError
from discreet.memory.layout import Layout
from discreet.memory.settings import Settings
from discreet.shards.job import JobSecret

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


class Crew:
    """Processes that do the tasks of one job. To be closed: a context manager.

    They are started at once, and load what they need while the caller gets the job ready. They are
    sessions of their own, so that Ctrl-C is for this process alone; they end with it, whatever
    happens to it.
    """

    def __init__(self, count: int) -> None:
        self._briefing = b""
        self._workers = [_start() for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._workers)

    def brief(self, state: tuple[JobSecret, Settings[Layout]]) -> None:
        """Tell all workers, and those that take their place, what a copy of the job needs."""
        self._briefing = pickle.dumps(state)
        for place in range(len(self._workers)):
            self._tell(place, self._briefing)

    def results(self, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield what tasks return, in any order; raise what one of them raises.

        A worker that dies is replaced, and its task done again.
        """
        waiting = deque((task, 0) for task in tasks)  # and how many workers it has ended
        busy: dict[int, tuple[Task, int]] = {}
        while waiting or busy:
            for place in range(len(self._workers)):
                if waiting and place not in busy:
                    busy[place] = waiting.popleft()
                    self._tell(place, pickle.dumps(busy[place][0]))
            for place in self._answering(busy):
                task, deaths = busy.pop(place)
                try:
                    outcome = pickle.load(_stream(self._workers[place].stdout))  # noqa: S301 (ours)
                except (EOFError, pickle.UnpicklingError):  # it is dead
                    if deaths + 1 == _MOST_DEATHS:
                        raise DiscreetError(TOO_DEADLY) from None
                    self._replace(place)
                    waiting.appendleft((task, deaths + 1))
                    continue
                if isinstance(outcome, Exception):
                    raise outcome
                yield outcome

    def _answering(self, busy: Iterable[int]) -> list[int]:
        """Return the places of workers that are done, or dead; wait for the first."""
        places = {_stream(self._workers[place].stdout).fileno(): place for place in busy}
        return [places[ready] for ready in wait(list(places)) if isinstance(ready, int)]

    def _replace(self, place: int) -> None:
        _end([self._workers[place]])
        self._workers[place] = _start()
        self._tell(place, self._briefing)

    def _tell(self, place: int, message: bytes) -> None:
        """Send something to a worker. If it is dead, whoever waits for its answer will see."""
        stream = _stream(self._workers[place].stdin)
        with suppress(BrokenPipeError):
            stream.write(message)
            stream.flush()


def _start() -> "subprocess.Popen[bytes]":
    """Start a worker that can import what this process can, and nothing from where it stands."""
    warnings = [f"-W{option}" for option in sys.warnoptions]
    paths = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(  # noqa: S603 (Python itself)
        [sys.executable, "-P", *warnings, "-m", "discreet.shards.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **_ONE_THREAD, "PYTHONPATH": paths},
        start_new_session=True,
    )


def _end(workers: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Kill workers, and wait until they are gone."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        with suppress(BrokenPipeError):  # of what it was told and has not read
            _stream(worker.stdin).close()
        _stream(worker.stdout).close()
        worker.wait()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of a worker, all of which have one."""
    if stream is None:
        raise DiscreetError("Expected a worker to be told of its tasks.")
    return stream
