"""What commands read and write: rows in files, and what is released of them.

Rows come as a table, or as a file for each array. A release is built of them here, in several
processes or on a cluster, whatever its reader is; what a page says of one is made in `pages`.
"""

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from discreet._load import open_release
from discreet.cli.files import Delivery, check_output, output_file
from discreet.cli.parsing import parse_stated
from discreet.cli.shell import (
    already_written,
    has_terminal,
    print_described,
    print_json,
    print_page,
)
from discreet.errors import InvalidInput
from discreet.features.public_rows import PublicRows
from discreet.ledger import Ledger, Standing
from discreet.ledger.ledger import account_of
from discreet.ledger.standing import lines_of
from discreet.privacy import Neighbours, titled
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.memory import Memory
from discreet.readers.discovery import Discovered
from discreet.readers.distances.answers import Distances
from discreet.readers.glm import GeneralizedLinear
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.registry import AnyFile as ReleasedFile
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.table import Table as CountedTable
from discreet.sums.container import to_bytes
from discreet.sums.mechanism import AnyRelease, Mechanism, OnResolved, build
from discreet.tables import Rows, read_array, read_groups, split
from discreet.text import Corpus

AnyKind = TypeVar("AnyKind", bound="ReleasedFile | Corpus")

# What files hold, and what answers from each.
_RELEASES: dict[type, tuple[str, str]] = {
    Memory: ("a memory", ": discreet attend answers from it"),
    Memories: ("the context of a model", ": discreet.integrations puts it on one"),
    LeastSquares: ("a regression", ": discreet predict answers from it"),
    GeneralizedLinear: ("a regression", ": discreet predict answers from it"),
    SoftmaxRegression: ("a classifier", ": discreet predict answers from it"),
    Distances: ("sums of distances", ": discreet query answers from it"),
    CountedTable: ("a table of counts", ": discreet.load opens it, in Python"),
    Discovered: ("a list of names that were found", ": discreet.load opens it, in Python"),
    Corpus: ("a corpus", ": discreet corpus ask answers from it"),
}

_STRUCTURE = ("one of the paper's structures", ": discreet.load opens it, in Python")


@dataclass(frozen=True)
class ArrayFiles:
    """Keys, values and groups, each FILE or FILE:NAME."""

    keys: Path
    values: Path | None
    groups: Path | None

    @property
    def files(self) -> list[Path | None]:
        """All that is read."""
        return [self.keys, self.values, self.groups]

    def arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return these options and the rows, as `build` takes them."""
        return {
            **options,
            "keys": read_array(self.keys, "keys"),
            "values": None if self.values is None else read_array(self.values, "values"),
            "groups": None if self.groups is None else read_groups(self.groups),
        }


@dataclass(frozen=True)
class Table:
    """Columns of a file, or of all files of a directory or pattern."""

    source: Path
    rows: Rows

    @property
    def files(self) -> list[Path | None]:
        """All that is read."""
        return [self.source, *self.rows.files]

    def arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return these options and the rows, as `build` and `softmax_regression` take them.

        Every file is looked at before any row is read. Under "replace" the number of rows is
        public, and the default.
        """
        self.rows.check()
        hint = options.get("rows_hint")
        replaced = options.get("neighbours") == Neighbours.REPLACE
        if hint is None and replaced and not self.rows.by_record and self.rows.count is not None:
            hint = max(self.rows.count, 1)
        return {**options, "rows_hint": hint, "keys": self.rows}


def to_build(
    source: Path,
    values_file: Path | None,
    *,
    keys: str | None,
    values: str | None,
    groups: str | None,
) -> ArrayFiles | Table:
    """Return what to build from: a table, by names of columns, or arrays, by a second file."""
    if (keys is None) != (values is None):
        raise InvalidInput("Expected both --keys and --values: names of columns or arrays.")
    if keys is None and values_file is None:
        raise InvalidInput(
            f"Expected --keys and --values, the names of columns of {source}; or a second file, "
            "with values."
        )
    if keys is not None and values_file is not None:
        raise InvalidInput(
            f"Expected either --keys and --values, names of columns of {source}, or {values_file} "
            "as the file of values."
        )
    if values_file is not None:
        return ArrayFiles(source, values_file, None if groups is None else Path(groups))
    return table(source, keys=keys, values=values, groups=groups)


def table(source: Path, **names: Any) -> Table:  # noqa: ANN401 (those of Rows)
    """Return columns of a file, a directory or a pattern, which stands without a name.

    Args:
        source: as it was typed.
        **names: of columns, as `Rows` takes them.
    """
    path, name = split(source)
    if name is not None and not glob.has_magic(str(source)):
        raise InvalidInput(
            f"Expected {path} without a name: --keys and the like say what to read of it."
        )
    return Table(source, Rows(source, **names))


def public_rows(path: Path | None, name: str = "public") -> PublicRows | None:
    """Return the public rows in a file, if there is one: read once, however often they are used.

    Args:
        path: of the file.
        name: of the option that it came by.
    """
    return None if path is None else PublicRows(np.asarray(read_array(path, name)), name=name)


