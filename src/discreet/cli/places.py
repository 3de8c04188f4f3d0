"""Where a memory is built: in this process, in several of this machine, or on a cluster."""

from collections.abc import Callable
from functools import partial
from typing import Any

from discreet.cli.inputs import ArrayFiles, Table
from discreet.errors import InvalidInput
from discreet.readers.attention.building import build
from discreet.readers.attention.memory import Memory


def build_on(
    given: ArrayFiles | Table, *, workers: int | None, scheduler: str | None
) -> Callable[..., Memory]:
    """Return what builds, with the arguments that `build` takes, of what was given.

    Args:
        given: the rows.
        workers: processes of this machine, if somebody asked for them.
        scheduler: the address of a cluster, likewise.
    """
    if workers is None and scheduler is None:
        return build
    if workers is not None and scheduler is not None:
        raise InvalidInput("Expected --workers or --scheduler: a cluster has workers of its own.")
    if not isinstance(given, Table):
        raise InvalidInput(
            "Expected --keys and --values, columns of a table, for several workers: arrays in "
            "files of their own are read by one."
        )
    if scheduler is not None:
        return partial(_on_cluster, scheduler)
    from discreet.shards import processes

    return partial(_renamed, processes.build, workers=workers)


def _on_cluster(scheduler: str, **arguments: Any) -> Memory:  # noqa: ANN401
    from discreet.shards import dask

    with dask.connected(scheduler) as client:
        return _renamed(dask.build, client=client, **arguments)


def _renamed(build: Callable[..., Memory], *, keys: object, **arguments: Any) -> Memory:  # noqa: ANN401
    """Call a builder whose rows are its source."""
    return build(keys, **arguments)
