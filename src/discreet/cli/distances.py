"""What `distances` and `query` do: from points to sums of distances, and answers from them."""

from pathlib import Path
from typing import Any

import numpy as np

from discreet.cli.files import check_arrays, check_output, write_arrays
from discreet.cli.releases import ArrayFiles, Table, opened, table, write_release
from discreet.cli.shell import already_written, print_json, print_page
from discreet.errors import InvalidInput
from discreet.readers.distances.answers import Distances
from discreet.readers.distances.mechanism import DISTANCES
from discreet.tables import read_array

# So many answers are shown; the file has all.
_SHOWN = 10


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


def parse_bounds(text: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return lower and upper ends, typed as LOW,HIGH or one such pair for each column."""
    try:
        pairs = [[float(end) for end in pair.split(",")] for pair in text.split(":")]
        low, high = np.array(pairs).T
    except ValueError:
        raise InvalidInput(
            f"Expected --bounds {text!r} to be LOW,HIGH; or, for several columns, "
            "LOW,HIGH:LOW,HIGH:...",
        ) from None
    return (low[0], high[0]) if len(pairs) == 1 else (low, high)


def query_file(
    sums: Path, queries: Path, output: Path, *, stderr: bool, force: bool, as_json: bool
) -> None:
    """Answer queries from sums of distances; with `stderr`, into a .npz with that, too."""
    check_arrays(output, several=stderr, force=force, inputs=(sums, queries))
    asked = np.asarray(read_array(queries, "queries"))
    release = opened(sums, Distances)
    answers, errors = release.query(asked, stderr=True)
    made = {"out": answers, "stderr": errors} if stderr else {"out": answers}
    write_arrays(output, made, force=force)
    with already_written(output):
        if as_json:
            facts = {"shape": answers.shape, "median_stderr": float(np.median(errors))}
            print_json({"output": str(output), **facts})
            return
        shown = [
            f"{answer:.6g} ± {1.96 * error:.2g}"
            for answer, error in list(zip(answers.ravel(), errors.ravel(), strict=True))[:_SHOWN]
        ]
        more = ", ..." if answers.size > _SHOWN else ""
        print_page(f"{output}: {answers.size} answers: {', '.join(shown)}{more}")
