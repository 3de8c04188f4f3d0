"""What `regress`, `plan-regress` and `predict` do with numbers: from rows to a regression."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from discreet._typing import Floats
from discreet.cli.building import release_files
from discreet.cli.files import write_arrays
from discreet.cli.inputs import public_rows
from discreet.cli.shell import aligned, already_written, print_json, print_page
from discreet.readers.attention.reader import WITHIN
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.readers.least_squares.planning import plan

# So many numbers are shown; the file has all.
_SHOWN = 20

_HEADINGS = ("query", "number", "value", "±")

regress_file = functools.partial(release_files, LEAST_SQUARES)


def show_regress_plan(*, public: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Print the plan of a regression."""
    made = plan(public_rows=public_rows(public), **options)
    if as_json:
        print_json(made.to_dict())
    else:
        print_page(str(made))


def predict_numbers(
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
            _print(made, output)


def _print(made: dict[str, Floats], output: Path) -> None:
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
