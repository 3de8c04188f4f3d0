"""What a private classifier and a private regressor have in common: a fit is one release.

What a caller leaves out is taken from the rows, with a warning (`Leak`). A pickle holds the release
as its file does, the estimator's parameters (where it is counted, too), and nothing else.
"""

import abc
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from discreet import _validate
from discreet._typing import Array, Floats
from discreet._validate import warn
from discreet.accounting import Receipt
from discreet.errors import CorruptRelease, InvalidInput, NotPrivateWarning, PrivacyLeakWarning
from discreet.features.base import SymmetricMap
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.privacy import NOT_PRIVATE, TAKEN, Card, Guarantee, Neighbours, Privacy, rounded_up
from discreet.readers.attention.bundle import Memories
from discreet.readers.registry import READABLE, Readable, from_bytes, to_bytes
from discreet.sklearn import readers
from discreet.sklearn.columns import Columns, Embeddings, check_rows, missing
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.readers import Reader, Rows, Terms
from discreet.sklearn.targets import Labels, Targets

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
_SINCE_PICKLED = dict.fromkeys(("ledger", "dataset", "analyst", "account"))

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


class PrivateEstimator(BaseEstimator, abc.ABC):
    """Parameters, one release, and what is public about it. `PrivateClassifier` says what is what.

    Each `fit` is a new release that spends (epsilon, delta) once; predictions are free.
    """

    epsilon: float
    delta: float
    norm: float | None
    bounds: Array
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

    release_: Readable
    reader_: str
    leaks_: tuple[str, ...]
    n_features_in_: int
    _columns: Columns | Embeddings

    # Whether targets are classes.
    _classifies: ClassVar[bool]

    # How scikit-learn is to check targets.
    _target_checks: ClassVar[dict[str, bool]] = {}

    @abc.abstractmethod
    def _checked_targets(self, y: Array) -> Array:
        """Return targets as an array, if all of them are of a kind that can be taken."""

    @abc.abstractmethod
    def _targets_of(self, y: Array, leaks: list[Leak]) -> Labels | Targets:
        """Return how targets become values; what has to be taken from them is added to `leaks`."""

    @abc.abstractmethod
    def _in_ranges(self, ranges: Ranges) -> Columns:
        """Return columns in their ranges, as this kind of estimator takes them."""

    @abc.abstractmethod
    def _keep(self, targets: Labels | Targets) -> None:
        """Keep what is needed to make targets of predicted values. Public."""

    def fit(self, X: Array, y: Array, groups: Array = None, **unsupported: object) -> Self:
        """Release the rows, once, under (epsilon, delta)-differential privacy.

        A new release, whatever was fitted before: what several fits of the same people's rows spend
        adds up (`discreet.combine([first.release_, second.release_])`). With a ledger, each fit is
        counted once, before its noise is drawn; so is each fit of a clone, in cross-validation and
        searches.

        Args:
            X: numbers, shape (n, d), without NaN; an array or a frame of pandas or polars. Numbers
                beyond `bounds` (or rows beyond `norm`) are clipped.
            y: targets, shape (n,); for a regressor also (n, k).
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
            return self._fit(X, y, groups)
        except BaseException:
            # A fit that came before stays whole: its release was paid for.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Array, y: Array, groups: Array) -> Self:
        reader = readers.chosen(self.reader, self.features, classifies=self._classifies)
        account = account_of(self.ledger, self.dataset, self.analyst, self.account)
        rows, given = self._checked(X, y)
        leaks: list[Leak] = []
        columns = self._columns_of(rows, leaks)
        targets = self._targets_of(given, leaks)
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
        )
        hint = self._hint(reader, terms, rows=len(rows), records=groups is not None, leaks=leaks)
        names = tuple(leak.argument for leak in leaks)
        terms = reader.resolve(replace(terms, rows_hint=hint, leaks=names))
        _warn_of(leaks)
        release = reader.release(Rows(columns.keys(rows), given, groups), terms, self.entropy)
        self._columns, self.release_, self.reader_ = columns, release, reader.name
        self.leaks_ = names
        self._keep(targets)
        return self

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

    def _columns_of(self, rows: Floats, leaks: list[Leak]) -> Columns | Embeddings:
        if self.norm is not None and self.bounds is not None:
            raise InvalidInput("Expected bounds (of columns) or norm (of rows), not both.")
        if self.norm is not None:
            return Embeddings(self.norm)
        if self.bounds is not None:
            return self._in_ranges(Ranges.of("bounds", self.bounds, rows.shape[1]))
        leaks.append(Leak.BOUNDS)
        return self._in_ranges(Ranges.seen(rows))

    def _public_keys(self, columns: Columns | Embeddings) -> Array:
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
        rows = self._validated(check_rows(X), reset=False, dtype=_PRECISIONS)
        return self._columns.keys(rows).astype(rows.dtype, copy=False)

    @property
    def _fitted_reader(self) -> Reader:
        return readers.named(self.reader_)

    @property
    def card_(self) -> Card:
        """What is protected, how much, and from what: `print(estimator.card_)`."""
        return self.release_.card

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
        return cloned

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and the release, as in its file; never rows, nor a source of noise."""
        state = {**super().__getstate__(), "entropy": None}
        if "release_" in state:
            state["release_"] = to_bytes(state["release_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {**_SINCE_PICKLED, **state}
        if "release_" in state:
            state["release_"] = unpacked(state["release_"], leaks=state.get("leaks_", ()))
        super().__setstate__(state)

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
