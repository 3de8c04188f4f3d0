"""One memory from many files, or from a Dask collection, on as many processes as there are.

One task a file or partition makes sealed sums (`Job.partial`), a tree of tasks merges them, and
this process releases. With groups, rows are shuffled first, sealed (`Job.scatter`, `Job.gather`),
so that all of a record is added up in one place. What tasks return, and Dask stores, sends or
spills, is public or sealed. The key of the job is in the tasks themselves: in the memory of the
scheduler, and on connections, which are encrypted where the cluster is ours. Needs the extra
`dask`.
"""

import ipaddress
import itertools
import logging
import math
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, Unpack

from discreet import _validate
from discreet._warn import warn
from discreet.errors import DiscreetError, InvalidInput, PrivacyLeakWarning
from discreet.ledger import Ledger
from discreet.ledger.account import Counted
from discreet.memory.layout import Layout
from discreet.memory.memory import Memory
from discreet.memory.options import BuildOptions, shows_options
from discreet.memory.progress import progress_bar
from discreet.memory.settings import Settings
from discreet.memory.workers import processor_count
from discreet.noise import Entropy
from discreet.shards import exchange
from discreet.shards.job import Job, JobSecret
from discreet.tables import Rows

try:
    import dask
    from distributed import Client, Future, KilledWorker, LocalCluster, as_completed
except ImportError:
    raise InvalidInput("Expected Dask for several workers: pip install 'discreet[dask]'.") from None

# Sealed partials that one task merges.
_MERGED_AT_ONCE = 8

# Rows of one part of a shuffle take about so many bytes.
_PART_BYTES = 2**26

# Seconds that a scheduler has to answer in.
_PATIENCE = 10

# A worker of ours keeps so many bytes of sealed data in memory; what is more goes to its disk.
_KEPT_BYTES = 2**27


@shows_options()
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
        client: of a running cluster; by default a cluster on this machine, which is closed again.
        workers: processes of that cluster; by default one for each processor.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        **options: as for `discreet.build`.
    """
    rows = _rows(source, keys=keys, values=values, groups=groups)
    counted = Counted(ledger=ledger, dataset=dataset, analyst=analyst)
    job = None  # of files, what is wrong with the options is known before a worker starts
    if rows.known_widths is not None:
        job = _job(rows.known_widths, rows, options, counted)
    with _cluster(client, workers, rows) as running:
        if job is None:
            job = _job(rows.widths(running), rows, options, counted)
        return _build(running, rows, job, entropy=entropy, progress=progress)


def _job(
    widths: tuple[int, int], rows: "_Partitions", options: BuildOptions, counted: Counted
) -> Job:
    key_dim, value_dim = widths
    by_record = rows.by_record
    return Job(key_dim=key_dim, value_dim=value_dim, by_record=by_record, **counted, **options)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a client of the cluster at an address, "tls://host:port" or "tcp://host:port".

    Certificates for the former are where Dask's configuration says (`distributed.comm.tls`).
    """
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"Expected a scheduler of Dask at {address}: {type(error).__name__}."
        ) from None
    with client:
        yield client


def _build(
    client: Client, rows: "_Partitions", job: Job, *, entropy: Entropy | None, progress: bool
) -> Memory:
    """Run all tasks, and release."""
    workers = max(len(client.nthreads()), 1)
    plan = _Plan.of(job, rows, parts=_part_count(job, rows, workers), workers=workers)
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
        raise DiscreetError(
            "Expected workers that stay alive, and one task has ended several of them. Is there "
            "enough memory?"
        ) from None
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
        first = dask.delayed(_guarded, pure=False)(_widths, self.tables[0], self.columns)
        widths: tuple[int, int] = client.compute(first).result()
        return widths


