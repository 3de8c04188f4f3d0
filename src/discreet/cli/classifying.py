"""What `fit`, `predict` and `plan-fit` do: from a table with labels to a classifier, and back."""

import csv
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from discreet.cli.building import write_release
from discreet.cli.files import check_arrays, check_output, write_arrays
from discreet.cli.inputs import opened, public_rows, table
from discreet.cli.shell import already_written, print_json, print_page
from discreet.errors import InvalidInput
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.readers.softmax.planning import plan
from discreet.tables import read_array

# No array holds a larger whole number.
_LARGEST = 2**63 - 1


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
    force: bool,
    as_json: bool,
) -> None:
    """Predict the labels of queries; with `probabilities`, into a .npz with those, too."""
    check_arrays(output, several=probabilities, force=force, inputs=(model, queries))
    asked = np.asarray(read_array(queries, "queries"))
    fit = opened(model, SoftmaxRegression)
    made = {"labels": fit.predict(asked, balanced=balanced)}
    if probabilities:
        made |= {"probabilities": fit.probabilities(asked), "classes": fit.classes}
    write_arrays(output, made, force=force)
    shape = made["labels"].shape
    with already_written(output):
        if as_json:
            facts = {"shape": shape, "classes": fit.classes.tolist()}
            print_json({"output": str(output), **facts})
        else:
            print_page(f"{output}: labels of shape {shape}, each one of {len(fit.classes)} classes")


def show_fit_plan(*, classes: str, public: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Print the plan of a classifier."""
    made = plan(classes=parse_count_or_classes(classes), public_rows=public_rows(public), **options)
    if not as_json:
        print_page(str(made))
        return
    facts = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    said = ("passes", "seconds", "rows_for_noise", "rows_needed", "verdict", "warning")
    print_json(
        {
            **facts,
            "features": made.features.describe(),
            "feature_count": made.features.features,
            **{name: getattr(made, name) for name in said},
        }
    )


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
