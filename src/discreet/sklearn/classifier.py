"""Private classification with the interface of scikit-learn."""

from typing import cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from discreet._typing import Array, Floats
from discreet.features.base import SymmetricMap
from discreet.ledger import Account, Ledger
from discreet.noise import Entropy
from discreet.privacy import Neighbours
from discreet.sklearn import readers
from discreet.sklearn.columns import ROOT_FOR_CLASSES, ROOT_FOR_PICTURES, Columns, check_labels
from discreet.sklearn.estimator import Leak, PrivateEstimator
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.targets import Labels, Targets


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """A classifier that is (ε, δ)-differentially private in its training rows.

    `fit` makes one release: when one row (or record, with `groups`) is added or removed, or
    replaced, whatever is seen of the fitted estimator, its pickle and any number of predictions
    changes as little as `guarantee_` says. Each fit is a new release. Cross-validation and searches
    fit many times, and what they spend adds up (`discreet.combine([one.release_, ...])`; a ledger
    counts every one of them); so do scores on private rows, which are not protected at all. Steps
    before this one in a pipeline must not learn from private rows: a scaler gives away their means.

    Give what is public: `bounds` or `norm`, `classes`, `rows_hint`. What is missing is taken from
    the rows with a `PrivacyLeakWarning` that says what that gives away; `leaks_` has the names.

    Args:
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        classes: all labels that there may be; a label beyond them is refused.
        norm: public bound on the length of rows, for embeddings; longer rows are clipped.
        bounds: public (low, high) of columns: numbers, or one for each column. Numbers beyond
            are clipped. Columns that all have one range are taken for parts of a picture. Begin
            with 0 what cannot be negative (amounts, counts, intensities): such columns are taken to
            be skewed.
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

    Attributes:
        release_: a `discreet.SoftmaxRegression` or a `discreet.LeastSquares`.
        card_: its card.
        guarantee_: its guarantee.
        receipt_: what was spent.
        reader_: the reader that was chosen.
        leaks_: names of arguments that were taken from the rows.
        classes_: labels in order, shape (C,).
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
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.norm = norm
        self.bounds = bounds
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

    def _checked_targets(self, y: Array) -> Array:
        return check_labels(y)

    def _targets_of(self, y: Array, leaks: list[Leak]) -> Labels:
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

    def _keep(self, targets: Labels | Targets) -> None:
        self.classes_ = cast("Labels", targets).classes

    def _scores(self, X: Array) -> Floats:
        """Return the reader's scores without their mean over classes, shape (m, C)."""
        queries = self.keys(X)
        scores = self._fitted_reader.scores(self.release_, queries)
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

        Args:
            X: shape (m, d).

        Returns:
            Classes, shape (m,).
        """
        best = np.argmax(self._scores(X), axis=1)
        return self.classes_[best]
