"""One memory from many files, or from a Dask collection, on a cluster.

One task a file or partition makes sealed sums (`Job.partial`), a tree of tasks merges them, and
this process releases. With groups, rows are shuffled first, sealed (`Job.scatter`, `Job.gather`),
so that all of a record is added up in one place. What tasks return, and Dask stores, sends or
spills, is public or sealed. Files without a cluster need no scheduler (`processes`). Needs the
extra `dask`.
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Unpack

from discreet.errors import DiscreetError, InvalidInput
from discreet.ledger import Ledger
from discreet.ledger.account import Counted
from discreet.noise import Entropy
from discreet.readers.attention.mechanism import Layout
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import BuildOptions, Options
from discreet.shards import exchange, processes, tasks
from discreet.shards.crew import TOO_DEADLY
from discreet.shards.job import Job
from discreet.shards.processes import MERGED_AT_ONCE, files_of, part_count, worker_count
from discreet.sums.collector import OnSettled
from discreet.sums.options import shows_options
from discreet.sums.progress import progress_bar
from discreet.sums.settings import Settings
from discreet.tables import Rows

try:
    import dask
    from distributed import Client, Future, KilledWorker, as_completed

    from discreet.shards.cluster import connected, own_cluster, warn_if_anybody_listens
except ImportError:
    raise InvalidInput("Expected Dask for a cluster: pip install 'discreet[dask]'.") from None

__all__ = ["build", "connected"]


@shows_options(Options, BuildOptions.__annotations__)
def build(
    source: object,
    *,
    keys: str | Sequence[str] | None = None,
    values: str | Sequence[str] | None = None,
    groups: str | None = None,
    client: "Client | None" = None,
    workers: int | None = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    on_settled: OnSettled | None = None,
    **options: Unpack[BuildOptions],
) -> Memory:
    """Return the memory that `discreet.build` would make of all rows, to the bit.

    (epsilon, delta)-differentially private as `discreet.build` is. Tasks that are retried, run
    twice or die with their worker count once: rows must be the same whenever they are read, as
    those of files are. Workers open the files by the paths that were given.

    Args:
        source: files, as for `discreet.tables.Rows`; a `Rows` itself; or a Dask collection whose
            partitions are tables (`dask.dataframe`) and have the same rows whenever they are
            computed.
        keys: columns of keys, as for `Rows`; left out if `source` is one.
        values: columns of values, likewise.
        groups: the column that names the record of each row; None if each row is its own.
        client: of a running cluster, whose connections are encrypted (TLS) or within one process;
            of others `PrivacyLeakWarning` warns. Without one, files are read by processes of this
            machine, as `discreet.shards.processes.build` does it; a collection is computed by a
            cluster on this machine, which is closed again.
        workers: processes of this machine; by default one for each processor.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        on_settled: as for `discreet.build`.
        **options: as for `discreet.build`.
    """
    counted = Counted(ledger=ledger, dataset=dataset, analyst=analyst)
    columns: dict[str, Any] = {"keys": keys, "values": values, "groups": groups}
    by_partition = hasattr(source, "to_delayed")
    if client is None and not by_partition:  # files of this machine need no scheduler
        return processes.build(
            source,
            **columns,
            workers=workers,
            entropy=entropy,
            progress=progress,
            on_settled=on_settled,
            **counted,
            **options,
        )
    if client is not None:
        warn_if_anybody_listens(client)
    rows = _partitions(source, columns) if by_partition else _files(files_of(source, **columns))
    cluster = own_cluster(worker_count(workers)) if client is None else nullcontext(client)
    with cluster as running:
        key_dim, value_dim = rows.known_widths or rows.widths(running)
        job = Job(
            key_dim=key_dim, value_dim=value_dim, by_record=rows.by_record, **counted, **options
        )
        if on_settled is not None:
            on_settled(job.settings)
        return _build(running, rows, job, entropy=entropy, progress=progress)


def _build(
    client: Client, rows: "_Partitions", job: Job, *, entropy: Entropy | None, progress: bool
) -> Memory:
    """Run all tasks, and release."""
    workers = max(len(client.nthreads()), 1)
    parts = part_count(job, shards=len(rows.names), workers=workers)
    plan = _Plan.of(job, rows, parts=parts, workers=workers)
    with progress_bar("adding up rows", rows=len(plan.steps), show=progress) as advance:
        root, *steps = client.compute([plan.root, *plan.steps])
        for done in as_completed(steps):
            if done.status == "error":
                break  # the root has it, too
            advance(1)
            done.release()
        del steps
        return job.release([_result(root)], expected=plan.names, entropy=entropy)


def _result(root: Future) -> bytes:
    """Return the sealed sums, or raise what a task has raised."""
    try:
        sums: bytes = root.result()
    except KilledWorker:
        raise DiscreetError(TOO_DEADLY) from None
    return sums


@dataclass(frozen=True, eq=False)
class _Partitions:
    """Where the rows are: one file, or one partition of a Dask collection, for each task.

    Attributes:
        tables: a `Rows` of one file each, which a task opens; or Dask's own lazy tables.
        names: of each, public.
        columns: of a collection's tables, as `Rows` takes them; None for files.
        by_record: whether rows come with the record that they belong to.
        known_widths: of keys and values, if they are known.
    """

    tables: Sequence[Any]
    names: Sequence[str]
    columns: dict[str, Any] | None
    by_record: bool
    known_widths: tuple[int, int] | None

    def widths(self, client: Client) -> tuple[int, int]:
        """Return the widths of keys and values of a collection: those of its first partition."""
        first = dask.delayed(tasks.guarded, pure=False)(tasks.widths, self.tables[0], self.columns)
        widths: tuple[int, int] = client.compute(first).result()
        return widths


def _partitions(collection: Any, columns: dict[str, Any]) -> _Partitions:  # noqa: ANN401
    """Return the partitions of a Dask collection."""
    tables = list(collection.to_delayed())
    names = [f"partition {number}" for number in range(len(tables))]
    return _Partitions(tables, names, columns, columns["groups"] is not None, None)


def _files(rows: Rows) -> _Partitions:
    """Return one partition for each file."""
    parts = rows.parts()
    names = [part.name for part in parts]
    return _Partitions(parts, names, None, rows.by_record, (rows.key_dim, rows.value_dim))


@dataclass(frozen=True, eq=False)
class _Plan:
    """All tasks of a job, none of them run.

    Attributes:
        root: makes the sealed sums over everything.
        steps: the tasks that take long, for a progress bar.
        names: of all shards that the root is made of.
    """

    root: Any
    steps: Sequence[Any]
    names: Sequence[str]

    @classmethod
    def of(cls, job: Job, rows: _Partitions, *, parts: int, workers: int) -> "_Plan":
        """Return the tasks for some partitions; with records, by way of so many parts."""
        run = _Tasks(job, workers)
        if not rows.by_record:
            sums = [
                run(tasks.partial, table, rows.columns, name)
                for table, name in zip(rows.tables, rows.names, strict=True)
            ]
            return cls(run.merged(sums), sums, rows.names)
        pieces = [
            run(tasks.scatter, table, rows.columns, name, parts, returns=parts)
            for table, name in zip(rows.tables, rows.names, strict=True)
        ]
        # Taken apart as soon as it is there: a list that went to disk would be read for each part.
        with dask.annotate(priority=1):
            by_part = [[each[part] for each in pieces] for part in range(parts)]
        sums = [
            run(tasks.gather, some, part, parts, rows.names) for part, some in enumerate(by_part)
        ]
        names = [exchange.part_name(part, parts) for part in range(parts)]
        return cls(run.merged(sums), [*pieces, *sums], names)


class _Tasks:
    """Makes tasks of one job. Its settings are public, and a task's result; its key is not.

    A scheduler gives work to those who have what it needs. So each worker has the settings, from a
    task of its own, and the work is shared out from the start.
    """

    def __init__(self, job: Job, workers: int) -> None:
        self._secret, settings = job.__getstate__()
        public = dask.delayed(_public, pure=False)
        self._settings = itertools.cycle([public(settings) for _ in range(workers)])

    def __call__(self, work: Callable[..., Any], *given: Any, returns: int | None = None) -> Any:  # noqa: ANN401
        task = dask.delayed(tasks.guarded, pure=False, nout=returns, traverse=True)
        return task(tasks.with_job, work, self._secret, next(self._settings), *given)

    def merged(self, sums: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return a tree of merges, at least one: its root is none of the sums."""
        level = [
            self(tasks.merge, sums[start : start + MERGED_AT_ONCE])
            for start in range(0, len(sums), MERGED_AT_ONCE)
        ]
        return level[0] if len(level) == 1 else self.merged(level)


def _public(settings: Settings[Layout]) -> Settings[Layout]:
    return settings
