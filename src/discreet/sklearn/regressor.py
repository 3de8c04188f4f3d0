"""Private regression with the interface of scikit-learn."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast, overload

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.features.base import SymmetricMap
from discreet.ledger import Account, Ledger
from discreet.noise import Entropy
from discreet.privacy import Neighbours
from discreet.provenance import Stated
from discreet.readers.glm import GeneralizedLinear
from discreet.readers.rounds.errors import Spread
from discreet.sklearn import readers
from discreet.sklearn.columns import ROOT_FOR_NUMBERS, Columns, check_numbers
from discreet.sklearn.estimator import Leak, PrivateEstimator
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.readers import NumberReader
from discreet.sklearn.targets import Labels, LabelSets, Targets
from discreet.tables.schema import Schema

# How targets are learnt: as they are, or by the logarithm of their distance from the low end.
LINEAR, LOG = "linear", "log"


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """A regressor that is (ε, δ)-differentially private in its training rows.

    Guarantee, release, parameters and attributes are those of `PrivateClassifier`, but for
    `classes`; each fit is a new release, and what several spend adds up.

    Give what is public: `columns` (a table), `bounds` or `norm` (an array), `target_bounds`,
    `rows_hint`. What is missing is taken from the rows with a `PrivacyLeakWarning` that says what
    that gives away.

    Args:
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        target_bounds: public (low, high) of targets: numbers, or one for each output. Targets
            beyond are clipped, and predictions are within. Rounds find out where in it targets
            are; for other readers, narrow ones make little noise.
        norm: public bound on the length of rows, for embeddings; longer rows are clipped.
        bounds: public (low, high) of columns: numbers, or one for each column; clipped.
        columns: of a table: as for `PrivateClassifier`.
        rows_hint: a public, rounded number of rows, where one is needed.
        reader: "rounds" (learns in several passes over the rows), "least_squares" (one pass),
            "average" (means over near rows), or "auto": rounds for tables, else least squares.
        features: of least squares: "linear", "unit_linear", "unit_fourier",
            "linear_and_fourier", "unit_landmarks", a map of `discreet.features`, or "auto": lines,
            bent if columns are few and rows many (which needs `rows_hint`). Files and older code
            call the last four names "rays", "waves", "lines_and_waves" and "near_landmarks", which
            still work.
        neighbours: "add_remove" (the number of rows is private, too) or "replace".
        public_rows: rows like X, in the same units, that anybody may see.
        group_rows: with `groups`, the influence of a record, in rows.
        entropy: where the noise comes from; None for the operating system.
        ledger: where each fit is counted before its noise is drawn, if anywhere: a
            `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        account: all three in one, in their place: `Ledger(path).account(dataset, analyst)`.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        target: "linear"; or "log", to learn the logarithm of one plus the distance from the low
            end: for counts and amounts, if it is the relative error that matters.
    """

    _target_checks: ClassVar[dict[str, bool]] = {"multi_output": True, "y_numeric": True}

    _classifies = False

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        target_bounds: Array = None,
        norm: float | None = None,
        bounds: Array = None,
        columns: Mapping[str, Any] | Schema | None = None,
        rows_hint: int | None = None,
        reader: str = readers.AUTO,
        features: str | SymmetricMap = readers.AUTO,
        neighbours: str = Neighbours.ADD_REMOVE.value,
        public_rows: Array = None,
        group_rows: float = 1.0,
        entropy: Entropy | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        account: Account | None = None,
        stated: Stated | Mapping[str, Any] | None = None,
        target: str = LINEAR,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.norm = norm
        self.bounds = bounds
        self.columns = columns
        self.rows_hint = rows_hint
        self.reader = reader
        self.features = features
        self.neighbours = neighbours
        self.public_rows = public_rows
        self.group_rows = group_rows
        self.entropy = entropy
        self.ledger = ledger
        self.dataset = dataset
        self.analyst = analyst
        self.account = account
        self.stated = stated
        self.target = target

    def _checked_targets(self, y: Array) -> Array:
        return check_numbers(y)

    def _targets_of(self, y: Array, leaks: list[Leak]) -> Targets:
        single = y.ndim == 1
        if self.target_bounds is not None:
            width = 1 if single else y.shape[1]
            ranges = Ranges.of("target_bounds", self.target_bounds, width)
            return Targets(ranges, single, log=self._logs)
        leaks.append(Leak.TARGET_BOUNDS)
        return Targets(Ranges.seen(y.reshape(len(y), -1)), single, log=self._logs)

    @property
    def _logs(self) -> bool:
        self.check_parameters()
        return self.target == LOG

    def check_parameters(self) -> None:
        """Raise `InvalidInput` if `target` makes no sense."""
        if self.target not in {LINEAR, LOG}:
            _validate.reject_argument("target", self.target, f"one of {[LINEAR, LOG]}")

    def _own_parameters(self) -> dict[str, object]:
        return {"target": self.target}

    def _since_pickled(self) -> dict[str, object]:
        return {"target": LINEAR}

    def _coefficients(self) -> tuple[Floats, Spread, Floats]:
        """Return coefficients, their spread, and what makes units of targets of them."""
        release = cast("GeneralizedLinear", self.release_)
        half = cast("Targets", self._targets).half_width
        reach = np.asarray(release.released.layout.reach)
        return release.coefficients, release.spread, np.diag(reach * half)

    def _in_ranges(self, ranges: Ranges) -> Columns:
        return Columns(ranges, root=ROOT_FOR_NUMBERS)

    def _straight(self, keys: Floats) -> Floats:
        release, ranges = self.release_, cast("Targets", self._targets).ranges
        if isinstance(release, GeneralizedLinear):
            layout = release.released.layout
            values = np.asarray(layout.centre) + np.asarray(layout.reach) * release.scores(keys)
        else:
            values = cast("NumberReader", self._fitted_reader).numbers(release, keys)
        return np.asarray(ranges.low + (values + 1) / 2 * (ranges.high - ranges.low))

    def _keep(self, targets: Labels | Targets | LabelSets) -> None:
        del targets

    @overload
    def predict(self, X: Array, return_std: Literal[False] = ...) -> Floats: ...
    @overload
    def predict(self, X: Array, return_std: Literal[True]) -> tuple[Floats, Floats]: ...

    def predict(
        self,
        X: Array,
        return_std: bool = False,  # noqa: FBT001, FBT002 (scikit-learn's own signature)
    ) -> Floats | tuple[Floats, Floats]:
        """Return predicted targets, within `target_bounds`.

        Args:
            X: shape (m, d).
            return_std: whether to return, too, how far the noise has moved each prediction: one
                standard error, in units of targets, before clipping. How far the truth scatters,
                and what the reader cannot express, is not in it.

        Returns:
            Targets, shape (m,) or (m, k) as y was; with `return_std`, their errors, too.
        """
        queries = self.keys(X)
        reading = cast("NumberReader", self._fitted_reader)
        targets = cast("Targets", self._targets)
        predicted = targets.numbers(reading.numbers(self.release_, queries))
        if not return_std:
            return predicted
        return predicted, targets.lengths(reading.noise(self.release_, queries), predicted)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
