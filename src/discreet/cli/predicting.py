"""Commands of all readers but attention: from rows to a release, and from a release to answers.

`fit`, `regress` and `predict`, with `plan-fit` and `plan-regress` before anything is spent;
`distances` and `query`.
"""

import csv
import functools
from pathlib import Path
from typing import Any

import numpy as np

from discreet._typing import Floats
from discreet.cli.files import check_arrays, check_output, write_arrays
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
from discreet.cli.shell import aligned, already_written, print_json, print_page
from discreet.errors import InvalidInput
from discreet.readers.attention.reader import WITHIN
from discreet.readers.distances.answers import Distances
from discreet.readers.distances.mechanism import DISTANCES
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.tables import read_array

# No array holds a larger whole number.
_LARGEST = 2**63 - 1

# So many numbers are shown; the file has all.
_SHOWN, _DISTANCES_SHOWN = 20, 10

_HEADINGS = ("query", "number", "value", "±")

regress_file = functools.partial(release_files, LEAST_SQUARES)
show_regress_plan = functools.partial(show_forecast, LEAST_SQUARES)


def fit_file(
    data: Path,
    output: Path,
    *,
    keys: str,
    label: str,
    groups: str | None,
    classes: str,
    public: Path | None,
    force: bool,
    **options: Any,  # noqa: ANN401 (those of `write_release` and of the classifier)
) -> None:
    """Fit a classifier to a table and write it: whole, or not at all."""
    given = table(data, keys=keys, labels=label, groups=groups)
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


def predict_file(
    model: Path,
    queries: Path,
    output: Path,
    *,
    probabilities: bool,
    balanced: bool,
    stderr: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Predict labels or numbers, whatever the file is for."""
    check_arrays(output, several=probabilities or stderr, force=force, inputs=(model, queries))
    asked = np.asarray(read_array(queries, "queries"))
    fit = opened(model, SoftmaxRegression, LeastSquares)
    common: dict[str, Any] = {"force": force, "as_json": as_json}
    if isinstance(fit, LeastSquares):
        _refuse(model, "a classifier", {"--probabilities": probabilities, "--balanced": balanced})
        _predict_numbers(fit, asked, output, stderr=stderr, **common)
    elif isinstance(fit, SoftmaxRegression):
        _refuse(model, "a regression", {"--stderr": stderr})
        ways = {"probabilities": probabilities, "balanced": balanced}
        _predict_labels(fit, asked, output, **ways, **common)


def _predict_labels(
    fit: SoftmaxRegression,
    queries: Floats,
    output: Path,
    *,
    probabilities: bool,
    balanced: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write labels; with `probabilities`, a .npz with those, too."""
    made = {"labels": fit.predict(queries, balanced=balanced)}
    if probabilities:
        made |= {"probabilities": fit.probabilities(queries), "classes": fit.classes}
    write_arrays(output, made, force=force)
    shape = made["labels"].shape
    with already_written(output):
        if as_json:
            facts = {"shape": shape, "classes": fit.classes.tolist()}
            print_json({"output": str(output), **facts})
        else:
            print_page(f"{output}: labels of shape {shape}, each one of {len(fit.classes)} classes")


def _predict_numbers(
    fit: LeastSquares, queries: Floats, output: Path, *, stderr: bool, force: bool, as_json: bool
) -> None:
    """Write predictions; with `stderr`, a .npz with standard errors, too, which are shown."""
    if not stderr:
        made = {"predictions": fit.predict(queries)}
    else:
        made = dict(zip(("predictions", "stderr"), fit.predict(queries, stderr=True), strict=True))
    write_arrays(output, made, force=force)
    shape = made["predictions"].shape
    errors = made.get("stderr", np.empty(0))
    typical = {"median_stderr": float(np.median(errors))} if errors.size else {}
    with already_written(output):
        if as_json:
            print_json({"output": str(output), "shape": shape, **typical})
        elif not typical:
            print_page(f"{output}: predictions of shape {shape}")
        else:
            _print_numbers(made, output)


def _print_numbers(made: dict[str, Floats], output: Path) -> None:
    """Print how far off the noise makes predictions, and the first of them."""
    predictions, errors = made["predictions"], made["stderr"]
    typical = WITHIN * float(np.median(errors))
    print_page(
        f"{output}: predictions of shape {predictions.shape}, ±{typical:.2g} in the median (95% of "
        "the time; noise alone)"
    )
    width = predictions.shape[-1]
    shown = zip(predictions.ravel()[:_SHOWN], errors.ravel()[:_SHOWN], strict=True)
    cells = [
        (str(place // width), str(place % width), f"{value:.3g}", f"{WITHIN * error:.2g}")
        for place, (value, error) in enumerate(shown)
    ]
    for line in aligned([_HEADINGS, *cells], gap=2, right=True):
        print_page(line)
    if predictions.size > _SHOWN:
        print_page(f"and {predictions.size - _SHOWN:,} more, in the file")


def _refuse(model: Path, kind: str, flags: dict[str, bool]) -> None:
    """Raise `InvalidInput` if a flag was given that a file of another kind answers to."""
    for flag, given in flags.items():
        if given:
            raise InvalidInput(f"Expected {flag} with {kind}, which {model} is not.")


def show_fit_plan(*, classes: str, **options: Any) -> None:  # noqa: ANN401 (of `show_forecast`)
    """Print the plan of a classifier."""
    show_forecast(SOFTMAX, classes=parse_count_or_classes(classes), **options)


def parse_classes(text: str, *, numbers: bool) -> list[str] | list[float]:
    """Return the classes in a list like a,b,c; one with a comma in it stands in double quotes.

    Args:
        text: as it was typed.
        numbers: whether labels are numbers.
    """
    try:
        [names] = csv.reader([text])
    except (csv.Error, ValueError):  # a line break, or nothing
        raise InvalidInput("Expected --classes to be a list like a,b,c.") from None
    return [_number(name) for name in names] if numbers else [name.strip() for name in names]


def parse_count_or_classes(text: str) -> int | list[str]:
    """Return how many classes there are, or the list of them."""
    names = [str(name) for name in parse_classes(text, numbers=False)]
    if len(names) != 1:
        return names
    try:
        return int(names[0])
    except ValueError:
        raise InvalidInput("Expected --classes to be a number, or a list like a,b,c.") from None


def _number(name: str) -> float:
    """Return a class that is a number: a whole one if it is written like one."""
    for kind in (int, float):
        try:
            number = kind(name)
        except ValueError:
            continue
        if abs(number) <= _LARGEST:  # which NaN is not, either
            return number
    raise InvalidInput("Expected --classes to be finite numbers, as labels are.")


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
            for answer, error in list(zip(answers.ravel(), errors.ravel(), strict=True))[
                :_DISTANCES_SHOWN
            ]
        ]
        more = ", ..." if answers.size > _DISTANCES_SHOWN else ""
        print_page(f"{output}: {answers.size} answers: {', '.join(shown)}{more}")
