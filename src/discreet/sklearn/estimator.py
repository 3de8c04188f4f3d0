"""What a private classifier and a private regressor have in common: a fit is one release.

What a caller leaves out is taken from the rows, with a warning (`Leak`). A pickle holds the release
as its file does, the estimator's parameters (where it is counted, too), and nothing else.
"""

import abc
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from html import escape
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from discreet import _validate
from discreet._typing import Array, Floats
from discreet._validate import warn
from discreet.accounting import Receipt, combine
from discreet.errors import CorruptRelease, InvalidInput, NotPrivateWarning, PrivacyLeakWarning
from discreet.features.base import SymmetricMap
from discreet.features.columns import Categories, Column, TableColumns
from discreet.features.linear import Linear
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.privacy import NOT_PRIVATE, TAKEN, Card, Guarantee, Neighbours, Privacy, rounded_up
from discreet.provenance import Stated
from discreet.readers.attention.bundle import Memories
from discreet.readers.registry import READABLE, Readable, from_bytes, to_bytes
from discreet.readers.rounds.errors import Spread
from discreet.sklearn import readers
from discreet.sklearn.columns import Columns, Embeddings, Tabled, check_rows, missing
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.readers import Reader, Rows, Terms
from discreet.sklearn.shapes import Shape, shapes_of
from discreet.sklearn.targets import Labels, LabelSets, Targets
from discreet.tables.schema import Category, Entry, Schema

# Rows stay in single precision if they are in it: a million of them are large.
_PRECISIONS = (np.float64, np.float32)

_FILL = "Fill it with a public constant; an imputer that learns from rows gives them away."
_LEAVE_OUT = "Leave such rows out."

_NO_WEIGHTS = (
    "Expected no sample_weight: every row counts once, and the guarantee fixes how much one row "
    "can move what is released. Leave it out. Do not repeat rows instead: a person whose row is "
    "there twenty times is protected twenty times less, unless groups= says whose rows they are, "
    "and then all of them together count as group_rows."
)

# Parameters that pickles of earlier versions do not have.
_SINCE_PICKLED = dict.fromkeys(("ledger", "dataset", "analyst", "account", "columns", "stated"))

# Colours are the page's own, so that it is as legible at night.
_TABLE = "border-collapse: collapse; margin: 0.5em 0; font-size: 0.9em"
_CELL = "text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0"
_WARNINGS = (NOT_PRIVATE, TAKEN)
_LOUD = "font-weight: bold; border-left: 4px solid #d55e00; padding-left: 0.5em"


class Leak(Enum):
    """An argument that is missing: what is taken instead, and what to do about it."""

    BOUNDS = (
        "bounds",
        "the smallest and the largest number of each column, which are numbers of single rows",
        "bounds=(low, high), or norm= for embeddings",
    )
    CLASSES = ("classes", "the list of labels that occur, even once", "classes=[...]")
    TARGET_BOUNDS = (
        "target_bounds",
        "the smallest and the largest target, which are those of single rows",
        "target_bounds=(low, high)",
    )
    ROWS_HINT = (
        "rows_hint",
        "the number of rows, rounded to one digit",
        "rows_hint=, a public figure",
    )

    def __init__(self, argument: str, taken: str, remedy: str) -> None:
        self.argument = argument
        self.taken = taken
        self.remedy = remedy


class Fits:
    """What all fits of an estimator and its clones spent, in one process.

    Cross-validation and searches fit clones, and nobody sees the sum of what they spend.
    """

    def __init__(self) -> None:
        self._receipts: list[Receipt] = []
        self._lock = threading.Lock()

    def add(self, receipt: Receipt, *, delta: float) -> None:
        """Add a fit, and warn where their number has doubled: a search makes many.

        Args:
            receipt: of the fit.
            delta: of what is said of all fits together.
        """
        with self._lock:
            self._receipts.append(receipt)
            count = len(self._receipts)
        if count < 2 or count & (count - 1) or not self._alike:
            return
        warn(
            f"{count} fits by now of this estimator and its clones, as cross-validation and "
            "searches make them. Whoever is in the rows of all of them is protected by ε = "
            f"{rounded_up(self.total(delta).epsilon)} at δ = {delta:g} only, for all together; "
            "all_fits_ says so at any time. Scores on private rows come on top of that, without "
            "any protection. A ledger counts every fit.",
            PrivacyLeakWarning,
        )

    @property
    def _alike(self) -> bool:
        """Whether all protect the same unit from the same change: else they do not add up."""
        with self._lock:
            return len({(each.neighbours, each.unit) for each in self._receipts}) == 1

    def total(self, delta: float) -> Guarantee:
        """Return what is promised to whoever is in the rows of all fits.

        Args:
            delta: of the promise.

        Raises:
            AttributeError: there are none, or they protect other neighbours or other units.
        """
        if not self._alike:
            raise AttributeError("There is no sum of fits: there are none, or they do not add up.")
        with self._lock:
            fits = list(self._receipts)
        return combine(fits, delta=delta)


