"""What a private classifier and a private regressor have in common: a fit is one release."""

import abc
import re
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from discreet import _validate
from discreet._card import TAKEN, Card
from discreet._typing import Array, Floats
from discreet.accounting import Receipt
from discreet.errors import InvalidInput
from discreet.features.base import SymmetricMap
from discreet.noise import Entropy
from discreet.privacy import NOT_PRIVATE, Guarantee, Neighbours, Privacy, rounded_up
from discreet.sklearn import kinds, page, pickles, readers
from discreet.sklearn.columns import Columns, Embeddings
from discreet.sklearn.leaks import Leak, one_digit, warn_of
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.reading import Reader, Release, Rows, Terms
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

    release_: Release
    reader_: str
    leaks_: tuple[str, ...]
    n_features_in_: int
    _columns: Columns | Embeddings

    # Those that there are for such targets.
    _readers: ClassVar[tuple[Reader, ...]]

    # How scikit-learn is to check targets.
    _target_checks: ClassVar[dict[str, bool]] = {}

    @abc.abstractmethod
    def _targets_of(self, y: Array, leaks: list[Leak]) -> Labels | Targets:
        """Return how targets become values; what has to be taken from them is added to `leaks`."""

    @abc.abstractmethod
    def _keep(self, targets: Labels | Targets) -> None:
        """Keep what is needed to make targets of predicted values. Public."""

    def fit(self, X: Array, y: Array, groups: Array = None, **unsupported: object) -> Self:
        """Release the rows, once, under (epsilon, delta)-differential privacy.

        A new release, whatever was fitted before: what several fits of the same people's rows spend
        adds up (`discreet.combine([first.release_, second.release_])`).

        Args:
            X: numbers, shape (n, d), without NaN; an array or a frame of pandas or polars. Numbers
                beyond `bounds` (or rows beyond `norm`) are clipped.
            y: targets, shape (n,); for a regressor also (n, k).
            groups: the record (person) that each row belongs to, shape (n,); None if each row is
                its own. With metadata routing: `set_fit_request(groups=True)`.
            **unsupported: `sample_weight` is refused, unless None: a weight would change how much
                one row can move the release.

        Warns once with `PrivacyLeakWarning` if something that should be public is not given, and
        has to be taken from the rows.
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
        readers.check(self.reader, self.features, self._readers)
        rows, given = self._checked(X, y)
        leaks: list[Leak] = []
        columns = self._columns_of(rows, leaks)
        targets = self._targets_of(given, leaks)
        terms, reader = self._terms(columns, targets, len(rows), groups, leaks)
        warn_of(leaks)
        private = Rows(columns.keys(rows), given, targets, groups)
        release = reader.release(private, terms, self.entropy)
        self._columns, self.release_, self.reader_ = columns, release, reader.name
        self.leaks_ = terms.leaks
        self._keep(targets)
        return self

    @abc.abstractmethod
    def _checked_targets(self, y: Array) -> Array:
        """Return targets as an array, if all of them are of a kind that can be taken."""

    def _checked(self, X: Array, y: Array) -> tuple[Floats, Array]:
        """Return rows and targets as arrays. Messages may name shapes and columns, no numbers."""
        rows, targets = kinds.check_rows(X), None if y is None else self._checked_targets(y)
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
                said = f"{said[:-1]} in {kinds.missing(X)}. {_FILL}"
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

    def _in_ranges(self, ranges: Ranges) -> Columns:
        """Return columns in their ranges, as this kind of estimator takes them."""
        return Columns(ranges)

    def _terms(
        self,
        columns: Columns | Embeddings,
        targets: Labels | Targets,
        count: int,
        groups: Array,
        leaks: list[Leak],
    ) -> tuple[Terms, Reader]:
        """Return the public terms and the reader."""
        public = self._public_keys(columns)
        neighbours = Neighbours.parse(self.neighbours)
        situation = readers.Situation(
            reader=self.reader,
            features=self.features,
            columns=columns,
            width=self.n_features_in_,
            classes=targets.count if isinstance(targets, Labels) else None,
            privacy=Privacy(self.epsilon, self.delta, neighbours),
            group_rows=_validate.real("group_rows", self.group_rows, above=0),
            has_public_rows=public is not None,
        )
        hint = self.rows_hint
        if hint is None and neighbours is Neighbours.REPLACE:
            hint = count if groups is None else None
        if hint is None and situation.needs_rows:
            hint = one_digit(count)
            leaks.append(Leak.ROWS_HINT)
        recipe = situation.choose(hint)
        terms = Terms(
            epsilon=self.epsilon,
            delta=self.delta,
            neighbours=self.neighbours,
            key_norm=columns.norm,
            value_norm=targets.norm,
            rows_hint=hint,
            public_rows=public,
            features=recipe.features,
            ridge=recipe.ridge,
            group_rows=self.group_rows,
            classes=situation.classes,
            leaks=tuple(leak.argument for leak in leaks),
        )
        return terms, recipe.reader

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

    def keys(self, X: Array) -> Array:
        """Return rows as keys, shape (m, d): what `release_` takes, and what a file of it takes.

        A release knows nothing of columns and their ranges. (A regressor's averages have keys with
        one number more; predict with the estimator there.)
        """
        return self._queries(X)

    @property
    def _reading(self) -> Reader:
        return readers.named(self.reader_)

    def _queries(self, X: Array) -> Array:
        """Return what is asked about, as keys (m, d)."""
        check_is_fitted(self)
        rows = self._validated(kinds.check_rows(X), reset=False, dtype=_PRECISIONS)
        return self._columns.keys(rows).astype(rows.dtype, copy=False)

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
            state["release_"] = pickles.packed(state["release_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "release_" in state:
            release = pickles.unpacked(state["release_"], leaks=state.get("leaks_", ()))
            state = {**state, "release_": release}
        super().__setstate__(state)

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's picture, and the facts that matter."""
        facts = self._facts()
        return f"{estimator_html_repr(self)}{page.table(facts, loud=(NOT_PRIVATE, TAKEN))}"

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
        facts = [(title, text) for title, text in self.card_.sentences if title == NOT_PRIVATE]
        facts += [(title, text) for title, text in self.card_.sentences if title == TAKEN]
        return [
            *facts,
            ("reader", self.reader_),
            ("ε, δ", f"{rounded_up(promised.epsilon)}, {rounded_up(promised.delta)}"),
            ("unit", f"{promised.unit} ({promised.neighbours} neighbours)"),
            *((title, text) for title, text in self.card_.sentences if title == "protects"),
        ]


def _refuse(unsupported: dict[str, object]) -> None:
    """Raise if `fit` was given what it does not take."""
    given = {name for name, value in unsupported.items() if value is not None}
    if "sample_weight" in given:
        raise InvalidInput(_NO_WEIGHTS)
    unknown = sorted(set(unsupported) - {"sample_weight"})
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}")
