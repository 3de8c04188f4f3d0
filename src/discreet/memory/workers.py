"""Threads that share a list of work, with one BLAS thread each.

BLAS threads wait for each other at every product, so a neighbour on one core stops them all: two of
them were three times slower than one on a busy machine. Threads that take the next piece when they
are done wait for nobody.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# More threads than these would wait for memory and for Python.
_MOST = 8


def thread_count() -> int:
    """Return how many threads to use: one for each processor that this process may use."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(own or 1, _MOST)


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

    with _ONE_BLAS_THREAD:
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


class _OneBlasThread:
    """Keeps BLAS to one thread while anybody in this process works, and then lets it go again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._workers == 0:
                self._limit = _blas().limit(limits=1, user_api="blas")
            self._workers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._workers -= 1
            if self._workers == 0:
                self._limit.restore_original_limits()


# One for the process, as the threads of BLAS are.
_ONE_BLAS_THREAD = _OneBlasThread()


@cache
def _blas() -> ThreadpoolController:
    """Return what is told how many threads BLAS may use; it takes long to find the libraries."""
    return ThreadpoolController()
