"""From rows to exact sums, chunk by chunk and layer by layer. PRIVATE.

The key of a row becomes integer features, its value an integer vector w. Their outer products are
added up by float64 matrix products, which are exact as long as few enough rows are multiplied at a
time (`RowLayout.exact_rows`). Several threads work on different rows, each in memory of its own;
sums of integers do not depend on which thread is first.

Each thread has one BLAS thread. The threads of BLAS wait for each other at every product, so
another process on one core slows all of them down; threads that take the next piece of work when
they are done wait for nobody (`benchmarks/memory.py`).
"""

import math
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, NoReturn, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput
from discreet.sums import records
from discreet.sums.cells import CellLayout
from discreet.sums.layout import AnyLayout_co, Norm, RowLayout
from discreet.sums.moments import SecondMoments
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Advance, Index, Records, Table, unseen

# So many features are computed at a time, over all heads: a few buffers of 32 MiB. Half as many
# entries of Gram matrices.
_FEATURES_AT_ONCE = 2**22
_GRAM_ENTRIES = 2**21

# All threads together hold products of so many numbers, unless one alone is larger.
_PRODUCTS_AT_ONCE = 2**24


class Accumulator(Generic[AnyLayout_co]):
    """Adds rows to the sums of all layers, in memory that is used again.

    Attributes:
        settings: the public settings.
        sums: one array for each part of each layer, in lattice units (`RowLayout.shapes`).
        rows: how many rows have been added.
        ids: the records that they belong to.
        whole: whether all chunks have been added completely, or not at all.
    """

    def __init__(self, settings: Settings[AnyLayout_co], *, threads: int | None = None) -> None:
        """Begin with no rows.

        Args:
            settings: the public settings.
            threads: the most to use; by default one for each processor.
        """
        self.settings = settings
        self._threads = thread_count() if threads is None else threads
        self.sums = zeros(settings)
        self.rows = 0
        self.whole = True
        self.ids: set[object] = set()
        self._by_record = settings.unit is Unit.RECORD
        # A short record is handled in one piece, over all layers, whatever its width.
        self._in_cells = any(each.norm is Norm.L1 for each in settings.layouts)
        if self._in_cells and len(settings.layouts) > 1:
            raise InvalidInput("Expected one layer of cells.")
        by_gram = self._by_record and not self._in_cells
        self._gram_rows = records.gram_rows(settings) if by_gram else 1
        self._memory = np.empty(0)

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    def add(
        self, tables: Sequence[Table], *, groups: object = None, advance: Advance = unseen
    ) -> None:
        """Add the rows of some tables, one for each layer; they belong together by position.

        If this raises and `whole` is False, some of the rows have been added: the sums are of no
        use any more.

        Args:
            tables: keys and values of each layer.
            groups: the record of each row, if the unit is a record.
            advance: told how many rows have been added, for a progress bar.
        """
        rows = self._check(tables, groups)
        owners = None if groups is None else Records.of(groups, rows)
        if owners is not None:
            check_disjoint(self.ids, owners.ids)
        self.whole = False
        if self._in_cells:
            self._add_cells(tables[0], owners, advance)
        elif owners is None:
            for layer, table in enumerate(tables):
                self._add_rows(layer, table, range(rows), self.sums, advance)
        else:
            for size, members in records.by_size(owners.of_row):
                self._add_records(tables, size, members, advance)
        if owners is not None:
            self.ids.update(owners.ids)
        self.rows += rows
        self.whole = True

    def _check(self, tables: Sequence[Table], groups: object) -> int:
        """Return the number of rows, if the tables are as laid out and their sums will fit."""
        if len(tables) != len(self.settings.layouts):
            _validate.reject("layers", f"{len(tables)} of them", "as many as in the first chunk")
        rows = _same_rows(tables)
        for table, layout in zip(tables, self.settings.layouts, strict=True):
            wanted = (layout.heads, layout.kernel.dim, layout.value_width)
            given = (table.shape.heads, table.shape.key_dim, table.shape.value_dim)
            if given != wanted:
                _validate.reject("(heads, d, d_v)", given, f"{wanted}, as in the first chunk")
            layout.check_rows(self.rows + rows)
        if (groups is None) is self._by_record:
            wanted_groups = "the record of each row" if self._by_record else "left out"
            _validate.reject(
                "groups",
                None if groups is None else "...",
                f"{wanted_groups}, as in the first chunk (the unit is a {self.settings.unit})",
            )
        return rows

    def _add_cells(self, table: Table, owners: Records | None, advance: Advance) -> None:
        """Count rows in cells, record by record: what a record adds is capped."""
        layout = cast("CellLayout", self.settings.layouts[0])
        cells = np.empty((table.rows, len(layout.shapes)), dtype=np.int64)
        width = layout.kernel.dim + layout.value_width
        chunk = max(_FEATURES_AT_ONCE // self._threads // max(4 * width, 1), 1)

        def find(index: Index, thread: int) -> Iterator[tuple[Index, Integers]]:
            del thread
            yield index, layout.cells(*table.read(index))

        def take(done: tuple[Index, Integers]) -> None:
            index, found = done
            cells[index] = found
            advance(len(found))

        threads = max(min(self._threads, -(-table.rows // chunk)), 1)
        share_out(_pieces(range(table.rows), chunk), find, take, threads=threads)
        if owners is None:
            layout.add(cells, self.sums, rows_of=1, cap=layout.units)
            return
        cap = int(layout.record_bound(self.settings.group_rows))
        for size, members in records.by_size(owners.of_row):
            layout.add(cells[members.ravel()], self.sums, rows_of=size, cap=cap)

    def _add_rows(
        self,
        layer: int,
        table: Table,
        members: range | Integers,
        sums: Sequence[Integers],
        advance: Advance,
    ) -> None:
        """Add the contributions of some rows of one layer, as they are, to its part of the sums."""
        layout = self.settings.layouts[layer]
        totals = self._of_layer(layer, sums)
        chunk, threads = self._share([layout], len(members))
        memory = self._memory_for(threads, chunk * _feature_count(layout))

        def contribute(index: Index, thread: int) -> Iterator[tuple[int, Sequence[Integers]]]:
            keys, values = table.read(index)
            features, weights = table.features(layout, keys, memory[thread])
            weighed = layout.weighed(features, values, weights)
            yield features.shape[1], layout.contribution(features, weighed)

        def take(done: tuple[int, Sequence[Integers]]) -> None:
            _add(totals, done[1])
            advance(done[0])

        share_out(_pieces(members, chunk), contribute, take, threads=threads)

    def _add_records(
        self, tables: Sequence[Table], size: int, members: Integers, advance: Advance
    ) -> None:
        """Add records of one size, each with at most the influence that it may have.

        Args:
            tables: keys and values of each layer.
            size: rows of each record.
            members: row numbers, shape (records, size).
            advance: told of progress.
        """
        if size <= self.settings.group_rows:  # by the triangle inequality
            rows = np.sort(members.ravel())
            for layer, table in enumerate(tables):
                self._add_rows(layer, table, rows, self.sums, advance)
        elif size <= self._gram_rows and self._have_one_part:
            self._add_short(tables, size, members, advance)
        elif size <= self._gram_rows and self._is_one_with_moments:
            self._add_short_with_moments(tables[0], size, members, advance)
        else:
            self._add_long(tables, members, advance)

    @property
    def _have_one_part(self) -> bool:
        return all(len(layout.shapes) == 1 for layout in self.settings.layouts)

    @property
    def _is_one_with_moments(self) -> bool:
        first, *more = self.settings.layouts
        return not more and isinstance(first, SecondMoments) and len(first.shapes) == 3

    def _add_short_with_moments(
        self, table: Table, size: int, members: Integers, advance: Advance
    ) -> None:
        """Add records of one layer with second moments, whose norms come from Gram matrices."""
        [layout] = self.settings.layouts
        # Rows are there twice: as they are, and scaled.
        chunk, threads = self._share([layout], 2 * members.size, gram=size)
        together = max(min(chunk // 2, _GRAM_ENTRIES // size) // size, 1)
        memory = self._memory_for(threads, together * size * _feature_count(layout))

        def contribute(some: Integers, thread: int) -> Iterator[tuple[int, Sequence[Integers]]]:
            keys, values = table.read(some.ravel())
            features, weights = table.features(layout, keys, memory[thread])
            weighed = layout.weighed(features, values, weights)
            both = records.scale_down_both(self.settings, features, weighed, size)
            yield some.size, layout.contribution(*both)

        def take(done: tuple[int, Sequence[Integers]]) -> None:
            _add(self.sums, done[1])
            advance(done[0])

        groups = (members[start : start + together] for start in range(0, len(members), together))
        share_out(groups, contribute, take, threads=threads)

    def _add_long(self, tables: Sequence[Table], members: Integers, advance: Advance) -> None:
        """Add records that are added up first, each by one thread, and cut if they are too long."""
        layouts = self.settings.layouts
        chunk, threads = self._share(layouts, members.size)
        memory = self._memory_for(threads, chunk * max(map(_feature_count, layouts)))

        def contribute(member: Integers, thread: int) -> Iterator[Sequence[Integers]]:
            record = zeros(self.settings)
            for layer, (table, layout) in enumerate(zip(tables, layouts, strict=True)):
                for index in _pieces(member, chunk):
                    keys, values = table.read(index)
                    features, weights = table.features(layout, keys, memory[thread])
                    weighed = layout.weighed(features, values, weights)
                    _add(self._of_layer(layer, record), layout.contribution(features, weighed))
            yield records.shrink_sums(self.settings, record)

        def take(record: Sequence[Integers]) -> None:
            _add(self.sums, record)
            advance(members.shape[1] * len(layouts))

        share_out(members, contribute, take, threads=min(threads, len(members)))

    def _add_short(
        self, tables: Sequence[Table], size: int, members: Integers, advance: Advance
    ) -> None:
        """Add records whose norms come from Gram matrices: all layers at once, one factor each.

        Features of one layer at a time are in memory, so those of several layers are computed
        twice, from the same copy of the keys.
        """
        layouts = self.settings.layouts
        chunk, threads = self._share(layouts, members.size, gram=size)
        together = max(min(chunk, _GRAM_ENTRIES // size) // size, 1)
        largest = max(map(_feature_count, layouts))
        memory = self._memory_for(threads, together * size * largest)

        def contribute(
            some: Integers, thread: int
        ) -> Iterator[tuple[int, int, Sequence[Integers]]]:
            all_keys, grams, weighed = [], [], []
            for table, layout in zip(tables, layouts, strict=True):
                keys, values = table.read(some.ravel())
                features, weights = table.features(layout, keys, memory[thread])
                all_keys.append(keys)
                grams.append(records.gram(features, size))
                weighed.append(layout.weighed(features, values, weights))
            scaled = records.scale_down(self.settings, grams, weighed, size)
            for layer, (table, layout, keys, values) in enumerate(
                zip(tables, layouts, all_keys, scaled, strict=True)
            ):
                if len(layouts) > 1:
                    features, _ = table.features(layout, keys, memory[thread])
                yield layer, some.size, layout.contribution(features, values)

        def take(done: tuple[int, int, Sequence[Integers]]) -> None:
            layer, rows, parts = done
            _add(self._of_layer(layer, self.sums), parts)
            advance(rows)

        groups = (members[start : start + together] for start in range(0, len(members), together))
        share_out(groups, contribute, take, threads=threads)

    def _of_layer(self, layer: int, sums: Sequence[Integers]) -> Sequence[Integers]:
        """Return the parts of one layer."""
        counts = [len(layout.shapes) for layout in self.settings.layouts]
        start = sum(counts[:layer])
        return sums[start : start + counts[layer]]

    def _share(self, layouts: Sequence[RowLayout], rows: int, *, gram: int = 0) -> tuple[int, int]:
        """Return how many rows of these layers are handled at a time, and by how many threads.

        Args:
            layouts: of the layers; features of one at a time, and the rest of all of them.
            rows: how many there are.
            gram: rows of each record, if their Gram matrices are needed.
        """
        rest = sum(
            [
                layout.head_count * (4 * (layout.kernel.dim + layout.columns) + 2 * gram)
                for layout in layouts
            ]
        )
        width = max(map(_feature_count, layouts)) + rest
        exact = min([layout.exact_rows for layout in layouts])
        # Each thread holds products as large as the sums, twice while they are converted.
        largest = max([sum(map(math.prod, layout.shapes)) for layout in layouts])
        threads = min(self._threads, max(_PRODUCTS_AT_ONCE // largest, 1))
        chunk = max(min(_FEATURES_AT_ONCE // threads // width, exact), self._gram_rows, 1)
        return chunk, max(min(threads, -(-rows // chunk)), 1)

    def _memory_for(self, threads: int, size: int) -> Floats:
        """Return so many numbers for each thread, in memory that is used again: new costs time."""
        if len(self._memory) < threads * size:
            self._memory = np.empty(threads * size)
        return self._memory[: threads * size].reshape(threads, size)


def check_disjoint(
    mine: AbstractSet[Any], theirs: Collection[Any], kind: Callable[[Any], object] = type
) -> None:
    """Raise `InvalidInput` if a record is in both: its influence would add up.

    Args:
        mine: ids of records.
        theirs: likewise.
        kind: of an id; all have the same.
    """
    if mine and theirs and kind(next(iter(mine))) != kind(next(iter(theirs))):
        raise InvalidInput("Expected the groups of all chunks to be of one type.")
    if not mine.isdisjoint(theirs):
        raise InvalidInput(
            "Expected every record to lie within one chunk or partial: its influence would add up."
        )


def zeros(settings: Settings[RowLayout]) -> list[Integers]:
    """Return the sums over no rows, one array for each part of each layer.

    Args:
        settings: the public settings.
    """
    shapes = [shape for layout in settings.layouts for shape in layout.shapes]
    return [np.zeros(shape, dtype=np.int64) for shape in shapes]


def _feature_count(layout: RowLayout) -> int:
    """Return how many numbers the features of one row are, over all heads of a layer."""
    return layout.head_count * layout.kernel.features


def _pieces(members: range | Integers, chunk: int) -> Iterator[Index]:
    """Yield row numbers, a chunk at a time; slices where they follow each other."""
    for start in range(0, len(members), chunk):
        index = members[start : start + chunk]
        yield slice(index.start, index.stop) if isinstance(index, range) else index


def _add(totals: Sequence[Integers], more: Sequence[Integers]) -> None:
    for total, part in zip(totals, more, strict=True):
        np.add(total, part, out=total)


def _same_rows(tables: Sequence[Table]) -> int:
    counts = {table.rows for table in tables}
    if len(counts) != 1:
        raise InvalidInput("Expected the same number of rows in every layer.")
    return counts.pop()


Item = TypeVar("Item")
Result = TypeVar("Result")

# More threads than these would wait for memory and for Python.
_MOST_THREADS = 8


def processor_count() -> int:
    """Return how many processors this process may use."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return own or 1


def thread_count() -> int:
    """Return how many threads to use: one for each processor, as long as that helps."""
    return min(processor_count(), _MOST_THREADS)


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
