"""Where a release is made: in this process, in several of this machine, or on a cluster."""

from typing import Any

from discreet.cli.inputs import ArrayFiles, Table
from discreet.errors import InvalidInput
from discreet.ledger.ledger import account_of
from discreet.sums.mechanism import AnyRelease, Mechanism, OnResolved, build


def released(
    mechanism: Mechanism[Any, Any, AnyRelease],
    given: ArrayFiles | Table,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool,
    on_resolved: OnResolved,
    **options: Any,  # noqa: ANN401 (the mechanism's own, and where it is counted)
) -> AnyRelease:
    """Return what is released of the rows that were given.

    Args:
        mechanism: what is built.
        given: the rows.
        workers: processes of this machine, if somebody asked for them.
        scheduler: the address of a cluster, likewise.
        progress: whether to show a progress bar.
        on_resolved: told the public settings before rows are added up.
        **options: of the mechanism; and `ledger`, `dataset`, `analyst`.
    """
    _check(given, workers, scheduler)
    arguments = given.arguments(options)
    keys, values, groups = (arguments.pop(name, None) for name in ("keys", "values", "groups"))
    account = account_of(*(arguments.pop(name, None) for name in ("ledger", "dataset", "analyst")))
    chosen = mechanism.options(**arguments)
    common: dict[str, Any] = {
        "account": account,
        "progress": progress,
        "on_resolved": on_resolved,
    }
    if scheduler is not None:
        from discreet.shards import dask

        with dask.connected(scheduler) as client:
            return dask.build_on(mechanism, keys, chosen, columns={}, client=client, **common)
    if workers is not None:
        from discreet.shards import processes

        return processes.build_files(mechanism, keys, chosen, workers=workers, **common)
    source = mechanism.source(keys, values, groups, chosen)
    [release] = build(mechanism, source, chosen, **common)
    return release


def _check(given: ArrayFiles | Table, workers: int | None, scheduler: str | None) -> None:
    """Raise `InvalidInput` if nobody can build there."""
    if workers is None and scheduler is None:
        return
    if workers is not None and scheduler is not None:
        raise InvalidInput("Expected --workers or --scheduler: a cluster has workers of its own.")
    if not isinstance(given, Table):
        raise InvalidInput(
            "Expected --keys and --values, columns of a table, for several workers: arrays in "
            "files of their own are read by one."
        )
