"""One release from many files, or from a Dask collection, on a cluster.

One task for each file or partition makes sealed sums (`Job.partial`), a tree of tasks merges them,
and this process releases. With groups, rows are shuffled first, sealed (`Job.scatter`,
`Job.gather`), so that all rows of a record are added up in one place. What tasks return, and Dask
stores, sends or spills, is public or sealed. The key of a job travels with its tasks: it is in the
memory of the scheduler, and on connections, which are encrypted where this module started the
cluster. Files that are read on this machine need no scheduler (`processes`). Needs the extra
`dask`.
"""

import itertools
import logging
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from discreet._validate import warn
from discreet.errors import DiscreetError, InvalidInput, PrivacyLeakWarning
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.readers.attention.options import BuildOptions, Options
from discreet.shards import exchange, processes, tasks
from discreet.shards.job import Job, read_once
from discreet.shards.pool import TOO_DEADLY
from discreet.shards.processes import MERGED_AT_ONCE, files_of, part_count, worker_count
from discreet.sums.mechanism import AnyOptions, AnyRelease, Mechanism, OnResolved, shows_options
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import progress_bar
from discreet.tables import Rows

try:
    import dask
    from distributed import Client, Future, KilledWorker, LocalCluster, as_completed
except ImportError:
    raise InvalidInput("Expected Dask for a cluster: pip install 'discreet[dask]'.") from None

__all__ = ["build", "connected"]

# Seconds that a scheduler has to answer in.
_PATIENCE = 10


@shows_options(Options, BuildOptions.__annotations__)
def build(
    source: object,
    *,
    keys: str | Sequence[str] | None = None,
    values: str | Sequence[str] | None = None,
    groups: str | None = None,
    reader: str = "attention",
    client: "Client | None" = None,
    workers: int | None = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    account: Account | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    **options: Any,  # noqa: ANN401 (the reader's own)
) -> Any:  # noqa: ANN401 (what the reader makes of it)
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
        reader: what is built: "attention", or another that reads rows once ("least_squares",
            "distances"); then the options are those of its own front door.
        client: of a running cluster, whose connections are encrypted (TLS) or within one process;
            of others `PrivacyLeakWarning` warns. Without one, files are read by processes of this
            machine, as `discreet.shards.processes.build` does it; a collection is computed by a
            cluster on this machine, which is closed again.
        workers: processes of this machine; by default one for each processor.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        **options: as for `discreet.build`.
    """
    mechanism = read_once(reader)
    return build_on(
        mechanism,
        source,
        mechanism.options(**options),
        columns={"keys": keys, "values": values, "groups": groups},
        client=client,
        workers=workers,
        entropy=entropy,
        progress=progress,
        account=account_of(ledger, dataset, analyst, account),
    )


def build_on(
    mechanism: Mechanism[AnyOptions, Any, AnyRelease],
    source: object,
    options: AnyOptions,
    *,
    columns: dict[str, Any],
    client: "Client | None" = None,
    workers: int | None = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    account: Account | None = None,
    on_resolved: OnResolved | None = None,
) -> AnyRelease:
    """Return what `sums.mechanism.build` would make of all rows, to the bit.

    Args:
        mechanism: what is built; it reads rows once.
        source: as for `build`.
        options: public.
        columns: the names of columns, as for `Rows`.
        client: as for `build`.
        workers: as for `build`.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: on which the release is counted before its noise, if on any.
        on_resolved: told the public settings before rows are added up.
    """
    by_partition = hasattr(source, "to_delayed")
    if client is None and not by_partition:  # files of this machine need no scheduler
        return processes.build_files(
            mechanism,
            source,
            options,
            columns=columns,
            workers=workers,
            entropy=entropy,
            progress=progress,
            account=account,
            on_resolved=on_resolved,
        )
    if client is not None:
        warn_if_anybody_listens(client)
    rows = _partitions(source, columns) if by_partition else _files(files_of(source, **columns))
    cluster = own_cluster(worker_count(workers)) if client is None else nullcontext(client)
    with cluster as running:
        key_dim, value_dim = rows.known_widths or rows.widths(running)
        shape = Shape(heads=(), key_dim=key_dim, value_dim=value_dim)
        unit = Unit.RECORD if rows.by_record else Unit.ROW
        job = Job.of(mechanism, shape, options, unit=unit, account=account)
        if on_resolved is not None:
            on_resolved(job.settings)
        release: AnyRelease = _build(running, rows, job, entropy=entropy, progress=progress)
        return release


def _build(
    client: Client, rows: "_Partitions", job: Job, *, entropy: Entropy | None, progress: bool
) -> Any:  # noqa: ANN401 (what the reader makes of it)
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
        """Return the root of a tree of merges; even a single sum goes through one."""
        level = [
            self(tasks.merge, sums[start : start + MERGED_AT_ONCE])
            for start in range(0, len(sums), MERGED_AT_ONCE)
        ]
        return level[0] if len(level) == 1 else self.merged(level)


def _public(settings: Settings[Any]) -> Settings[Any]:
    return settings


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a client of the cluster at an address, "tls://host:port" or "tcp://host:port".

    Certificates for the former are where Dask's configuration says (`distributed.comm.tls`).

    Args:
        address: of the scheduler.

    Raises:
        InvalidInput: no scheduler answers there.
    """
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"Expected a scheduler of Dask at {address}: {type(error).__name__}."
        ) from None
    with client:
        yield client


