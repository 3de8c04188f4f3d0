"""Three ways to release rows and to answer from the release, and which of them is taken.

Attention (`reader="average"`), least squares and softmax regression (`reader="rounds"`) are a
closed list. Which one, and with which features, follows from public numbers alone. Thresholds are
in rows for each unit of noise: n/σ, where σ is the noise of the whole budget in units of what one
row can change. At ε = 1 and δ = 1e-5, σ is 3.7.
"""

import abc
import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.features.base import SymmetricMap
from discreet.features.columns import TableColumns
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import UnitLinear
from discreet.ledger import Account
from discreet.noise import Entropy
from discreet.privacy import Privacy
from discreet.provenance import Stated
from discreet.readers.attention.error_model import Goal
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.glm import GLM, GeneralizedLinear, Loss
from discreet.readers.least_squares import answers
from discreet.readers.least_squares.layout import BENDING_WAVES, WIDE, waves_for
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.readers.registry import Readable
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.mechanism import SOFTMAX, STRETCH, waves_count
from discreet.sklearn.columns import Columns, Embeddings, Tabled
from discreet.sklearn.targets import Labels, LabelSets, Targets
from discreet.sums.mechanism import AnyRelease, Mechanism, build
from discreet.sums.settings import crude_multiplier

AUTO = "auto"

# So few columns can be bent, if there are so many rows for each unit of noise.
_FEW_COLUMNS, _ENOUGH_TO_BEND = 16, 1_340

# Planes between classes can be bent, too, by so many waves, from so many rows on for each unit of
# noise: with fewer, waves are noise.
_CURVES, _ENOUGH_FOR_CURVES = 256, 300

# Waves over the numbers of a table: from so many rows on for each unit of noise, or from so many
# for each of its numbers; and not over more numbers than these.
_ENOUGH_FOR_WAVES, _ENOUGH_FOR_WAVES_OF_COLUMN, _MOST_WAVED = 1_000, 150, 64

# How far waves reach, for columns in their ranges.
_SOFTMAX_SCALE, _LEAST_SQUARES_SCALE, _ATTENTION_SCALE = 5.0, 6.0, 7.0

# Of waves that bend lines for numbers: how far they reach, and how much of the length of features
# the lines have.
_BENDING_SCALE, _BENDING_PORTION = 10.0, 0.5

# Attention among embeddings in so many dimensions; softer in more, where rows are further apart.
_SHARPEST, _DIRECTIONS = 6.0, 64

# How much columns count beside the constant of rays, for numbers: lines that are nearly straight.
_STRETCH_OF_NUMBERS = 3.0

