"""Threads that share a list of work, with one BLAS thread each.

The threads of BLAS wait for each other at every product, so another process on one core slows all
of them down. Threads that take the next piece of work when they are done wait for nobody
(`benchmarks/memory.py`).
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

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
