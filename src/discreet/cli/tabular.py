"""Models of tables with a schema: what `fit` and `regress` do with --schema.

A table is read whole, and an estimator of `discreet.sklearn` makes one release of it. Its file
knows what its columns are called and hold, so it answers tables again (`predictions`).
"""

import importlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np

from discreet._typing import Array
from discreet.cli.files import Delivery, check_output
from discreet.cli.parsing import parse_classes, parse_range, parse_stated
from discreet.cli.shell import already_written, print_json, print_page
from discreet.errors import InvalidInput
from discreet.ledger import Ledger
from discreet.readers.registry import Readable, to_bytes
from discreet.tables import Schema
from discreet.tables.whole import Whole, as_numbers, check_complete, read_table

# What a model learns a target as.
SCALES = ("linear", "log")

# What a file takes besides its arrays: a card, and settings with a few lines for each column. And
# no model of a table has more waves than these.
_SENTENCES, _OF_COLUMN, _WAVES = 2**16, 2**13, 256

_NEEDED = "Expected scikit-learn: pip install 'discreet[sklearn]'."


@dataclass(frozen=True, eq=False, repr=False)
class _Given:
    """A private table, read whole, and where to write what is released of it. PRIVATE.

    Attributes:
        data: the file of the table.
        schema: of the columns that the model looks at.
        rows: its columns, and others.
        groups: the name of the column with the record of each row, if there is one.
    """

    data: Path
    schema: Schema
    rows: Whole
    groups: str | None

    @classmethod
    def read(
        cls, data: Path, schema: Path, output: Path, *, target: str, groups: str | None, force: bool
    ) -> "_Given":
        """Return what is in the files, once it is clear that something can be written."""
        check_output(output, force=force, inputs=(data, schema))
        entries = Schema.read(schema).columns
        # A schema that was guessed has all columns. What is to be predicted is nothing to look at.
        looked_at = {name: each for name, each in entries.items() if name not in {target, groups}}
        if not looked_at:
            raise InvalidInput(f"Expected {schema} to have a column besides {target!r}.")
        columns = Schema(looked_at)
        others = (target,) if groups is None else (target, groups)
        given = cls(data, columns, read_table(data, columns, *others), groups)
        for name in others:
            check_complete(given.rows.others[name], name, data)
        return given

    @property
    def has_texts(self) -> bool:
        """Whether all cells are texts, as those of a .csv file are."""
        return self.data.suffix.lower() == ".csv"

    @property
    def records(self) -> Array:
        """The record of each row; None if each row is its own."""
        return None if self.groups is None else self.rows.others[self.groups]


def fit_table(
    data: Path,
    output: Path,
    *,
    schema: Path,
    label: str,
    classes: str,
    groups: str | None,
    force: bool,
    **options: Any,  # noqa: ANN401 (of `_write_model`, and of the classifier)
) -> None:
    """Fit a classifier to a table with a schema and write it: whole, or not at all.

    Args:
        data: the table.
        output: where to write.
        schema: the file that says what columns hold.
        label: the column of labels.
        classes: all labels that there may be, as they were typed.
        groups: the column that says which record a row belongs to, if there is one.
        force: whether a file that is there may be replaced.
        **options: of the classifier, and where it is counted.
    """
    estimator = estimators().PrivateClassifier
    given = _Given.read(data, schema, output, target=label, groups=groups, force=force)
    labels, known = _labels(given, label, classes)
    _write_model(
        estimator, given, labels, output, outputs=len(known), force=force, classes=known, **options
    )


def _labels(given: _Given, label: str, classes: str) -> tuple[Any, list[str] | list[float]]:
    """Return the label of each row, and the classes: numbers, if both are."""
    found = given.rows.others[label]
    if not given.has_texts:
        return found, parse_classes(classes, numbers=not isinstance(next(iter(found), 0), str))
    try:
        known = parse_classes(classes, numbers=True)
    except InvalidInput:
        return found, parse_classes(classes, numbers=False)
    return as_numbers(found, label), known