def _rows(source: object, **columns: Any) -> _Partitions:  # noqa: ANN401
    """Return the partitions of what was given, checked as far as nothing has to be read."""
    if hasattr(source, "to_delayed"):
        tables = list(source.to_delayed())
        names = [f"partition {number}" for number in range(len(tables))]
        by_record = columns["groups"] is not None
        return _Partitions(tables, names, columns, by_record, None)
    if isinstance(source, Rows) and any(each is not None for each in columns.values()):
        raise InvalidInput("Expected Rows without names: their columns have been named.")
    rows = source if isinstance(source, Rows) else Rows(source, **columns)
    rows.check()
    if not rows.in_files:
        raise InvalidInput(
            "Expected files, or a Dask collection: rows in memory need no workers (discreet.build)."
        )
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
                run(_partial, table, rows.columns, name)
                for table, name in zip(rows.tables, rows.names, strict=True)
            ]
            return cls(run.merged(sums), sums, rows.names)
        pieces = [
            run(_scatter, table, rows.columns, name, parts, returns=parts)
            for table, name in zip(rows.tables, rows.names, strict=True)
        ]
        # Taken apart as soon as it is there: a list that went to disk would be read for each part.
        with dask.annotate(priority=1):
            by_part = [[each[part] for each in pieces] for part in range(parts)]
        sums = [run(_gather, some, part, parts, rows.names) for part, some in enumerate(by_part)]
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
        task = dask.delayed(_guarded, pure=False, nout=returns, traverse=True)
        return task(_with_job, work, self._secret, next(self._settings), *given)

    def merged(self, sums: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return a tree of merges, at least one: its root is none of the sums."""
        level = [
            self(_merge, sums[start : start + _MERGED_AT_ONCE])
            for start in range(0, len(sums), _MERGED_AT_ONCE)
        ]
        return level[0] if len(level) == 1 else self.merged(level)


def _public(settings: Settings[Layout]) -> Settings[Layout]:
    return settings


def _guarded(work: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401
    """Do something on a worker; what others get to see of a failure names no private value.

    An exception travels with those that it came from, whatever a traceback shows of them: so it is
    made anew, where no other is being handled.
    """
    try:
        return work(*given)
    except Exception as error:  # noqa: BLE001 (whose message may quote anything)
        failed = _told(error)
    raise failed


def _told(error: Exception) -> Exception:
    """Return an exception that says as much as others may know."""
    if isinstance(error, DiscreetError):
        return type(error)(str(error))
    if isinstance(error, OSError):
        return OSError(error.errno, error.strerror, error.filename)
    if isinstance(error, MemoryError):
        return MemoryError()  # numpy's own names how many rows there were
    return DiscreetError(f"Expected a task to end well: {type(error).__name__}.")


def _with_job(
    work: Callable[..., Any],
    secret: JobSecret,
    settings: Settings[Layout],
    *given: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    return work(Job.copy_of(secret, settings), *given)


def _partial(job: Job, table: object, columns: dict[str, Any] | None, name: str) -> bytes:
    return job.partial(_opened(table, columns, job.widths), shard=name, threads=1)


def _scatter(
    job: Job, table: object, columns: dict[str, Any] | None, name: str, parts: int
) -> list[bytes]:
    rows = _opened(table, columns, job.widths)
    return job.scatter(rows.chunks(), shard=name, parts=parts)


def _gather(job: Job, pieces: list[bytes], part: int, parts: int, names: list[str]) -> bytes:
    return job.gather(pieces, part=part, parts=parts, expected=names, threads=1)


def _merge(job: Job, parts: list[bytes]) -> bytes:
    return job.merge(parts)


def _widths(table: object, columns: dict[str, Any] | None) -> tuple[int, int]:
    rows = _opened(table, columns, None)
    return rows.key_dim, rows.value_dim


def _opened(table: object, columns: dict[str, Any] | None, widths: tuple[int, int] | None) -> Rows:
    return table if isinstance(table, Rows) else Rows(table, **(columns or {}), widths=widths)


def _part_count(job: Job, rows: _Partitions, workers: int) -> int:
    """Return into how many parts records are divided: from public numbers only."""
    hint, layout = job.settings.rows_hint, job.settings.layouts[0]
    width = 8 * layout.head_count * (layout.kernel.dim + layout.value_width)
    enough = len(rows.names) if hint is None else math.ceil(hint * width / _PART_BYTES)
    return max(enough, 2 * workers)


@contextmanager
def _cluster(client: Client | None, workers: int | None, rows: _Partitions) -> Iterator[Client]:
    """Yield a client of the cluster that was given, or of one on this machine, then closed."""
    if client is not None:
        _warn_if_anybody_listens(client)
        yield client
        return
    count = _validate.whole(
        "workers", processor_count() if workers is None else workers, at_least=1
    )
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // count
    # What we make is sealed, and may go to disk; partitions of a collection are not.
    kept = _KEPT_BYTES / limit if rows.columns is None else False
    memory = {"target": kept, "spill": False, "pause": False, "terminate": False}
    memory["transfer"] = _KEPT_BYTES / limit  # what is on its way from others counts, too
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
        _interrupts_later() as interrupts_now,
        _started(
            n_workers=count,
            threads_per_worker=1,
            memory_limit=limit,
            security=True,  # encrypted, and nobody else can connect
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            local_directory=folder,
        ) as cluster,
        Client(cluster) as own,
    ):
        own.run(_leave_interrupts_alone)
        interrupts_now()
        yield own


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


def _leave_interrupts_alone() -> None:
    """Let Ctrl-C be for the process that closes this one, whatever a worker has set up itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_later() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back until what is yielded is called, in this thread and in all that it starts.

    Ctrl-C reaches all processes of a terminal. It is for this one, which closes the others; they
    are started by a thread of Dask's that inherits the mask, and so do they, when they are started
    again, too. One that comes while they start ends the build as soon as they can be closed.
    """
    # It lets interrupts through in the thread that starts it: so it is started before.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def restored() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield restored
    finally:
        restored()


def _warn_if_anybody_listens(client: Client) -> None:
    """Warn if the key of a job would go over a network in the clear."""
    workers = client.scheduler_info()["workers"]
    if not all(map(_is_closed, [client.scheduler.address, *workers])):
        warn(
            "connections of this Dask cluster are not encrypted: whoever listens gets the key of "
            "this job, and can read exact sums. Use TLS (distributed.Security).",
            PrivacyLeakWarning,
        )


def _is_closed(address: str) -> bool:
    """Return whether nobody but the two ends can read a connection to an address."""
    scheme, _, rest = str(address).partition("://")
    return scheme in {"tls", "wss", "inproc"} or _is_this_machine(rest.rpartition(":")[0])


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name
        return host == "localhost"
