"""Threads that share a list of work, with one BLAS thread each.

The threads of BLAS wait for each other at every product, so another process on one core slows all
of them down. Threads that take the next piece of work when they are done wait for nobody
(`benchmarks/memory.py`).

And the progress bar that is told of their work, on the trusted builder's own terminal.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Advance = Callable[[int], None]


def unseen(_: int) -> None:
    """Show nothing."""


@contextmanager
def progress_bar(text: str, *, rows: int | None, show: bool) -> Iterator[Advance]:
    """Yield what is to be told how many rows more have been read.

    Args:
        text: what is being done.
        rows: how many there are, if that is known.
        show: whether to show anything.
    """
    with passes_bar(1, rows=rows, show=show, text=text) as begin:
        yield begin(1)


@contextmanager
def passes_bar(
    passes: int, *, rows: int | None, show: bool, text: str = "adding up rows"
) -> Iterator[Callable[[int], Advance]]:
    """Yield what is told that a pass begins, from 1 on, and returns what to tell of its rows.

    On standard error, so that results can be piped. It shows no number of rows, just a share of
    them.

    Args:
        passes: how many there will be.
        rows: of each pass, if that is known.
        show: whether to show anything.
        text: what is being done, where there is one pass.
    """
    if not show:
        yield lambda _: unseen
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task(text, total=None if rows is None else passes * max(rows, 1))

        def begin(number: int) -> Advance:
            if passes > 1:
                bars.update(task, description=f"pass {number} of {passes}")
            return lambda count: bars.advance(task, count)

        yield begin


Item = TypeVar("Item")
Result = TypeVar("Result")

# More threads than these would wait for memory and for Python.
_MOST = 8


def processor_count() -> int:
    """Return how many processors this process may use."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return own or 1


def thread_count() -> int:
    """Return how many threads to use: one for each processor, as long as that helps."""
    return min(processor_count(), _MOST)


def share_out(
    items: Iterable[Item],
    work: Callable[[Item, int], Iterable[Result]],
    take: Callable[[Result], None],
    *,
    threads: int,
) -> None:
    """Do some work for each item, and take its results, in any order, one at a time.

    Args:
        items: what there is to do.
        work: told an item and the number of its thread, from 0 on; yields results.
        take: given each result.
        threads: how many to use; the first error of any of them ends all, and is raised.
    """
    rest = iter(items)
    stop = threading.Event()
    lock = threading.Lock()

    def drain(number: int) -> None:
        try:
            for item in _taken(rest, lock, stop):
                for result in work(item, number):
                    with lock:
                        take(result)
        finally:
            stop.set()  # the list is empty, or something went wrong

    with _one_blas_thread():
        if threads == 1:
            drain(0)
            return
        with ThreadPoolExecutor(threads) as pool:
            try:
                for done in [pool.submit(drain, number) for number in range(threads)]:
                    done.result()
            finally:
                stop.set()


def _taken(rest: Iterator[Item], lock: threading.Lock, stop: threading.Event) -> Iterator[Item]:
    """Yield the next item that nobody has taken, until there is none or work has stopped."""
    while not stop.is_set():
        with lock:
            try:
                item = next(rest)
            except StopIteration:
                return
        yield item


# Held by whoever keeps BLAS to one thread: its threads belong to the process.
_LIMITING = threading.Lock()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, unless somebody does already: who set it must let it go again.

    Two that overlap would each restore what they found, and the second found one.
    """
    if not _LIMITING.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITING.release()


@cache
def _blas() -> ThreadpoolController:
    """Return what is told how many threads BLAS may use; it takes long to find the libraries."""
    return ThreadpoolController()
