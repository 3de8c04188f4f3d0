"""One release from many files, on as many processes of this machine as are wanted.

One task for each file makes sealed sums (`Job.partial`), which this process merges and releases.
With groups, workers divide the rows by record first, so that all rows of a record are added up in
one place (`Job.scatter`, `Job.gather`): the pieces are sealed, and lie in files that are deleted
afterwards.
"""

import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet import _validate
from discreet.errors import InvalidInput
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.readers.attention.options import BuildOptions, Options
from discreet.shards import exchange, tasks
from discreet.shards.job import Job, read_once
from discreet.shards.pool import WorkerPool
from discreet.sums.accumulate import processor_count
from discreet.sums.mechanism import AnyOptions, AnyRelease, Mechanism, OnResolved, shows_options
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import Advance, progress_bar
from discreet.tables import Rows

# Sealed partials that are merged in one go.
MERGED_AT_ONCE = 8

# Rows of one part of a shuffle take about so many bytes.
_PART_BYTES = 2**26

# Parts, where nobody says how many rows there are: a piece of each shard for each part takes room
# however few rows it has.
_MOST_PARTS = 128


@shows_options(Options, BuildOptions.__annotations__)
def build(
    source: object,
    *,
    keys: str | Sequence[str] | None = None,
    values: str | Sequence[str] | None = None,
    groups: str | None = None,
    reader: str = "attention",
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

    (epsilon, delta)-differentially private as `discreet.build` is. A worker that dies is replaced,
    and its file read again; it counts once. So rows must be the same whenever they are read. With
    groups, all rows lie once, sealed, in a folder for temporary files (`tempfile`).

    Args:
        source: files, as for `discreet.tables.Rows`, or a `Rows` itself.
        keys: columns of keys, as for `Rows`; left out if `source` is one.
        values: columns of values, likewise.
        groups: the column that names the record of each row; None if each row is its own.
        reader: what is built: "attention", or another that reads rows once ("least_squares",
            "distances"); then the options are those of its own front door.
        workers: processes; by default one for each processor.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        **options: as for `discreet.build`.
    """
    mechanism = read_once(reader)
    return build_files(
        mechanism,
        source,
        mechanism.options(**options),
        columns={"keys": keys, "values": values, "groups": groups},
        workers=workers,
        entropy=entropy,
        progress=progress,
        account=account_of(ledger, dataset, analyst, account),
    )


def build_files(
    mechanism: Mechanism[AnyOptions, Any, AnyRelease],
    source: object,
    options: AnyOptions,
    *,
    columns: Mapping[str, Any] = MappingProxyType({}),
    workers: int | None = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    account: Account | None = None,
    on_resolved: OnResolved | None = None,
) -> AnyRelease:
    """Return what `sums.mechanism.build` would make of all rows of some files, to the bit.

    Args:
        mechanism: what is built; it reads rows once.
        source: files, as for `discreet.tables.Rows`, or a `Rows` itself.
        options: public.
        columns: the names of columns, as for `Rows`; empty if `source` is one.
        workers: processes; by default one for each processor.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: on which the release is counted before its noise, if on any.
        on_resolved: told the public settings before rows are added up.
    """
    count = worker_count(workers)
    # The folder is entered first, and so removed last, when no worker writes into it any more.
    with _temporary_folder() as folder, WorkerPool(count) as pool:
        rows = files_of(source, **columns)
        unit = Unit.RECORD if rows.by_record else Unit.ROW
        shape = Shape(heads=(), key_dim=rows.key_dim, value_dim=rows.value_dim)
        job = Job.of(mechanism, shape, options, unit=unit, account=account)
        if on_resolved is not None:
            on_resolved(job.settings)
        pool.brief(job.__getstate__())
        files = rows.parts()
        names = [file.name for file in files]
        steps = len(files)
        if rows.by_record:
            parts = part_count(job, shards=len(files), workers=count)
            names = [exchange.part_name(part, parts) for part in range(parts)]
            steps += parts
        with progress_bar("adding up rows", rows=steps, show=progress) as advance:
            sums = (
                _by_record(pool, job, _pieces(files, parts, Path(folder)), advance)
                if rows.by_record
                else _by_row(pool, job, files, advance)
            )
    release: AnyRelease = job.release([sums], expected=names, entropy=entropy)
    return release


def files_of(source: object, **columns: Any) -> Rows:  # noqa: ANN401
    """Return the rows of files, checked as far as nothing has to be read."""
    if isinstance(source, Rows) and any(each is not None for each in columns.values()):
        raise InvalidInput(
            "Expected no names of columns beside Rows: its columns are named already."
        )
    rows = source if isinstance(source, Rows) else Rows(source, **columns)
    rows.check()
    if not rows.in_files:
        raise InvalidInput(
            "Expected files, or a Dask collection: rows in memory need no workers (discreet.build)."
        )
    return rows


def worker_count(workers: int | None) -> int:
    """Return how many processes to use: by default one for each processor."""
    return _validate.whole("workers", processor_count() if workers is None else workers, at_least=1)


def part_count(job: Job, *, shards: int, workers: int) -> int:
    """Return into how many parts records are divided: from public numbers only."""
    hint, layout = job.settings.rows_hint, job.settings.layouts[0]
    width = 8 * layout.head_count * (layout.kernel.dim + layout.value_width)
    unknown = min(shards, _MOST_PARTS)
    enough = unknown if hint is None else math.ceil(hint * width / _PART_BYTES)
    return max(enough, 2 * workers)


def _by_row(pool: WorkerPool, job: Job, files: Sequence[Rows], advance: Advance) -> bytes:
    """Return the sealed sums over all rows."""
    work = [(tasks.partial, (file, None, file.name)) for file in files]
    return _merged(job, pool.results(work), advance)


def _by_record(
    pool: WorkerPool, job: Job, pieces: Sequence[tuple[Rows, list[str]]], advance: Advance
) -> bytes:
    """Return the sealed sums over all records, by way of files for each part of each shard."""
    for _ in pool.results([(tasks.scatter_to_files, each) for each in pieces]):
        advance(1)
    names = [file.name for file, _ in pieces]
    by_part = list(zip(*(paths for _, paths in pieces), strict=True))
    work = [
        (tasks.gather_from_files, (paths, part, len(by_part), names))
        for part, paths in enumerate(by_part)
    ]
    return _merged(job, pool.results(work), advance)


def _pieces(files: Sequence[Rows], parts: int, folder: Path) -> list[tuple[Rows, list[str]]]:
    """Return where the rows of each file go, by part."""
    return [
        (file, [str(folder / f"{place}-{part}") for part in range(parts)])
        for place, file in enumerate(files)
    ]


def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="discreet-", ignore_cleanup_errors=True)


def _merged(job: Job, sums: Iterable[bytes], advance: Advance) -> bytes:
    """Return the sums of all, merged as they come, so that few are held at a time."""
    held: list[bytes] = []
    for each in sums:
        held.append(each)
        advance(1)
        if len(held) == MERGED_AT_ONCE:
            held = [job.merge(held)]
    return job.merge(held)
