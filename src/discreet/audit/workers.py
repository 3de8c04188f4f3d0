"""The same work done many times, by as many processes as there are processors."""

import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from discreet.errors import DiscreetError
from discreet.noise import SystemEntropy
from discreet.sums.source import passes_bar

Given = TypeVar("Given")
Made = TypeVar("Made")

# So many results travel together.
_BATCH = 16


def processes(workers: int | None) -> int:
    """Return how many processes to use: forks, so that they know whatever this one knows.

    A fork of a process with threads may hang: so does polars, and whatever there is elsewhere than
    on Linux. There, all is done here.

    Args:
        workers: at the most; None for one for each processor.
    """
    if sys.platform != "linux" or "polars" in sys.modules:
        return 1
    return len(os.sched_getaffinity(0)) if workers is None else workers


def map_forked(
    work: Callable[[Given], Made],
    given: Sequence[Given],
    *,
    workers: int | None = None,
    progress: bool = False,
    text: str = "building",
) -> list[Made]:
    """Return what a function makes of each of some values, in their order.

    Args:
        work: the function. It need not be one that can be pickled; what it returns must.
        given: the values.
        workers: how many processes; None for one for each processor.
        progress: whether to show a bar.
        text: what is being done.
    """
    count = min(processes(workers), len(given) // (2 * _BATCH))
    if count <= 1:
        with passes_bar(1, rows=len(given), show=progress, text=text) as begin:
            advance, made = begin(1), list[Made]()
            for each in given:
                made.append(work(each))
                advance(1)
            return made
    context = multiprocessing.get_context("fork")
    found: dict[int, Made] = {}
    ends, forks = list[Connection](), list[multiprocessing.process.BaseProcess]()
    for first in range(count):
        receiving, sending = context.Pipe(duplex=False)
        numbers = range(first, len(given), count)
        forks.append(context.Process(target=_do, args=(work, given, numbers, sending)))
        forks[-1].start()
        sending.close()
        ends.append(receiving)
    try:
        with passes_bar(1, rows=len(given), show=progress, text=text) as begin:
            advance = begin(1)
            while len(found) < len(given):
                for end in wait(ends):
                    _receive(end, ends, found, advance)  # type: ignore[arg-type]  # it has ends
    finally:
        for fork in forks:
            fork.terminate()
            fork.join()
    return [found[number] for number in range(len(given))]


def _receive(
    end: Connection,
    ends: list[Connection],
    found: dict[int, Made],
    advance: Callable[[int], object],
) -> None:
    """Take a message of a process: results, or what went wrong."""
    try:
        message = end.recv()
    except EOFError:
        raise DiscreetError("Expected workers that stay alive, and one of them died.") from None
    if isinstance(message, BaseException):
        raise message
    found.update(message)
    advance(len(message))
    if not message:
        ends.remove(end)


def _do(
    work: Callable[[Given], Made],
    given: Sequence[Given],
    numbers: Sequence[int],
    sending: Connection,
) -> None:
    """Do the work of one process, with one thread, and send what comes out."""
    _draw_apart()
    with threadpool_limits(1):
        try:
            for start in range(0, len(numbers), _BATCH):
                sending.send({at: work(given[at]) for at in numbers[start : start + _BATCH]})
            sending.send({})
        except BaseException as error:  # noqa: BLE001 (raised again where the caller is)
            sending.send(_that_travels(error))


def _draw_apart() -> None:
    """Begin generators anew that others may draw noise from: a fork goes on with a copy of each.

    Python's own does so by itself. Nothing here draws from any of them.
    """
    seed = int(SystemEntropy().words(1)[0]) % 2**32
    np.random.seed(seed)  # noqa: NPY002 (that of others)
    if (torch := sys.modules.get("torch")) is not None:
        torch.seed()


def _that_travels(error: BaseException) -> BaseException:
    """Return an error that can be pickled, and raised again."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (made one line before)
    except Exception:  # noqa: BLE001 (whatever it does)
        return DiscreetError(f"A build failed with {type(error).__name__}.")
    return error
