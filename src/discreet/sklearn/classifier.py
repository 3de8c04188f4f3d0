"""Private classification with the interface of scikit-learn."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.features.base import SymmetricMap
from discreet.ledger import Account, Ledger
from discreet.noise import Entropy
from discreet.privacy import Neighbours
from discreet.provenance import Stated
from discreet.readers.rounds.errors import Spread
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.sklearn import readers
from discreet.sklearn.columns import ROOT_FOR_CLASSES, ROOT_FOR_PICTURES, Columns, check_labels
from discreet.sklearn.estimator import Leak, PrivateEstimator
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.readers import Softmax
from discreet.sklearn.targets import Labels, LabelSets, Targets
from discreet.tables.schema import Schema

# What `predict` names: the most probable class, or the one that is more probable than elsewhere.
PROBABLE, BALANCED = "probable", "balanced"


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """A classifier that is (ε, δ)-differentially private in its training rows.

    `fit` makes one release: when one row (or record, with `groups`) is added or removed, or
    replaced, whatever is seen of the fitted estimator, its pickle and any number of predictions
    changes as little as `guarantee_` says. Each fit is a new release. Cross-validation and searches
    fit many times, and what they spend adds up (`discreet.combine([one.release_, ...])`; a ledger
    counts every one of them); so do scores on private rows, which are not protected at all. Steps
    before this one in a pipeline must not learn from private rows: a scaler gives away their means.

    Give what is public: `columns` (a table), `bounds` or `norm` (an array), `classes`, `rows_hint`.
    What is missing is taken from the rows with a `PrivacyLeakWarning` that says what that gives
    away; `leaks_` has the names.

    Args:
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        classes: all labels that there may be; a label beyond them is refused. None for several
            labels at once: y of 0 and 1, with one column for each.
        norm: public bound on the length of rows, for embeddings; longer rows are clipped.
        bounds: public (low, high) of columns: numbers, or one for each column. Numbers beyond
            are clipped. Columns that all have one range are taken for parts of a picture. Begin
            with 0 what cannot be negative (amounts, counts, intensities): such columns are taken to
            be skewed.
        columns: of a table: for each column that is to be read, its name and what it holds.
            `(low, high)`, a list of categories, `discreet.tables.Date(first, last)`, or "private",
            for a range or list that is found with a share of the budget; or a
            `discreet.tables.Schema`. Missing values need no mention.
        rows_hint: a public, rounded number of rows. Under "replace" the number itself is public.
        reader: "rounds" (learns in several passes over the rows), "least_squares" (one pass),
            "average" (votes of near rows), or "auto", which is rounds.
        features: of rounds and least squares: "linear", "unit_linear", "unit_fourier",
            "linear_and_fourier", "unit_landmarks", a map of `discreet.features`, or "auto": lines
            for columns with ranges of their own (bent, if rows are many) and for wide embeddings,
            else curves. Files and older code call the last four names "rays", "waves",
            "lines_and_waves" and "near_landmarks", which still work.
        neighbours: "add_remove" (the number of rows is private, too) or "replace".
        public_rows: rows like X, in the same units, that anybody may see; at least eight. Of
            pictures and embeddings rounds make landmarks, which become part of the release.
        group_rows: with `groups`, the influence of a record, in rows.
        entropy: where the noise comes from; None for the operating system. Clones share it, and
            pickles leave it out.
        ledger: where each fit is counted before its noise is drawn, if anywhere: a
            `discreet.ledger.Ledger`. Clones and pickles count there, too: they have its path.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        account: all three in one, in their place: `Ledger(path).account(dataset, analyst)`.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        decision: what `predict` names: "probable", the most probable class; or "balanced", the one
            that is more probable here than everywhere: it finds more of rare classes.

    Attributes:
        release_: a `discreet.SoftmaxRegression` or a `discreet.LeastSquares`.
        card_: its card.
        guarantee_: its guarantee.
        receipt_: what was spent.
        reader_: the reader that was chosen.
        leaks_: names of arguments that were taken from the rows.
        classes_: labels in order, shape (C,).
        shapes_: of tables: what each column adds to a score, with the error of noise.
        feature_importances_: of tables: how much each column matters, as shares of one.
        all_fits_: what all fits of this estimator and its clones promise together.
        n_features_in_: number of columns.
        feature_names_in_: names of columns, if X was a frame.
    """

    classes_: Array

    _classifies = True

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        classes: Array = None,
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
        decision: str = PROBABLE,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
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
        self.decision = decision

    def _checked_targets(self, y: Array) -> Array:
        return check_labels(y)

    def _targets_of(self, y: Array, leaks: list[Leak]) -> Labels | LabelSets:
        self.check_parameters()
        if y.ndim == 2:
            if self.classes is not None:
                raise InvalidInput("Expected no classes for several labels of a row: 0 and 1.")
            return LabelSets(y.shape[1])
        if self.classes is not None:
            return Labels.of(self.classes, distinct=True)
        check_classification_targets(y)
        leaks.append(Leak.CLASSES)
        return Labels.of(y, distinct=False)

    def _in_ranges(self, ranges: Ranges) -> Columns:
        """Return columns in their ranges; of pictures that landmarks know, the directions."""
        landmarks = self.public_rows is not None and readers.is_auto(self.features)
        root = ROOT_FOR_PICTURES if ranges.alike else ROOT_FOR_CLASSES
        return Columns(ranges, root=root, directions=landmarks and ranges.alike)

    def _keep(self, targets: Labels | Targets | LabelSets) -> None:
        several = isinstance(targets, LabelSets)
        # As scikit-learn has it for several labels at once: 0 and 1 of each.
        self.classes_ = np.arange(2) if several else cast("Labels", targets).classes

    def check_parameters(self) -> None:
        """Raise `InvalidInput` if `decision` makes no sense, or the reader cannot do it."""
        if self.decision not in {PROBABLE, BALANCED}:
            known = [PROBABLE, BALANCED]
            _validate.reject_argument("decision", self.decision, f"one of {known}")
        if self.decision == BALANCED and self.reader not in {readers.AUTO, Softmax.name}:
            wanted = "'auto' or 'rounds': it counts how many rows a class has"
            _validate.reject_argument("reader", self.reader, wanted)

    def _own_parameters(self) -> dict[str, object]:
        return {"decision": self.decision}

    def _since_pickled(self) -> dict[str, object]:
        return {"decision": PROBABLE}

    def _coefficients(self) -> tuple[Floats, Spread, Floats]:
        """Return coefficients, their spread, and what makes of C logits the scores that are told.

        Of two classes, the second less the first; of more, each less their mean; of several labels,
        each by itself.
        """
        release = cast("SoftmaxRegression", self.release_)
        count = release.coefficients.shape[1]
        if isinstance(self._targets, LabelSets):
            unit = np.eye(count)
        elif count == 2:
            unit = np.array([[-1.0], [1.0]])
        else:
            unit = np.eye(count) - 1 / count
        return release.coefficients, release.spread, unit

    def _straight(self, keys: Floats) -> Floats:
        scores = self._fitted_reader.scores(self.release_, keys)
        return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

    @property
    def _several(self) -> bool:
        return isinstance(self._targets, LabelSets)

    def _scores(self, X: Array) -> Floats:
        """Return the reader's scores without their mean over classes, shape (m, C)."""
        queries = self.keys(X)
        scores = self._fitted_reader.scores(self.release_, queries)
        if self._several:
            return scores
        return np.asarray(scores - scores.mean(axis=1, keepdims=True))

    def decision_function(self, X: Array) -> Floats:
        """Return how much speaks for each class.

        With rounds: logits. With least squares: about the probability of a class, less 1/C. With
        averages: by how much the class weighs more near the row than it does everywhere, in public
        units, so that frequent classes do not win by frequency.

        Args:
            X: shape (m, d).

        Returns:
            Scores, shape (m, C); for two classes that of the second less that of the first, shape
            (m,).
        """
        scores = self._scores(X)
        if self._several:
            return scores
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Array) -> Floats:
        """Return the probability of each class.

        With rounds: the softmax of the scores. With the other readers: max(score + 1/C, 0), divided
        by the sum over classes, a public function of the scores that never reverses their order.
        That is close to probabilities with least squares; with averages only the order means
        something.

        Args:
            X: shape (m, d).

        Returns:
            Probabilities, shape (m, C): rows sum to one.
        """
        queries = self.keys(X)
        return self._fitted_reader.probabilities(self.release_, queries)

    def predict(self, X: Array) -> Array:
        """Return the class with the largest score for each row.

        With `decision="balanced"`, the class that is more probable here than everywhere, by the
        noisy totals of classes in the release: finds more of rare classes, and is wrong more often
        on the whole.

        Args:
            X: shape (m, d).

        Returns:
            Classes, shape (m,); of several labels at once, 0 and 1, shape (m, k).
        """
        scores = self._scores(X)
        if self._several:
            return (scores > 0).astype(np.int64)
        self.check_parameters()
        if self.decision == BALANCED:
            scores = scores - cast("SoftmaxRegression", self.release_).log_totals
        return self.classes_[np.argmax(scores, axis=1)]