# λ: what counts of classes is which is largest, so less is shrunk. Embeddings have much in common.
_RIDGE_OF_CLASSES, _RIDGE = 0.3, 0.5

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Keys, targets and the record of each row. PRIVATE.

    Attributes:
        keys: shape (n, d).
        targets: labels or numbers, as they were given, shape (n,) or (n, k).
        groups: shape (n,); None if each row is its own record.
    """

    keys: Floats
    targets: Array
    groups: Array


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public terms of a release: all that a reader and its features are chosen by.

    Attributes:
        privacy: what may be spent.
        group_rows: the influence of a record.
        columns: how rows become keys.
        width: of keys.
        targets: how labels or numbers become values.
        public_rows: mapped as the keys are, shape (n, d), if there are any.
        features: a map, a name, or "auto".
        rows_hint: a public number of rows, if there is one.
        leaks: names of what was taken from the rows.
        account: where the release is counted; None for nowhere.
        stated: by the builder; None if nothing was.
    """

    privacy: Privacy
    group_rows: float
    columns: Columns | Embeddings | Tabled
    width: int
    targets: Labels | Targets | LabelSets
    public_rows: Array = field(repr=False)
    features: str | SymmetricMap
    rows_hint: int | None
    leaks: tuple[str, ...] = ()
    account: Account | None = None
    stated: Stated | None = None

    @property
    def classifies(self) -> bool:
        """Whether targets are classes."""
        return isinstance(self.targets, Labels)

    @property
    def embedded(self) -> bool:
        """Whether rows are embeddings: a known length, and no columns."""
        return isinstance(self.columns, Embeddings)

    @property
    def tabled(self) -> TableColumns | None:
        """The features of a table with a schema, with waves if rows are many; None without one."""
        if not isinstance(self.columns, Tabled):
            return None
        additive = self.columns.map()
        enough = min(_ENOUGH_FOR_WAVES, _ENOUGH_FOR_WAVES_OF_COLUMN * additive.numbers)
        if not 0 < additive.numbers <= _MOST_WAVED or self.rows_per_noise < enough:
            return additive
        return additive.with_waves(_CURVES)

    @property
    def pictures(self) -> bool:
        """Whether columns are alike, and to be classified: parts of one picture."""
        alike = isinstance(self.columns, Columns) and self.columns.ranges.alike
        return self.classifies and alike

    @property
    def has_landmarks(self) -> bool:
        """Whether public rows are there to compare with: quantities need none."""
        return self.public_rows is not None and (self.embedded or self.pictures)

    @property
    def noise(self) -> float:
        """The noise σ of the whole budget, in units of what one row can change."""
        return crude_multiplier(self.privacy, 1, self.group_rows)

    @property
    def rows_per_noise(self) -> float:
        """n/σ; 0 if no number of rows is known."""
        return 0.0 if self.rows_hint is None else self.rows_hint / self.noise

    def waves(self, count: int, scale: float) -> UnitFourier:
        """Return random Fourier features of keys, whose scale is that of keys of length one."""
        norm = self.columns.norm
        return UnitFourier(
            self.width, frequencies=count, scale=scale / norm**2, key_norm=norm, query_norm=norm
        )

    def rays(self, stretch: float) -> UnitLinear:
        """Return unit-norm linear features of keys."""
        return UnitLinear(self.width, key_norm=self.columns.norm, stretch=stretch)

    def released(
        self,
        mechanism: Mechanism[Any, Any, AnyRelease],
        keys: Floats,
        values: Array,
        groups: Array,
        entropy: Entropy | None,
        **own: Any,  # noqa: ANN401 (the mechanism's own options)
    ) -> AnyRelease:
        """Return the release of some rows by a mechanism.

        Args:
            mechanism: what is released.
            keys: of the rows.
            values: that come with them.
            groups: the record of each row; None if each row is its own.
            entropy: where the noise comes from.
            **own: options besides those that all mechanisms take.
        """
        options = mechanism.options(
            epsilon=self.privacy.epsilon,
            delta=self.privacy.delta,
            neighbours=self.privacy.neighbours,
            key_norm=self.columns.norm,
            rows_hint=self.rows_hint,
            group_rows=self.group_rows,
            leaks=self.leaks,
            stated=self.stated,
            **own,
        )
        source = mechanism.source(keys, values, groups, options)
        hint = source.rows_hint(self.rows_hint, self.privacy.neighbours)
        [release] = build(
            mechanism,
            source,
            replace(options, rows_hint=hint),
            entropy=entropy,
            account=self.account,
        )
        return release


class Reader(abc.ABC):
    """One way to release rows, once, and to answer from the release, as often as anybody likes."""

    name: ClassVar[str]
    answers: ClassVar[tuple[type[Any], ...]]

    def needs_rows(self, terms: Terms) -> bool:
        """Whether nothing can be chosen, or released, without a number of rows."""
        del terms
        return False

    def resolve(self, terms: Terms) -> Terms:
        """Return terms with features that public numbers recommend, if the caller named none."""
        if not is_auto(terms.features):
            if isinstance(terms.columns, Tabled):
                wanted = "'auto': a table with a schema has features of its own"
                _validate.reject_argument("features", terms.features, wanted)
            return terms
        if terms.tabled is not None:
            return replace(terms, features=self._of_table(terms, terms.tabled))
        return replace(terms, features=self._features(terms))

    @abc.abstractmethod
    def _features(self, terms: Terms) -> str | SymmetricMap: ...

    def _of_table(self, terms: Terms, features: TableColumns) -> TableColumns:
        """Return the features of a table with a schema, if this reader can do with them."""
        del terms
        return features

    @abc.abstractmethod
    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Readable:
        """Return a release of the rows, private as the terms say."""

    @abc.abstractmethod
    def scores(self, release: Readable, queries: Floats) -> Floats:
        """Return how much speaks for each class, around zero: queries (m, d) to (m, C)."""

    def probabilities(self, release: Readable, queries: Floats) -> Floats:
        """Return something like probabilities, shape (m, C): rows sum to one.

        max(score + 1/C, 0), divided by the sum over classes: a public function of the scores, that
        never reverses their order.
        """
        scores = self.scores(release, queries)
        scores -= scores.mean(axis=1, keepdims=True)
        # Scores have mean zero, so the largest is at least 1/C.
        positive = np.maximum(scores + 1 / scores.shape[1], 0.0)
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))


