"""Where Dask runs tasks: on the cluster that was given, or on one of this machine.

The key of a job is in its tasks: in the memory of the scheduler, and on connections, which are
encrypted where the cluster is ours.
"""

import logging
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster

from discreet._warn import warn
from discreet.errors import InvalidInput, PrivacyLeakWarning

# Seconds that a scheduler has to answer in.
_PATIENCE = 10


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
