"""What `predict` does: queries in, labels or numbers out, as rows with names or as arrays.

A model with a schema (an estimator of a table) is asked for the rows of a table; any other for an
array.
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from discreet._typing import Array
from discreet.cli.outputs import Columns, Ids, Output, places
from discreet.cli.releases import of_kind, opened_release
from discreet.cli.shell import aligned, print_json, print_page
from discreet.cli.tabular import is_estimator, opened_estimator
from discreet.errors import InvalidInput
from discreet.readers.attention.reader import WITHIN
from discreet.readers.glm import GeneralizedLinear
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.tables import read_array
from discreet.tables.whole import TABLES, read_table

# So many numbers are shown; the file has all.
_SHOWN = 20

_HEADINGS = ("query", "number", "value", "±")

# Arrays by name, and the columns that they become.
_TITLES = (("labels", "label"), ("predictions", "prediction"), ("stderr", "stderr"))


def predict_file(
    model: Path,
    queries: Path,
    output: Path,
    *,
    file_format: str | None,
    row_id: str | None,
    probabilities: bool,
    balanced: bool,
    stderr: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Predict labels or numbers, whatever the file is for, and write them.

    Args:
        model: the file.
        queries: a table, or an array.
        output: where to write; - for standard output.
        file_format: of what is written, if the ending does not say it.
        row_id: a column of the queries' file that is written before each prediction.
        probabilities: whether those of classes are written, too.
        balanced: whether to judge as if all classes were equally frequent.
        stderr: whether standard errors of numbers are written, too.
        force: whether a file that is there may be replaced.
        as_json: whether to print JSON.
    """
    fitted = _opened(model)
    classifies = hasattr(fitted, "predict_proba") or isinstance(fitted, SoftmaxRegression)
    if classifies:
        _refuse_flags(model, "a regression", {"--stderr": stderr})
    else:
        flags = {"--probabilities": probabilities, "--balanced": balanced}
        _refuse_flags(model, "a classifier", flags)
    out = Output.checked(
        output,
        file_format,
        arrays="npz" if probabilities or stderr else "npy",
        force=force,
        as_json=as_json,
        inputs=(model, queries),
    )
    ids = Ids.read(queries, row_id, out)
    rows = _queries(fitted, queries)
    made = (
        _labels(fitted, rows, probabilities=probabilities, balanced=balanced)
        if classifies
        else _numbers(fitted, rows, stderr=stderr)
    )
    if out.has_rows:
        heads = getattr(fitted, "heads", None)  # of a release; an estimator answers rows
        shape = next(iter(made.values())).shape[:1] if heads is None else rows.shape[:-1]
        columns = _columns(made, shape, heads=len(heads or ()))
        out.write([ids.beside(columns) if ids else columns])
    else:
        out.write_arrays(made)
    classes = getattr(fitted, "classes_", getattr(fitted, "classes", None))
    out.tell(lambda: _print_predictions(made, output, classes, as_json=as_json))


def _opened(model: Path) -> Any:  # noqa: ANN401 (an estimator is a class of an extra)
    """Return what predicts: an estimator of a table, or of arrays, or a bare release."""
    release = opened_release(model)
    if is_estimator(release):
        return opened_estimator(release)
    return of_kind(release, model, SoftmaxRegression, LeastSquares, GeneralizedLinear)


def _refuse_flags(model: Path, kind: str, flags: Mapping[str, bool]) -> None:
    """Raise `InvalidInput` if a flag was given that a file of another kind answers to.

    Args:
        model: the file.
        kind: what it would have to be.
        flags: whether each was given.
    """
    for flag, given in flags.items():
        if given:
            raise InvalidInput(f"Expected {flag} with {kind}, which {model} is not.")


def _queries(fitted: Any, queries: Path) -> Any:  # noqa: ANN401
    """Return the rows that are asked about, as the model takes them."""
    schema = getattr(fitted, "columns", None)
    if schema is None:
        return np.asarray(read_array(queries, "queries"))
    if queries.suffix.lower() not in TABLES:
        raise InvalidInput(
            f"Expected {queries} to be a table, a {' or '.join(TABLES)} file, with the columns "
            f"that the model looks at: {', '.join(schema.names)}."
        )
    return read_table(queries, schema).columns


def _labels(
    fitted: Any,  # noqa: ANN401
    rows: Any,  # noqa: ANN401
    *,
    probabilities: bool,
    balanced: bool,
) -> dict[str, Array]:
    if isinstance(fitted, SoftmaxRegression):
        made = {"labels": fitted.predict(rows, balanced=balanced)}
        if probabilities:
            made |= {"probabilities": fitted.probabilities(rows), "classes": fitted.classes}
        return made
    if balanced:
        fitted.decision = "balanced"
    with _without_names():
        made = {"labels": fitted.predict(rows)}
        if probabilities:
            shares = fitted.predict_proba(rows)
            # Of several labels at once there is one probability for each.
            several = made["labels"].ndim > 1
            classes = np.arange(shares.shape[1]) if several else fitted.classes_
            made |= {"probabilities": shares, "classes": classes}
    return made


def _numbers(fitted: Any, rows: Any, *, stderr: bool) -> dict[str, Array]:  # noqa: ANN401
    is_release = isinstance(fitted, LeastSquares | GeneralizedLinear)
    flag = {"stderr" if is_release else "return_std": True} if stderr else {}
    with _without_names():
        found = fitted.predict(rows, **flag)
    return dict(zip(("predictions", "stderr"), found if stderr else (found,), strict=False))


@contextmanager
def _without_names() -> Iterator[None]:
    """Take an array in the order of its columns, which have no names, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def _columns(made: Mapping[str, Array], shape: tuple[int, ...], *, heads: int) -> Columns:
    """Return what was predicted, and what comes with it, with a row for each query.

    Args:
        made: arrays by name.
        shape: of the queries, without the numbers of each.
        heads: how many axes of it are those of heads.
    """

    def rows(array: Array) -> Array:
        return array.reshape(math.prod(shape), *array.shape[len(shape) :])

    columns = places(shape, heads=heads) if len(shape) > 1 else {}
    columns |= {title: rows(made[name]) for name, title in _TITLES if name in made}
    if "probabilities" in made:
        shares = rows(made["probabilities"])
        names = made["classes"].tolist()
        columns |= {f"p_{each}": shares[:, place] for place, each in enumerate(names)}
    return columns


def _print_predictions(
    made: Mapping[str, Array],
    output: Path,
    classes: Array,
    *,
    as_json: bool,
) -> None:
    shape = next(iter(made.values())).shape
    if "labels" in made:
        if as_json:
            print_json({"output": str(output), "shape": shape, "classes": classes.tolist()})
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
        _print_numbers(made["predictions"], errors, output)


def _print_numbers(predictions: Array, errors: Array, output: Path) -> None:
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