class NumberReader(Reader):
    """A reader that predicts numbers, too."""

    @abc.abstractmethod
    def numbers(self, release: Readable, queries: Floats) -> Floats:
        """Return predicted values: queries (m, d) to (m, k)."""

    @abc.abstractmethod
    def noise(self, release: Readable, queries: Floats) -> Floats:
        """Return the standard error that the noise gives to each of `numbers`, shape (m, k)."""


class Attention(NumberReader):
    """Averages over near rows, with weights that fall with the distance: for few rows, or small ε.

    Classes are voted for by sums alone: e^(-scale·‖q - k‖²/2) over all rows, least squares without
    second moments. Numbers are means, from a memory of rows on the sphere.
    """

    name: ClassVar[str] = "average"
    answers: ClassVar[tuple[type[Any], ...]] = (answers.LeastSquares, Memory)

    def needs_rows(self, terms: Terms) -> bool:
        """Always: the number of rows decides how sharp attention can be."""
        del terms
        return True

    def _features(self, terms: Terms) -> SymmetricMap:
        scale = _ATTENTION_SCALE
        if terms.embedded:
            scale = _SHARPEST * min(1.0, math.sqrt(_DIRECTIONS / terms.width))
        return terms.waves(waves_for(terms.rows_hint, terms.noise), scale)

    def _of_table(self, terms: Terms, features: TableColumns) -> TableColumns:
        del terms, features
        wanted = "'auto', 'rounds' or 'least_squares': no row of a table is near another"
        return _validate.reject_argument("reader", self.name, wanted)

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Readable:
        """Return sums for votes, or a memory for means."""
        values, norm = terms.targets.values(rows.targets), terms.columns.norm
        if terms.classifies:
            return terms.released(
                LEAST_SQUARES,
                rows.keys,
                values,
                rows.groups,
                entropy,
                value_norm=terms.targets.norm,
                features=terms.features,
                share=0.0,
                centred=False,
            )
        return terms.released(
            ATTENTION,
            on_sphere(rows.keys, norm),
            values,
            rows.groups,
            entropy,
            value_norm=terms.targets.norm,
            query_norm=norm,
            public_rows=None if terms.public_rows is None else on_sphere(terms.public_rows, norm),
            goal=Goal.AVERAGE,
        )

    def scores(self, release: Readable, queries: Floats) -> Floats:
        """Return by how much each class weighs more near a query than it does everywhere.

        With weights w_i and classes c_i, num_c = Σ w_i·[c_i = c], den = Σ w_i, and π_c the share of
        class c in all rows: the score is num_c - π_c·den, for each row that there is said to be. No
        class wins because it is frequent. Values are e_c - 1/C, and 1/C cancels.
        """
        votes = _of_kind(answers.LeastSquares, release)
        numerators, denominators = votes.sums(queries)
        scores = numerators - denominators[:, None] * _excess(*votes.shares)
        return np.asarray(scores / (votes.released.rows_hint or 1), dtype=np.float64)

    def numbers(self, release: Readable, queries: Floats) -> Floats:
        """Return weighted means of the values."""
        memory = _of_kind(Memory, release)
        lifted = on_sphere(queries, memory.kernel.query_norm)
        return np.asarray(memory.attend(lifted), dtype=np.float64)

    def noise(self, release: Readable, queries: Floats) -> Floats:
        """Return the standard error of the noise in them."""
        memory = _of_kind(Memory, release)
        lifted = on_sphere(queries, memory.kernel.query_norm)
        return np.asarray(memory.noise_stderr(lifted), dtype=np.float64)