def opened_release(path: Path) -> "ReleasedFile | Corpus":
    """Return what is in a file, whatever it is, with all that it says of itself."""
    found: ReleasedFile | Corpus = open_release(_existing(path))
    return found


def opened(path: Path, *kinds: type[AnyKind]) -> AnyKind:
    """Return what is in a file, if it is of one of these kinds."""
    return of_kind(opened_release(path), path, *kinds)


def of_kind(found: "ReleasedFile | Corpus", path: Path, *kinds: type[AnyKind]) -> AnyKind:
    """Return what is in a file, if it is of one of these kinds.

    Args:
        found: what is in it.
        path: of the file.
        *kinds: that can be taken.
    """
    for kind in kinds:
        if isinstance(found, kind):
            return found
    wanted = " or ".join(dict.fromkeys(_RELEASES[kind][0] for kind in kinds))
    name, hint = _RELEASES.get(type(found), _STRUCTURE)
    raise InvalidInput(f"Expected {path} to be {wanted}, and it is {name}{hint}.")


def _existing(path: Path) -> Path:
    if not path.is_file():
        wrong = "no file" if path.exists() else "not there"
        raise InvalidInput(
            f"Expected {path} to be a file that discreet released, and it is {wrong}."
        )
    return path


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
    ledger: str | None,
    stated: Sequence[str] | None,
    **options: Any,  # noqa: ANN401 (of `released`)
) -> None:
    """Build a release and write it: whole, or not at all; print what it promises.

    Args:
        mechanism: what is built.
        given: the rows.
        output: where to write.
        force: whether a file that is there may be replaced.
        as_json: whether to print the whole card, as JSON.
        ledger: the file, or the database, of the ledger that counts it.
        stated: by the builder, as it was typed.
        **options: of the mechanism, and where it is built.
    """
    counting = None if ledger is None else Ledger(ledger)
    options["stated"] = parse_stated(stated)
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


def show_forecast(
    mechanism: Mechanism[Any, Any, Any],
    *,
    public: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of the mechanism's plan)
) -> None:
    """Print what a release would be like."""
    made = mechanism.forecast(public_rows=public_rows(public), **options)
    print_described(made, as_json=as_json)


def show_card(
    memory: Path,
    *,
    html: bool,
    output: Path | None,
    ledger: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print the card of whatever is in a file, or write it as a page; beside it a ledger's word."""
    if html:
        write_page(memory, output, ledger=ledger, force=force, as_json=as_json)
        return
    if output is not None:
        raise InvalidInput("Expected --html with --output: without it, nothing is written.")
    print_card(opened_release(memory), ledger=ledger, as_json=as_json)


def print_card(
    release: "ReleasedFile | Corpus", *, ledger: str | None = None, as_json: bool
) -> None:
    """Print a card, and beside it what a ledger knows of other releases.

    Args:
        release: whose card it is.
        ledger: the file, or the database, of a ledger that may know it.
        as_json: whether to print JSON.
    """
    standing = _standing(release, ledger)
    if as_json:
        print_json(_facts(release, standing))
    else:
        print_page(titled([*release.card.sentences, *lines_of(standing)]))


def _standing(release: "ReleasedFile | Corpus", ledger: str | None) -> Standing | None:
    """Return what a ledger knows of a release, if somebody gave one."""
    return None if ledger is None else Standing.of(release, Ledger(ledger))


def _facts(release: "ReleasedFile | Corpus", standing: Standing | None) -> dict[str, object]:
    """Return a card for programs, with what a ledger knows beside it."""
    known = {} if standing is None else {"ledger": standing.to_dict()}
    return {**release.card.to_dict(), **known}


def write_page(
    path: Path, output: Path | None, *, ledger: str | None, force: bool, as_json: bool
) -> None:
    """Write a released file as a page.

    Args:
        path: the released file.
        output: where to write; by default a file of the same name, in the current directory.
        ledger: the file, or the database, of a ledger that may know it.
        force: whether it may be replaced.
        as_json: whether to print the card as JSON besides.
    """
    from discreet.pages.release import as_html, whole_promise
    from discreet.pages.sheet import HOW_TO_GET_PICTURES

    page = Path(f"{path.stem}.html") if output is None else output
    check_output(page, force=force, inputs=(path, None if ledger is None else Path(ledger)))
    release = opened_release(path)
    standing = _standing(release, ledger)
    drawn = _can_draw()
    html = as_html(release, name=path.name, pictures=drawn, standing=standing).encode()
    with output_file(page, force=force) as file:
        file.write(html)
    with already_written(page):
        if as_json:
            print_json({"output": str(page), **_facts(release, standing)})
            return
        print_page(f"{page}: {whole_promise(release)}")
        if not drawn:
            print_page(f"No picture on the page. {HOW_TO_GET_PICTURES}")


def _can_draw() -> bool:
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        return False
    return True