def regress_table(
    data: Path,
    output: Path,
    *,
    schema: Path,
    target: str | None,
    target_bounds: str | None,
    target_scale: str,
    groups: str | None,
    force: bool,
    **options: Any,  # noqa: ANN401 (of `_write_model`, and of the regressor)
) -> None:
    """Fit a regression to a table with a schema and write it: whole, or not at all.

    Args:
        data: the table.
        output: where to write.
        schema: the file that says what columns hold.
        target: the column of numbers to predict.
        target_bounds: their public range, as it was typed.
        target_scale: what they are learnt as.
        groups: the column that says which record a row belongs to, if there is one.
        force: whether a file that is there may be replaced.
        **options: of the regressor, and where it is counted.
    """
    if target is None or target_bounds is None:
        raise InvalidInput(
            "Expected --target, a column, and --target-bounds LOW,HIGH, its public range, with "
            "--schema."
        )
    if target_scale not in SCALES:
        raise InvalidInput(f"Expected --target-scale {target_scale!r} to be one of {list(SCALES)}.")
    bounds = parse_range("--target-bounds", target_bounds)
    estimator = estimators().PrivateRegressor
    given = _Given.read(data, schema, output, target=target, groups=groups, force=force)
    numbers = given.rows.others[target]
    _write_model(
        estimator,
        given,
        as_numbers(numbers, target) if given.has_texts else numbers,
        output,
        outputs=1,
        force=force,
        target_bounds=bounds,
        target=target_scale,
        **options,
    )


def _write_model(
    estimator: Any,  # noqa: ANN401 (a class of an extra)
    given: _Given,
    targets: Any,  # noqa: ANN401
    output: Path,
    *,
    outputs: int,
    force: bool,
    as_json: bool,
    ledger: str | None,
    stated: Sequence[str] | None,
    epsilon: float,
    delta: float,
    **options: Any,  # noqa: ANN401
) -> None:
    """Fit an estimator, write its file, and print what it promises.

    Args:
        estimator: its class.
        given: the rows.
        targets: one for each row.
        output: where to write.
        outputs: how many numbers a row's scores are.
        force: whether a file that is there may be replaced.
        as_json: whether to print the whole card, as JSON.
        ledger: the file, or the database, of the ledger that counts it.
        stated: by the builder, as it was typed.
        epsilon: of the guarantee.
        delta: of the guarantee.
        **options: of the estimator.
    """
    counting = None if ledger is None else Ledger(ledger)
    common = {"ledger": counting, "stated": parse_stated(stated)}
    model = estimator(epsilon, delta, columns=given.schema, **common, **options)
    with Delivery(output, force=force) as delivery:
        delivery.claim(_room(given.schema, outputs))
        model.fit(given.rows.columns, targets, groups=given.records)
        release = model.release_for_file()
        delivery.write_release(release, lambda: to_bytes(release), counting)
    with already_written(output):
        if as_json:
            print_json({"output": str(output), **release.card.to_dict()})
        else:
            print_page(f"{output}: {release.guarantee}")


def _room(schema: Schema, outputs: int) -> int:
    """Return what the file of a model takes, at most, in bytes: known before noise is drawn.

    Coefficients for each output and second moments, of as many features as there can be.
    """
    from discreet.sklearn.columns import Tabled

    features = Tabled(schema).map()
    if features.numbers:
        features = features.with_waves(_WAVES)
    count = features.features
    sums = np.dtype(np.int64).itemsize * (count * (count + 1) // 2 + (outputs + 2) * (count + 2))
    arrays = sum(array.nbytes for array in features.arrays().values())
    settings = 4 * len(json.dumps(schema.to_json())) + _OF_COLUMN * len(schema.names)
    return int(sums + arrays + settings + _SENTENCES)


def estimators() -> ModuleType:
    """Return what fits tables, if scikit-learn is there."""
    with _needing_sklearn():
        return importlib.import_module("discreet.sklearn")


@contextmanager
def _needing_sklearn() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise InvalidInput(_NEEDED) from None


def is_estimator(release: object) -> TypeGuard[Readable]:
    """Whether a file says how rows of a table become keys.

    Args:
        release: what is in the file.
    """
    return getattr(getattr(release, "released", None), "estimator", None) is not None


def opened_estimator(release: Readable) -> Any:  # noqa: ANN401 (a class of an extra)
    """Return the fitted estimator of a release.

    Args:
        release: for which `is_estimator`.
    """
    with _needing_sklearn():
        from discreet.sklearn.file import restored
    return restored(release)