class LeastSquares(NumberReader):
    """Functions fitted to all rows, from second moments: for many rows, and straight lines."""

    name: ClassVar[str] = "least_squares"
    answers: ClassVar[tuple[type[Any], ...]] = (answers.LeastSquares,)

    def needs_rows(self, terms: Terms) -> bool:
        """Whether features are waves, whose number depends on that of rows."""
        return terms.pictures and is_auto(terms.features)

    def _features(self, terms: Terms) -> str | SymmetricMap:
        if terms.has_landmarks:
            return UnitLandmarks.kind
        if terms.pictures:
            return terms.waves(waves_for(terms.rows_hint, terms.noise), _LEAST_SQUARES_SCALE)
        if terms.embedded and terms.width < WIDE:
            return UnitFourier.kind
        lines = terms.rays(STRETCH if terms.classifies else _STRETCH_OF_NUMBERS)
        bent = terms.width <= _FEW_COLUMNS and terms.rows_per_noise >= _ENOUGH_TO_BEND
        if terms.embedded or not bent:
            return lines
        if terms.classifies:  # planes between them are bent less
            return LinearAndFourier(lines, terms.waves(BENDING_WAVES, _LEAST_SQUARES_SCALE))
        waves = terms.waves(BENDING_WAVES, _BENDING_SCALE)
        return LinearAndFourier(lines, waves, portion=_BENDING_PORTION)

    def _of_table(self, terms: Terms, features: TableColumns) -> TableColumns:
        del terms
        if not features.known:
            wanted = "'auto' or 'rounds': what is private is found in a pass before"
            _validate.reject_argument("reader", self.name, wanted)
        return features

    def ridge(self, terms: Terms) -> float:
        """Return λ: how much coefficients are shrunk."""
        return _RIDGE_OF_CLASSES if terms.classifies and not terms.embedded else _RIDGE

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Readable:
        """Return a regression of the rows."""
        return terms.released(
            LEAST_SQUARES,
            rows.keys,
            terms.targets.values(rows.targets),
            rows.groups,
            entropy,
            value_norm=terms.targets.norm,
            features=terms.features,
            ridge=self.ridge(terms),
            centred=not terms.classifies,
            public_rows=terms.public_rows,
        )

    def scores(self, release: Readable, queries: Floats) -> Floats:
        """Return estimates of the probability of each class, less 1/C."""
        return self.numbers(release, queries)

    def numbers(self, release: Readable, queries: Floats) -> Floats:
        """Return predicted values."""
        fitted = _of_kind(answers.LeastSquares, release)
        return np.asarray(fitted.predict(queries), dtype=np.float64)

    def noise(self, release: Readable, queries: Floats) -> Floats:
        """Return how far the noise has moved each of them."""
        fitted = _of_kind(answers.LeastSquares, release)
        return np.asarray(fitted.predict(queries, stderr=True)[1], dtype=np.float64)


class Softmax(Reader):
    """Softmax regression, in several passes over the rows: for classes."""

    name: ClassVar[str] = "rounds"
    answers: ClassVar[tuple[type[Any], ...]] = (SoftmaxRegression,)

    def _features(self, terms: Terms) -> str | SymmetricMap:
        """Return features for planes between classes, and for curves in pictures."""
        if terms.has_landmarks:
            return UnitLandmarks.kind
        if terms.pictures:
            return terms.waves(waves_count(terms.rows_hint, terms.noise), _SOFTMAX_SCALE)
        if terms.embedded:
            return AUTO
        planes = terms.rays(STRETCH)
        if terms.rows_per_noise < _ENOUGH_FOR_CURVES:
            return planes
        return LinearAndFourier(planes, terms.waves(_CURVES, _SOFTMAX_SCALE), portion=0.5)

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Readable:
        """Return a classifier of the rows."""
        return terms.released(
            SOFTMAX,
            rows.keys,
            rows.targets,
            rows.groups,
            entropy,
            classes=_of_kind(Labels, terms.targets).classes,
            features=terms.features,
            public_rows=terms.public_rows,
        )

    def scores(self, release: Readable, queries: Floats) -> Floats:
        """Return logits."""
        trained = _of_kind(SoftmaxRegression, release)
        return np.asarray(trained.logits(queries), dtype=np.float64)

    def probabilities(self, release: Readable, queries: Floats) -> Floats:
        """Return the softmax of the logits."""
        trained = _of_kind(SoftmaxRegression, release)
        return np.asarray(trained.probabilities(queries), dtype=np.float64)


