"""From rows to a released file, whatever is built: here, in several processes, or on a cluster."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.cli.files import Delivery, check_output
from discreet.cli.inputs import ArrayFiles, Table, public_rows, to_build
from discreet.cli.shell import already_written, has_terminal, print_json, print_page
from discreet.errors import InvalidInput
from discreet.ledger import Ledger
from discreet.ledger.ledger import account_of
from discreet.sums.container import to_bytes
from discreet.sums.mechanism import AnyRelease, Mechanism, OnResolved, build


def release_files(
    mechanism: Mechanism[Any, Any, Any],
    source: Path,
    values_file: Path | None,
    output: Path,
    *,
    keys: str | None,
    values: str | None,
    groups: str | None,
    public: Path | None,
    force: bool,
    **options: Any,  # noqa: ANN401 (those of `write_release` and of the mechanism)
) -> None:
    """Build a release from keys and values in files, and write it: whole, or not at all.

    Args:
        mechanism: what is built.
        source: a table, or the file of keys.
        values_file: that of values, if there is no table.
        output: where to write.
        keys: columns of the table.
        values: likewise.
        groups: the record of each row: a column of the table, or a file.
        public: a file of public rows.
        force: whether a file that is there may be replaced.
        **options: of the mechanism, and where it is built and counted.
    """
    given = to_build(source, values_file, keys=keys, values=values, groups=groups)
    check_output(output, force=force, inputs=(*given.files, public))
    write_release(mechanism, given, output, force=force, public_rows=public_rows(public), **options)


def write_release(
    mechanism: Mechanism[Any, Any, Any],
    given: ArrayFiles | Table,
    output: Path,
    *,
    force: bool,
    as_json: bool,
    ledger: Path | None,
    **options: Any,  # noqa: ANN401 (of `released`)
) -> None:
    """Build a release and write it: whole, or not at all; print what it promises.

    Args:
        mechanism: what is built.
        given: the rows.
        output: where to write.
        force: whether a file that is there may be replaced.
        as_json: whether to print the whole card, as JSON.
        ledger: the file of the ledger that counts it.
        **options: of the mechanism, and where it is built.
    """
    counting = None if ledger is None else Ledger(ledger)
    with Delivery(output, force=force) as delivery:
        made = released(
            mechanism, given, on_resolved=delivery.claim_release, ledger=counting, **options
        )
        delivery.write_release(made, lambda: to_bytes(made), counting)
    with already_written(output):
        if as_json:
            print_json({"output": str(output), **made.card.to_dict()})
        else:
            print_page(f"{output}: {made.guarantee}")


def released(
    mechanism: Mechanism[Any, Any, AnyRelease],
    given: ArrayFiles | Table,
    *,
    on_resolved: OnResolved,
    workers: int | None = None,
    scheduler: str | None = None,
    **options: Any,  # noqa: ANN401 (the mechanism's own, and where it is counted)
) -> AnyRelease:
    """Return what is released of the rows that were given.

    Args:
        mechanism: what is built.
        given: the rows.
        on_resolved: told the public settings before rows are added up.
        workers: processes of this machine, if somebody asked for them.
        scheduler: the address of a cluster, likewise.
        **options: of the mechanism; and `ledger`, `dataset`, `analyst`.
    """
    _check(given, workers, scheduler)
    arguments = given.arguments(options)
    keys, values, groups = (arguments.pop(name, None) for name in ("keys", "values", "groups"))
    account = account_of(*(arguments.pop(name, None) for name in ("ledger", "dataset", "analyst")))
    chosen = mechanism.options(**arguments)
    common: dict[str, Any] = {
        "account": account,
        "progress": has_terminal(),
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
    hint = source.rows_hint(chosen.rows_hint, chosen.neighbours)
    [release] = build(mechanism, source, replace(chosen, rows_hint=hint), **common)
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
