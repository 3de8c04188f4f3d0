"""Commands of all readers but attention: from rows to a release.

`fit` and `regress`, with `plan-fit` and `plan-regress` before anything is spent; `distances` and
`query`. What models predict is in `predictions`.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from discreet._typing import Floats
from discreet.cli.files import check_output
from discreet.cli.outputs import Ids, Output, places
from discreet.cli.parsing import parse_bounds, parse_classes, parse_count_or_classes
from discreet.cli.releases import (
    ArrayFiles,
    Table,
    opened,
    public_rows,
    release_files,
    show_forecast,
    table,
    write_release,
)
from discreet.cli.shell import print_json, print_page
from discreet.cli.tabular import SCALES, fit_table, regress_table
from discreet.errors import InvalidInput
from discreet.readers.distances.answers import Distances
from discreet.readers.distances.mechanism import DISTANCES
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.tables import read_array
from discreet.tables.whole import TABLES, column_names

# Options that are about keys, with what they are if nobody gives them; and what is there in their
# place if columns have a schema.
_OF_KEYS = {
    "key_norm": 1.0,
    "value_norm": 1.0,
    "memory_limit": 2e9,
    "ridge": 0.5,
    "share": None,
    "workers": None,
    "scheduler": None,
}
_INSTEAD = "a schema says what columns hold, and all else follows from it"

# So many distances are shown; the file has all.
_DISTANCES_SHOWN = 10

show_regress_plan = functools.partial(show_forecast, LEAST_SQUARES)


def fit_file(
    data: Path,
    output: Path,
    *,
    keys: str | None,
    schema: Path | None,
    label: str,
    groups: str | None,
    classes: str,
    public: Path | None,
    force: bool,
    **options: Any,  # noqa: ANN401 (those of `write_release` and of the classifier)
) -> None:
    """Fit a classifier to a table and write it: whole, or not at all."""
    if schema is not None:
        _refuse_with_schema(options, keys=keys, public=public)
        named: dict[str, Any] = {"label": label, "groups": groups, "classes": classes}
        fit_table(data, output, schema=schema, force=force, **named, **options)
        return
    _check_has_keys(data, keys)
    given = table(data, keys=keys or "keys", labels=label, groups=groups)
    check_output(output, force=force, inputs=(*given.files, public))
    write_release(
        SOFTMAX,
        given,
        output,
        force=force,
        classes=parse_classes(classes, numbers=not given.rows.has_texts),
        public_rows=public_rows(public),
        **options,
    )


def _refuse_with_schema(options: dict[str, Any], **given: object) -> None:
    """Raise `InvalidInput` if an option was given that is about keys; take such options away.

    Args:
        options: of the command; those that only keys have are removed.
        **given: further ones, by name; None if they were not given.
    """
    own = {name: options.pop(name) for name in _OF_KEYS.keys() & options.keys()}
    for name, value in {**given, **own}.items():
        if value != _OF_KEYS.get(name):
            option = f"--{name.replace('_', '-')}" if name.islower() else name
            raise InvalidInput(f"Expected --schema or {option}, not both: {_INSTEAD}.")


def _check_has_keys(data: Path, keys: str | None) -> None:
    """Raise `InvalidInput` if nobody said what to read of a table, and it is not to be guessed."""
    if keys is not None or not data.is_file() or data.suffix.lower() not in TABLES:
        return
    if data.suffix.lower() == ".csv" or "keys" not in column_names(data):
        raise InvalidInput(
            f"Expected --schema, a file that says what the columns of {data} hold; or --keys, "
            "names of columns of numbers in a .parquet file."
        )


def regress_file(
    source: Path,
    values_file: Path | None,
    output: Path,
    *,
    schema: Path | None,
    target: str | None,
    target_bounds: str | None,
    target_scale: str,
    keys: str | None,
    values: str | None,
    groups: str | None,
    public: Path | None,
    force: bool,
    **options: Any,  # noqa: ANN401 (those of `release_files` or of the regressor)
) -> None:
    """Fit a regression to keys and values, or to a table with a schema, and write it."""
    arrays: dict[str, Any] = {"keys": keys, "values": values, "public": public}
    if schema is None:
        if target is not None or target_bounds is not None or target_scale != SCALES[0]:
            raise InvalidInput("Expected --target and the like with --schema.")
        common: dict[str, Any] = {"groups": groups, "force": force, **options}
        release_files(LEAST_SQUARES, source, values_file, output, **arrays, **common)
        return
    _refuse_with_schema(options, VALUES_FILE=values_file, **arrays)
    named: dict[str, Any] = {"target": target, "target_bounds": target_bounds}
    named |= {"target_scale": target_scale, "groups": groups, "force": force}
    regress_table(source, output, schema=schema, **named, **options)


def show_fit_plan(*, classes: str, **options: Any) -> None:  # noqa: ANN401 (of `show_forecast`)
    """Print the plan of a classifier."""
    show_forecast(SOFTMAX, classes=parse_count_or_classes(classes), **options)


def distances_file(
    source: Path,
    weights_file: Path | None,
    output: Path,
    *,
    keys: str | None,
    weights: str | None,
    groups: str | None,
    bounds: str,
    force: bool,
    **options: Any,  # noqa: ANN401 (those of `write_release` and of `distances`)
) -> None:
    """Release sums of distances to the points in a file: whole, or not at all."""
    given = _given(source, weights_file, keys=keys, weights=weights, groups=groups)
    check_output(output, force=force, inputs=given.files)
    weighted = weights is not None or weights_file is not None
    ends = parse_bounds(bounds)
    write_release(DISTANCES, given, output, force=force, bounds=ends, weighted=weighted, **options)


def _given(
    source: Path,
    weights_file: Path | None,
    *,
    keys: str | None,
    weights: str | None,
    groups: str | None,
) -> ArrayFiles | Table:
    """Return what to read: columns of a table, or a file for each array."""
    if keys is None and weights is not None:
        raise InvalidInput("Expected --weights to come with --keys: names of columns.")
    if keys is None:
        return ArrayFiles(source, weights_file, None if groups is None else Path(groups))
    if weights_file is not None:
        raise InvalidInput("Expected --weights, a column, or a second file: not both.")
    return table(source, keys=keys, values=weights or keys, groups=groups)


def query_file(
    sums: Path,
    queries: Path,
    output: Path,
    *,
    file_format: str | None,
    row_id: str | None,
    stderr: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Answer queries from sums of distances; with `stderr`, that is written, too."""
    out = Output.checked(
        output,
        file_format,
        arrays="npz" if stderr else "npy",
        force=force,
        as_json=as_json,
        inputs=(sums, queries),
    )
    ids = Ids.read(queries, row_id, out)
    asked = np.asarray(read_array(queries, "queries"))
    answers, errors = opened(sums, Distances).query(asked, stderr=True)
    if out.has_rows:
        columns = {**places(answers.shape), "answer": answers.ravel()}
        columns |= {"stderr": errors.ravel()} if stderr else {}
        out.write([ids.beside(columns) if ids else columns])
    else:
        out.write_arrays({"out": answers, "stderr": errors} if stderr else {"out": answers})
    out.tell(lambda: _show_distances(answers, errors, output, as_json=as_json))


def _show_distances(answers: Floats, errors: Floats, output: Path, *, as_json: bool) -> None:
    if as_json:
        facts = {"shape": answers.shape, "median_stderr": float(np.median(errors))}
        print_json({"output": str(output), **facts})
        return
    pairs = zip(answers.ravel()[:_DISTANCES_SHOWN], errors.ravel(), strict=False)
    shown = [f"{answer:.6g} ± {1.96 * error:.2g}" for answer, error in pairs]
    more = ", ..." if answers.size > _DISTANCES_SHOWN else ""
    print_page(f"{output}: {answers.size} answers: {', '.join(shown)}{more}")