class Glm(NumberReader):
    """Numbers in rounds, by Huber's loss; or several labels at once, by the logistic one."""

    name: ClassVar[str] = "rounds"
    answers: ClassVar[tuple[type[Any], ...]] = (GeneralizedLinear,)

    def _features(self, terms: Terms) -> str | SymmetricMap:
        """Return those of least squares: lines, bent if rows are many, or curves."""
        return LeastSquares()._features(terms)  # noqa: SLF001 (of the same module)

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Readable:
        """Return a regression of the rows."""
        return terms.released(
            GLM,
            rows.keys,
            terms.targets.values(rows.targets),
            rows.groups,
            entropy,
            features=terms.features,
            public_rows=terms.public_rows,
            loss=Loss.LOGISTIC if isinstance(terms.targets, LabelSets) else Loss.SQUARED,
        )

    def scores(self, release: Readable, queries: Floats) -> Floats:
        """Return log-odds of labels."""
        trained = _of_kind(GeneralizedLinear, release)
        return np.asarray(trained.scores(queries), dtype=np.float64)

    def probabilities(self, release: Readable, queries: Floats) -> Floats:
        """Return the probability of each label, by itself."""
        return self.numbers(release, queries)

    def numbers(self, release: Readable, queries: Floats) -> Floats:
        """Return predicted values."""
        trained = _of_kind(GeneralizedLinear, release)
        return np.asarray(trained.predict(queries), dtype=np.float64)

    def noise(self, release: Readable, queries: Floats) -> Floats:
        """Return how far the noise has moved each of them."""
        trained = _of_kind(GeneralizedLinear, release)
        return np.asarray(trained.stderr(queries), dtype=np.float64)


NUMBER_READERS: tuple[NumberReader, ...] = (Glm(), Attention(), LeastSquares())
READERS: tuple[Reader, ...] = (Softmax(), Attention(), LeastSquares())


def among(targets: Labels | Targets | LabelSets) -> tuple[Reader, ...]:
    """Return the readers that there are for such targets."""
    if isinstance(targets, LabelSets):
        return (Glm(),)
    return READERS if isinstance(targets, Labels) else NUMBER_READERS


def named(name: object, targets: Labels | Targets | LabelSets) -> Reader:
    """Return the reader of that name for such targets, or raise `InvalidInput`."""
    known = among(targets)
    for reader in known:
        if reader.name == name:
            return reader
    names = [AUTO, *(reader.name for reader in known)]
    return _validate.reject_argument("reader", name, f"one of {names}")


def chosen(
    name: object,
    features: object,
    targets: Labels | Targets | LabelSets,
    columns: Columns | Embeddings | Tabled,
) -> Reader:
    """Return the reader that was asked for, or the one for such targets.

    Args:
        name: of a reader, or "auto".
        features: that it is to have; an average has its own.
        targets: classes, numbers or several labels.
        columns: how rows become keys.

    Raises:
        InvalidInput: if there is no such reader, or it has no use for such features.
    """
    if name == AUTO:
        solved = isinstance(targets, Targets) and not isinstance(columns, Tabled)
        return named(LeastSquares.name if solved else Softmax.name, targets)
    reader = named(name, targets)
    if isinstance(reader, Attention) and not is_auto(features):
        _validate.reject_argument(
            "features", features, "'auto': an average has features of its own"
        )
    return reader


def is_auto(features: object) -> bool:
    """Whether the choice of features is left to the reader."""
    return isinstance(features, str) and features == AUTO


def on_sphere(keys: Floats, norm: float) -> Floats:
    """Return keys x (n, d) as [x; √(norm² - ‖x‖²)], shape (n, d + 1), of length `norm`.

    A memory weighs rows by e^(scale·⟨q, k⟩), and its noise hides the longest key that there may be:
    on the sphere no row weighs less because it is short, and near means near. Keys that are
    longer than `norm` keep their length, and are clipped where they are used.

    Column by column, and in single precision whatever that of keys is, so that a row is the same to
    the bit wherever it stands, and whatever stands beside it.
    """
    squares = np.zeros(len(keys))
    for column in keys.T:
        squares += np.square(column, dtype=np.float64)
    last = np.sqrt(np.maximum(norm * norm - squares, 0.0))
    return np.concatenate([keys, last[:, None].astype(np.float32)], axis=1, dtype=keys.dtype)


def _of_kind(kind: type[_Kind], given: object) -> _Kind:
    if not isinstance(given, kind):
        raise TypeError(f"Expected a {kind.__name__}, got a {type(given).__name__}.")
    return given


def _excess(shares: Floats, errors: Floats) -> Floats:
    """Return shares of classes less 1/C, shape (C,), as far as they are more than their noise.

    James and Stein's estimate: what is as short as noise alone would be is taken for none, because
    near rows den is large, and an error in a share would hide all that there is.
    """
    apart = shares - shares.mean()
    noise = (len(apart) - 1) * float(np.mean(errors**2))
    squared = float(apart @ apart)
    return np.asarray(apart * max(1 - noise / max(squared, noise), 0.0) if noise else apart)
