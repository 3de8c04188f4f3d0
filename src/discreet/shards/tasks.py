"""What workers do, whoever starts them: a task gets a copy of the job, and returns sealed bytes."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError, InvalidInput
from discreet.shards.job import Job, JobSecret
from discreet.sums.settings import Settings
from discreet.tables import Rows

# The names of columns, as `Rows` takes them; None for a table that is a `Rows` already.
Named = dict[str, Any] | None


def guarded(work: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401
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
    if isinstance(error, InvalidInput):
        return error.copy()
    if isinstance(error, DiscreetError):
        return type(error)(str(error))
    if isinstance(error, OSError):
        return OSError(error.errno, error.strerror, error.filename)
    if isinstance(error, MemoryError):
        return MemoryError()  # numpy's own names how many rows there were
    return DiscreetError(f"Expected a task to end well: {type(error).__name__}.")


def with_job(
    work: Callable[..., Any],
    secret: JobSecret,
    settings: Settings[Any],
    *given: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Do something with a copy of the job."""
    return work(Job.copy_of(secret, settings), *given)


def partial(job: Job, table: object, columns: Named, name: str) -> bytes:
    """Return the sums over one shard."""
    return job.partial(opened(table, columns, job.widths), shard=name, threads=1)


def scatter(job: Job, table: object, columns: Named, name: str, parts: int) -> list[bytes]:
    """Return the rows of one shard, divided by record."""
    rows = opened(table, columns, job.widths)
    return job.scatter(rows.chunks(), shard=name, parts=parts)


def gather(job: Job, pieces: Iterable[bytes], part: int, parts: int, names: Sequence[str]) -> bytes:
    """Return the sums over all records of one part."""
    return job.gather(pieces, part=part, parts=parts, expected=names, threads=1)


def merge(job: Job, sums: Sequence[bytes]) -> bytes:
    """Return the sums of several."""
    return job.merge(sums)


def widths(table: object, columns: Named) -> tuple[int, int]:
    """Return the widths of keys and values."""
    rows = opened(table, columns, None)
    return rows.key_dim, rows.value_dim


def opened(table: object, columns: Named, widths: tuple[int, int] | None) -> Rows:
    """Return the rows of a table."""
    return table if isinstance(table, Rows) else Rows(table, **(columns or {}), widths=widths)


def scatter_to_files(job: Job, table: Rows, paths: Sequence[str]) -> None:
    """Put the rows of one shard, divided by record and sealed, into one file for each part."""
    pieces = scatter(job, table, None, table.name, len(paths))
    for path, piece in zip(paths, pieces, strict=True):
        try:
            Path(path).write_bytes(piece)
        except OSError as error:  # of a full disk, which says not where
            raise OSError(error.errno, error.strerror, path) from None


def gather_from_files(
    job: Job, paths: Sequence[str], part: int, parts: int, names: Sequence[str]
) -> bytes:
    """Return the sums over all records of one part, from what others put into files."""
    return gather(job, (Path(path).read_bytes() for path in paths), part, parts, names)
