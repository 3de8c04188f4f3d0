"""Predictions of estimators: rows of a table in, labels or numbers out, as a table or as arrays."""

import csv
import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet._typing import Array
from discreet.cli.files import check_arrays, check_output, output_file, write_arrays
from discreet.cli.shell import aligned, already_written, print_json, print_page
from discreet.cli.tabular import opened_estimator
from discreet.errors import InvalidInput
from discreet.readers.attention.reader import WITHIN
from discreet.readers.registry import Readable
from discreet.tables import read_array
from discreet.tables.whole import TABLES, read_table

# Standard output, as a file.
STANDARD_OUTPUT = Path("-")

# So many numbers are shown; the file has all.
_SHOWN = 20

_HEADINGS = ("query", "number", "value", "±")


def predict_rows(
    release: Readable,
    queries: Path,
    output: Path,
    *,
    model: Path,
    probabilities: bool,
    balanced: bool,
    stderr: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Predict labels or numbers for the rows of a table, with the estimator in a file.

    Args:
        release: what is in the file.
        queries: the table; of an estimator without a schema, an array.
        output: where to write: a .csv, .npz or .npy file; - for standard output.
        model: the file.
        probabilities: whether those of classes are written, too.
        balanced: whether to judge as if all classes were equally frequent.
        stderr: whether standard errors of numbers are written, too.
        force: whether a file that is there may be replaced.
        as_json: whether to print JSON.
    """
    fitted = opened_estimator(release)
    classifies = hasattr(fitted, "predict_proba")
    if classifies:
        refuse_flags(model, "a regression", {"--stderr": stderr})
    else:
        flags = {"--probabilities": probabilities, "--balanced": balanced}
        refuse_flags(model, "a classifier", flags)
    _check_output(
        output, several=probabilities or stderr, force=force, as_json=as_json, read=(model, queries)
    )
    rows = _queries(fitted, queries)
    if balanced:
        fitted.decision = "balanced"
    with warnings.catch_warnings():
        # An array has no names of columns, and is taken in their order.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        made = (
            _predicted_labels(fitted, rows, probabilities=probabilities)
            if classifies
            else _predicted_numbers(fitted, rows, stderr=stderr)
        )
    _write_predictions(made, output, force=force)
    if output != STANDARD_OUTPUT:
        with already_written(output):
            _print_predictions(made, output, fitted, as_json=as_json)


def refuse_flags(model: Path, kind: str, flags: Mapping[str, bool]) -> None:
    """Raise `InvalidInput` if a flag was given that a file of another kind answers to.

    Args:
        model: the file.
        kind: what it would have to be.
        flags: whether each was given.
    """
    for flag, given in flags.items():
        if given:
            raise InvalidInput(f"Expected {flag} with {kind}, which {model} is not.")


def _check_output(
    output: Path, *, several: bool, force: bool, as_json: bool, read: tuple[Path, ...]
) -> None:
    """Raise `InvalidInput` unless predictions can be written there."""
    if output == STANDARD_OUTPUT:
        if as_json:
            raise InvalidInput("Expected --json with a file: --output - prints the predictions.")
    elif output.suffix.lower() == ".csv":
        check_output(output, force=force, inputs=read)
    elif output.suffix.lower() not in {".npy", ".npz"}:
        raise InvalidInput(f"Expected {output} to end in .csv, .npz or .npy.")
    else:
        check_arrays(output, several=several, force=force, inputs=read)


def _queries(fitted: Any, queries: Path) -> Any:  # noqa: ANN401
    """Return the rows that are asked about, as the estimator takes them."""
    schema = fitted.columns
    if schema is None:
        return np.asarray(read_array(queries, "queries"))
    if queries.suffix.lower() not in TABLES:
        raise InvalidInput(
            f"Expected {queries} to be a table, a {' or '.join(TABLES)} file, with the columns "
            f"that the model looks at: {', '.join(schema.names)}."
        )
    return read_table(queries, schema).columns


def _predicted_labels(fitted: Any, rows: Any, *, probabilities: bool) -> dict[str, Array]:  # noqa: ANN401
    made = {"labels": fitted.predict(rows)}
    if probabilities:
        shares = fitted.predict_proba(rows)
        # Of several labels at once there is one probability for each.
        several = made["labels"].ndim > 1
        classes = np.arange(shares.shape[1]) if several else fitted.classes_
        made |= {"probabilities": shares, "classes": classes}
    return made


def _predicted_numbers(fitted: Any, rows: Any, *, stderr: bool) -> dict[str, Array]:  # noqa: ANN401
    if not stderr:
        return {"predictions": fitted.predict(rows)}
    return dict(zip(("predictions", "stderr"), fitted.predict(rows, return_std=True), strict=True))


def _write_predictions(made: Mapping[str, Array], output: Path, *, force: bool) -> None:
    if output == STANDARD_OUTPUT:
        print(_as_csv(made), end="")  # noqa: T201 (this is the output)
    elif output.suffix.lower() == ".csv":
        with output_file(output, force=force) as file:
            file.write(_as_csv(made).encode())
    else:
        write_arrays(output, made, force=force)


def _as_csv(made: Mapping[str, Array]) -> str:
    """Return a line for each row: what was predicted, and what comes with it."""
    columns: dict[str, list[Any]] = {}
    for name, title in (("labels", "label"), ("predictions", "prediction"), ("stderr", "stderr")):
        if name in made:
            columns |= _named(made[name], title)
    if "probabilities" in made:
        named = zip(made["classes"].tolist(), made["probabilities"].T, strict=True)
        columns |= {f"p_{each}": share.tolist() for each, share in named}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _named(values: Array, title: str) -> dict[str, list[Any]]:
    """Return values (m,) under a title; those of several outputs (m, k) under one each."""
    if values.ndim == 1:
        return {title: values.tolist()}
    return {f"{title}_{place}": each.tolist() for place, each in enumerate(values.T)}


def _print_predictions(
    made: Mapping[str, Array],
    output: Path,
    fitted: Any,  # noqa: ANN401
    *,
    as_json: bool,
) -> None:
    shape = next(iter(made.values())).shape
    if "labels" in made:
        classes = fitted.classes_.tolist()
        if as_json:
            print_json({"output": str(output), "shape": shape, "classes": classes})
        else:
            print_page(f"{output}: labels of shape {shape}, each one of {len(classes)} classes")
        return
    errors = made.get("stderr", np.empty(0))
    if as_json:
        typical = {"median_stderr": float(np.median(errors))} if errors.size else {}
        print_json({"output": str(output), "shape": shape, **typical})
    elif not errors.size:
        print_page(f"{output}: predictions of shape {shape}")
    else:
        print_numbers(made["predictions"], errors, output)


def print_numbers(predictions: Array, errors: Array, output: Path) -> None:
    """Print how far off the noise makes predictions, and the first of them.

    Args:
        predictions: shape (..., k), or (m,).
        errors: one standard error of each.
        output: the file that they are in.
    """
    print_page(
        f"{output}: predictions of shape {predictions.shape}, ±"
        f"{WITHIN * float(np.median(errors)):.2g} in the median (95% of the time; noise alone)"
    )
    width = 1 if predictions.ndim == 1 else predictions.shape[-1]
    shown = zip(predictions.ravel()[:_SHOWN], errors.ravel()[:_SHOWN], strict=True)
    cells = [
        (str(place // width), str(place % width), f"{value:.3g}", f"{WITHIN * error:.2g}")
        for place, (value, error) in enumerate(shown)
    ]
    for line in aligned([_HEADINGS, *cells], gap=2, right=True):
        print_page(line)
    if predictions.size > _SHOWN:
        print_page(f"and {predictions.size - _SHOWN:,} more, in the file")
