"""A worker process: reads tasks, does one after the other, and writes what they return.

`Crew` starts it and tells it all it needs on its standard input, the key of the job, too: nothing
of that is on a command line, in the environment or in a file. Results go to a pipe of their own,
whose number is the one argument.
"""

import os
import pickle
import sys
import threading
from queue import SimpleQueue
from typing import Any, BinaryIO

from discreet.shards.job import Job
from discreet.shards.tasks import guarded


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