class PrivateEstimator(BaseEstimator, abc.ABC):
    """Parameters, one release, and what is public about it. `PrivateClassifier` says what is what.

    Each `fit` is a new release that spends (epsilon, delta) once; predictions are free.
    """

    epsilon: float
    delta: float
    norm: float | None
    bounds: Array
    columns: Mapping[str, Any] | Schema | None
    rows_hint: int | None
    reader: str
    features: str | SymmetricMap
    neighbours: str
    public_rows: Array
    group_rows: float
    entropy: Entropy | None
    ledger: Ledger | None
    dataset: str | None
    analyst: str | None
    account: Account | None
    stated: Stated | Mapping[str, Any] | None

    release_: Readable
    reader_: str
    leaks_: tuple[str, ...]
    n_features_in_: int
    feature_names_in_: Array
    _family: Fits
    _columns: Columns | Embeddings | Tabled
    _targets: Labels | Targets | LabelSets

    # Whether targets are classes.
    _classifies: ClassVar[bool]

    # How scikit-learn is to check targets.
    _target_checks: ClassVar[dict[str, bool]] = {}

    @abc.abstractmethod
    def _checked_targets(self, y: Array) -> Array:
        """Return targets as an array, if all of them are of a kind that can be taken."""

    @abc.abstractmethod
    def _targets_of(self, y: Array, leaks: list[Leak]) -> Labels | Targets | LabelSets:
        """Return how targets become values; what has to be taken from them is added to `leaks`."""

    @abc.abstractmethod
    def _in_ranges(self, ranges: Ranges) -> Columns:
        """Return columns in their ranges, as this kind of estimator takes them."""

    @abc.abstractmethod
    def _keep(self, targets: Labels | Targets | LabelSets) -> None:
        """Keep what is needed to make targets of predicted values. Public."""

    def fit(self, X: Array, y: Array, groups: Array = None, **unsupported: object) -> Self:
        """Release the rows, once, under (epsilon, delta)-differential privacy.

        A new release, whatever was fitted before: what several fits of the same people's rows spend
        adds up (`discreet.combine([first.release_, second.release_])`). With a ledger, each fit is
        counted once, before its noise is drawn; so is each fit of a clone, in cross-validation and
        searches.

        Args:
            X: a table with `columns`: a frame of pandas or Polars, an Arrow table, a dictionary of
                columns, or an array in their order. Else numbers, shape (n, d), without NaN; an
                array or a frame. Numbers beyond `bounds` (or rows beyond `norm`) are clipped.
            y: targets, shape (n,); for a regressor also (n, k), and for a classifier several labels
                of each row as 0 and 1, shape (n, k).
            groups: the record (person) that each row belongs to, shape (n,); None if each row is
                its own. With metadata routing: `set_fit_request(groups=True)`.
            **unsupported: `sample_weight` is refused, unless None: a weight would change how much
                one row can move the release.

        Returns:
            The estimator itself.

        Warns once with `PrivacyLeakWarning` if something that should be public is not given, and
        has to be taken from the rows.

        Raises:
            InvalidInput: for rows, targets or parameters that cannot be taken.
            BudgetExceeded: if the ledger's limit leaves no room. Nothing is drawn then, and the
                estimator stays as it was.
        """
        _refuse(unsupported)
        before = dict(vars(self))
        try:
            self._fit(X, y, groups)
        except BaseException:
            # A fit that came before stays whole: its release was paid for.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        # Afterwards: where warnings are errors, what was paid for is kept all the same.
        self._fits().add(self.receipt_, delta=self.delta)
        return self

    def _fit(self, X: Array, y: Array, groups: Array) -> None:
        account = account_of(self.ledger, self.dataset, self.analyst, self.account)
        leaks: list[Leak] = []
        if self.columns is None:
            rows, given = self._checked(X, y)
            columns = self._columns_of(rows, leaks)
        else:
            columns = self._tabled(X)
            rows, given = self._looked_up(columns, X, y)
        targets = self._targets_of(given, leaks)
        reader = readers.chosen(self.reader, self.features, targets, columns)
        terms = Terms(
            public_rows=self._public_keys(columns),
            privacy=Privacy(self.epsilon, self.delta, Neighbours.parse(self.neighbours)),
            group_rows=_validate.real("group_rows", self.group_rows, above=0),
            columns=columns,
            width=self.n_features_in_,
            targets=targets,
            features=self.features,
            rows_hint=self.rows_hint,
            account=account,
            stated=Stated.of(self.stated),
        )
        hint = self._hint(reader, terms, rows=len(rows), records=groups is not None, leaks=leaks)
        names = tuple(leak.argument for leak in leaks)
        terms = reader.resolve(replace(terms, rows_hint=hint, leaks=names))
        _warn_of(leaks)
        release = reader.release(Rows(columns.keys(rows), given, groups), terms, self.entropy)
        self.restore_fit(release, columns, targets, reader=reader.name)

    def _fits(self) -> Fits:
        """Return the fits of this estimator and all its clones in this process."""
        if "_family" not in vars(self):
            self._family = Fits()
        return self._family

    def restore_fit(
        self,
        release: Readable,
        columns: Columns | Embeddings | Tabled,
        targets: Labels | Targets | LabelSets,
        *,
        reader: str,
    ) -> None:
        """Keep a release, and what is public about it: what `fit` ends with, or a file.

        Args:
            release: of the rows.
            columns: how they became keys.
            targets: how targets became values.
            reader: the name of the reader.
        """
        self._columns, self._targets = columns, targets
        self.release_, self.reader_ = release, reader
        self.leaks_ = release.receipt.leaks
        self._keep(targets)

    def _description(self) -> dict[str, Any]:
        """Return what a file says besides the release: all public, as JSON knows it."""
        names = getattr(self, "feature_names_in_", None)
        return {
            "kind": "classifier" if self._classifies else "regressor",
            "reader": self.reader_,
            "columns": self._columns.to_json(),
            "targets": self._targets.to_json(),
            "names": None if names is None else list(map(str, names)),
            "width": self.n_features_in_,
            "parameters": self._own_parameters(),
        }

    def check_parameters(self) -> None:
        """Raise `InvalidInput` if a parameter that predictions depend on makes no sense."""

    def _own_parameters(self) -> dict[str, object]:
        """Return parameters that change what is predicted from a release."""
        return {}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file that predicts anywhere, atomically; never pickle.

        `discreet.load` makes the fitted estimator again, which takes the same tables: schema or
        ranges, classes and names of columns are in the file, and parameters of what is loaded, but
        for those that were taken from rows. Parameters that only `fit` needs (ledger, entropy,
        features, public_rows) are not in it.

        Args:
            path: of the file; one that is there is replaced.
        """
        check_is_fitted(self)
        self.release_for_file().save(path)

    def release_for_file(self) -> Readable:
        """Return the release, which says how rows become keys and answers become targets.

        `release_` itself takes keys, and knows nothing of tables.
        """
        return _described(self.release_, self._description())

    @property
    def shapes_(self) -> dict[str, Shape]:
        """What each column adds to a score, by its name: of tables with a schema, in rounds."""
        features = self._map()
        weights, spread, unit = self._coefficients()
        entries = list(cast("Tabled", self._columns).schema.columns.values())
        labels = [_labels(entry, features.columns[at]) for at, entry in enumerate(entries)]
        names = [str(each) for each in self.feature_names_in_]
        return shapes_of(features, weights, spread, names=names, labels=labels, unit=unit)

    @property
    def feature_importances_(self) -> Floats:
        """How much each column moves scores of the rows, as shares of one, shape (p,).

        By what the release tells of how frequent bins and categories are: noise is in it, and waves
        over several columns are not.
        """
        raw = np.array([shape.importance for shape in self.shapes_.values()])
        return np.asarray(raw / max(float(raw.sum()), 1e-300))

    @property
    def coef_(self) -> Floats:
        """Slopes of scores (or targets) in units of X, shape (outputs, d): of `features="linear"`.

        Where columns are not bent, so with `norm`, or with ranges that do not begin at 0.
        """
        return self._line()[0]

    @property
    def intercept_(self) -> Floats:
        """What scores (or targets) are where X is zero, shape (outputs,). As `coef_`."""
        return self._line()[1]

    def _line(self) -> tuple[Floats, Floats]:
        """Return slopes and intercepts, or raise `AttributeError`: nothing is linear in X."""
        check_is_fitted(self)
        features = getattr(self.release_, "features", None)
        if not isinstance(features, Linear) or not self._columns.straight:
            raise AttributeError(
                "There are slopes of straight lines only: features='linear', and norm= or bounds= "
                "that do not begin at 0."
            )
        # A straight line is known by its value at zero, and by one more in each direction.
        norm = self._columns.norm
        probes = np.concatenate([np.zeros((1, features.dim)), np.eye(features.dim) * norm])
        values = self._straight(probes)
        at_zero, of_keys = values[0], (values[1:] - values[0]) / norm
        slopes, offsets = self._columns.line(features.dim)
        return (of_keys * slopes[:, None]).T, at_zero + offsets @ of_keys

    @abc.abstractmethod
    def _straight(self, keys: Floats) -> Floats:
        """Return scores or targets of keys before anything is clipped, shape (m, outputs)."""

    def _map(self) -> TableColumns:
        """Return the features of a table, or raise `AttributeError`: there are no shapes."""
        check_is_fitted(self)
        features = getattr(self.release_, "features", None)
        if not isinstance(features, TableColumns) or not hasattr(self.release_, "spread"):
            raise AttributeError(
                "There are shapes of models of tables only: columns=, and reader='rounds'."
            )
        return features

    @abc.abstractmethod
    def _coefficients(self) -> tuple[Floats, Spread, Floats]:
        """Return coefficients (r, k), the spread of their noise, and what makes scores of them."""

    def _tabled(self, X: Array) -> Tabled:
        """Return the columns of the schema, with private ones as what they hold in this table."""
        for name in ("norm", "bounds", "public_rows"):
            if getattr(self, name) is not None:
                raise InvalidInput(f"Expected columns= or {name}=, not both.")
        return Tabled(Schema(self.columns or {}).for_table(X))

    def _looked_up(self, columns: Tabled, X: Array, y: Array) -> tuple[Floats, Array]:
        """Return the keys of a table's rows, and targets as an array."""
        rows = columns.schema.keys(X)
        names = columns.schema.names
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.asarray(names, dtype=object)
        if y is None:
            raise InvalidInput("Expected y: one target for each row.")
        targets = self._checked_targets(y)
        if len(targets) != len(rows):
            raise InvalidInput("Expected as many targets as there are rows of X.")
        if targets.dtype.kind == "f" and not np.all(np.isfinite(targets)):
            raise InvalidInput(f"Expected targets that are finite numbers. {_LEAVE_OUT}")
        if len(rows) == 0:
            raise InvalidInput("Expected at least one row.")
        single = targets.ndim == 2 and targets.shape[1] == 1 and self._classifies
        return rows, targets[:, 0] if single else targets

    def _checked(self, X: Array, y: Array) -> tuple[Floats, Array]:
        """Return rows and targets as arrays. Messages may name shapes and columns, no numbers."""
        rows, targets = check_rows(X), None if y is None else self._checked_targets(y)
        if targets is not None and len(targets) != len(rows):
            raise InvalidInput("Expected as many targets as there are rows of X.")
        checks = {"dtype": _PRECISIONS, **self._target_checks}
        numbers, values = self._validated(rows, y=targets, **checks)
        return numbers, values

    def _validated(self, X: Array, **checks: Any) -> Array:  # noqa: ANN401
        """Return what scikit-learn makes of numbers, in words that advise no imputer."""
        try:
            return validate_data(self, X, **checks)
        except OverflowError:
            raise InvalidInput("Expected numbers within the range of float64.") from None
        except ValueError as error:
            said, *_ = str(error).splitlines()  # then, of NaN, it advises an imputer: that learns
            if said == "Input X contains NaN.":
                said = f"{said[:-1]} in {missing(X)}. {_FILL}"
            elif said == "Input y contains NaN.":
                said = f"{said} {_LEAVE_OUT}"
            # How many rows there are is nobody's business.
            raise InvalidInput(re.sub(r"shape=\(\d+,", "shape=(,", said)) from None

    def _columns_of(self, rows: Floats, leaks: list[Leak]) -> Columns | Embeddings | Tabled:
        if self.norm is not None and self.bounds is not None:
            raise InvalidInput("Expected bounds (of columns) or norm (of rows), not both.")
        if self.norm is not None:
            return Embeddings(self.norm)
        if self.bounds is not None:
            return self._in_ranges(Ranges.of("bounds", self.bounds, rows.shape[1]))
        leaks.append(Leak.BOUNDS)
        return self._in_ranges(Ranges.seen(rows))

    def _public_keys(self, columns: Columns | Embeddings | Tabled) -> Array:
        """Return public rows, in units of X, as keys; None if there are none."""
        if self.public_rows is None:
            return None
        if hasattr(self, "feature_names_in_") and hasattr(self.public_rows, "columns"):
            rows = validate_data(self, self.public_rows, reset=False, dtype=np.float64)
        else:
            rows = check_array(self.public_rows, dtype=np.float64, input_name="public_rows")
        if rows.shape[1] != self.n_features_in_:
            _validate.reject("public_rows", rows.shape, f"as wide as X is, {self.n_features_in_}")
        return columns.keys(rows)

    def _hint(
        self, reader: Reader, terms: Terms, *, rows: int, records: bool, leaks: list[Leak]
    ) -> int | None:
        """Return a public number of rows; one that is taken from them is added to `leaks`.

        Under "replace" the number of rows is public, unless records are what is protected.
        """
        if self.rows_hint is not None:
            return self.rows_hint
        if terms.privacy.neighbours is Neighbours.REPLACE and not records:
            return rows
        if not reader.needs_rows(terms):
            return None
        leaks.append(Leak.ROWS_HINT)
        return one_digit(rows)

    def keys(self, X: Array) -> Array:
        """Return rows as keys: what `release_` takes, and what a file of it takes.

        A release knows nothing of columns and their ranges. (A regressor's averages have keys with
        one number more; predict with the estimator there.)

        Args:
            X: shape (m, d), as for `fit`.

        Returns:
            Keys, shape (m, d).
        """
        check_is_fitted(self)
        if isinstance(self._columns, Tabled):
            return self._columns.schema.keys(X)
        rows = self._validated(check_rows(X), reset=False, dtype=_PRECISIONS)
        return self._columns.keys(rows).astype(rows.dtype, copy=False)

    @property
    def _fitted_reader(self) -> Reader:
        return readers.named(self.reader_, self._targets)

    @property
    def card_(self) -> Card:
        """What is protected, how much, and from what: `print(estimator.card_)`."""
        tabled = isinstance(self._columns, Tabled)  # whose card names the columns, too
        return self.release_for_file().card if tabled else self.release_.card

    @property
    def guarantee_(self) -> Guarantee:
        """What is promised for this release, whatever is predicted with it.

        Not covered: what is named in `leaks_`, and what other fits of the same rows gave away.
        """
        return self.release_.guarantee

    @property
    def receipt_(self) -> Receipt:
        """What was spent; `discreet.combine` adds receipts up."""
        return self.release_.receipt

    @property
    def all_fits_(self) -> Guarantee:
        """What is promised for all fits of this estimator and its clones together, in this process.

        A search makes clones: the estimator that it was given knows of all their fits, and so does
        `best_estimator_`. Other processes (`n_jobs`) count for themselves; a ledger counts all.
        """
        return self._fits().total(self.delta)

    def __sklearn_is_fitted__(self) -> bool:
        return "release_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise
        return tags

    def __sklearn_clone__(self) -> Self:
        """Return the same without the release. Clones share a source of noise: none repeats it."""
        bare = type(self).__new__(type(self))
        bare.__dict__.update(vars(self), entropy=None)
        cloned: Self = super(PrivateEstimator, bare).__sklearn_clone__()
        cloned.entropy = self.entropy
        cloned._family = self._fits()
        return cloned

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and the release, as in its file; never rows, nor a source of noise."""
        state = {**super().__getstate__(), "entropy": None}
        state.pop("_family", None)
        if "release_" in state:
            state["release_"] = to_bytes(state["release_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {**_SINCE_PICKLED, **self._since_pickled(), **state}
        if "_targets" not in state and "classes_" in state:  # a classifier of before
            state["_targets"] = Labels.of(state["classes_"], distinct=True)
        if "release_" in state:
            state["release_"] = unpacked(state["release_"], leaks=state.get("leaks_", ()))
        super().__setstate__(state)

    def _since_pickled(self) -> dict[str, object]:
        """Return parameters of this kind of estimator that pickles of before do not have."""
        return {}

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's picture, and the facts that matter."""
        return f"{estimator_html_repr(self)}{_table(self._facts())}"

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _facts(self) -> list[tuple[str, str]]:
        if not self.__sklearn_is_fitted__():
            return [
                ("ε, δ", f"{self.epsilon}, {self.delta}"),
                ("unit", f"{self.neighbours} neighbours"),
                ("released", "nothing so far; each fit spends (ε, δ)"),
            ]
        promised = self.guarantee_
        return [
            *self._sentences(NOT_PRIVATE),
            *self._sentences(TAKEN),
            ("reader", self.reader_),
            ("ε, δ", f"{rounded_up(promised.epsilon)}, {rounded_up(promised.delta)}"),
            ("unit", f"{promised.unit} ({promised.neighbours} neighbours)"),
            *self._sentences("protects"),
        ]

    def _sentences(self, title: str) -> list[tuple[str, str]]:
        return [sentence for sentence in self.card_.sentences if sentence[0] == title]