@contextmanager
def own_cluster(workers: int) -> Iterator[Client]:
    """Yield a client of a cluster on this machine, which is closed again.

    It keeps partitions in memory: those of a collection are not sealed, and must not go to a disk.
    """
    memory = dict.fromkeys(("target", "spill", "pause", "terminate"), False)
    config = {f"distributed.worker.memory.{name}": at for name, at in memory.items()}
    others: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.worker.profile.enabled": False,  # nobody looks at it
        "distributed.scheduler.worker-saturation": "inf",  # a worker has its next task at hand
        # Memory that is given back after every array costs a tenth of the time.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    }
    with (
        tempfile.TemporaryDirectory(prefix="discreet-", ignore_cleanup_errors=True) as folder,
        dask.config.set(config | others | {"temporary-directory": folder}),
        _started(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // workers,
            security=True,  # encrypted, and nobody else can connect
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            local_directory=folder,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _started(**options: Any) -> LocalCluster:  # noqa: ANN401
    """Return a cluster, or raise an exception that says why there is none."""
    advice = (
        "Expected worker processes to start, and they import the script that this is called from: "
        'call it below if __name__ == "__main__".'
    )
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker, importing it
        raise InvalidInput(advice)
    try:
        return LocalCluster(**options)
    except RuntimeError:
        raise InvalidInput(advice) from None


def warn_if_anybody_listens(client: Client) -> None:
    """Warn if others than the cluster's own processes can connect to it, or listen.

    A port of this machine, too, is open to all its users: only TLS keeps them out. To keep the key
    from whoever can connect is of no use: they can run code of their own on every worker.
    """
    if not all(map(_is_closed, [client.scheduler.address, *client.nthreads()])):
        warn(
            "connections of this Dask cluster are not encrypted: whoever can reach its scheduler "
            "or listens, other users of this machine too, gets the key of this job and can read "
            "exact sums and rows. Use TLS (LocalCluster(security=True), distributed.Security), a "
            "cluster within one process (inproc://), or for files of this machine "
            "discreet.shards.processes (--workers), which needs no network.",
            PrivacyLeakWarning,
        )


def _is_closed(address: str) -> bool:
    """Return whether nobody but its two ends can read a connection, or make one of their own."""
    return str(address).partition("://")[0] in {"tls", "wss", "inproc"}