def _refuse(unsupported: dict[str, object]) -> None:
    """Raise if `fit` was given what it does not take."""
    given = {name for name, value in unsupported.items() if value is not None}
    if "sample_weight" in given:
        raise InvalidInput(_NO_WEIGHTS)
    unknown = sorted(set(unsupported) - {"sample_weight"})
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}")


def _warn_of(leaks: list[Leak]) -> None:
    """Warn once of all that was taken from the data, if anything was."""
    if not leaks:
        return
    said = "; ".join(f"{leak.taken} (give {leak.remedy})" for leak in leaks)
    warn(
        f"Taken from the private data, and not covered by the guarantee: {said}. They become "
        "part of the model. Choose them without looking at the data.",
        PrivacyLeakWarning,
    )


def _described(release: Readable, description: dict[str, Any]) -> Readable:
    """Return a release whose file says how rows become keys."""
    if isinstance(release, Memories):
        return release
    reader: type[Any] = type(release)
    made: Readable = reader(replace(release.released, estimator=description))
    return made


def _labels(entry: Entry, column: Column) -> list[str] | None:
    """Return the names of a column's categories; None for numbers."""
    if isinstance(entry, Category):
        return list(map(str, entry.categories))
    if isinstance(column, Categories):
        return [f"place {each}" for each in column.places]
    return None


def one_digit(rows: int) -> int:
    """Return a number of rows, rounded to one significant digit; at least 1."""
    power = int(10 ** (len(str(rows)) - 1))
    return max((rows + power // 2) // power * power, 1)


def unpacked(data: bytes, *, leaks: tuple[str, ...] = ()) -> Readable:
    """Return the release in a file; warns if it was made with a test source of noise.

    Args:
        data: the file.
        leaks: what was taken from the rows, as the estimator knows it.
    """
    release = from_bytes(data)
    if not isinstance(release, READABLE):
        raise CorruptRelease("Expected the release of an estimator, got a structure.")
    if not release.private:
        warn(
            f"This estimator is {NOT_PRIVATE}: its noise came from {release.receipt.source}.",
            NotPrivateWarning,
        )
    return release if set(leaks) <= set(release.receipt.leaks) else _with_leaks(release, leaks)


def _with_leaks(release: Readable, leaks: tuple[str, ...]) -> Readable:
    """Return a release that says what was taken: in pickles of before, the estimator did alone."""
    if isinstance(release, Memories):
        raise CorruptRelease("Expected the release of an estimator, got a model's context.")
    released = release.released
    both = tuple(dict.fromkeys([*released.receipt.leaks, *leaks]))
    receipt = replace(released.receipt, leaks=both)
    guarantee = replace(released.guarantee, scope=receipt.covering(receipt.scope))
    reader: type[Any] = type(release)
    stated: Readable = reader(replace(released, receipt=receipt, guarantee=guarantee))
    return stated


def _table(facts: Sequence[tuple[str, str]]) -> str:
    """Return facts, one a line, as HTML; what protects nobody stands out."""
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL}{"; " + _LOUD if title in _WARNINGS else ""}">'
        f'{escape(title)}</th><td style="{_CELL}">{escape(text)}</td></tr>'
        for title, text in facts
    )
    return f'<table class="discreet-card" style="{_TABLE}"><tbody>{lines}</tbody></table>'
