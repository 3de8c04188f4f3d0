"""Which reader, and which features: rules of public numbers. A closed list of readers.

Thresholds are in rows for each unit of noise: n/σ, where σ is the noise of the whole budget in
units of what one row can change. At ε = 1 and δ = 1e-5, σ is 3.7.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet import _validate
from discreet.features.base import SymmetricMap
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import UnitLinear
from discreet.privacy import Privacy
from discreet.readers.least_squares.choosing import BENDING_WAVES, WIDE, waves_for
from discreet.readers.softmax.settings import STRETCH, waves_count
from discreet.sklearn.averaging import Average
from discreet.sklearn.columns import Columns, Embeddings
from discreet.sklearn.learning import Rounds
from discreet.sklearn.reading import NumberReader, Reader
from discreet.sklearn.solving import Solve
from discreet.sums.settings import crude_multiplier

AUTO = "auto"

NUMBER_READERS: tuple[NumberReader, ...] = (Average(), Solve())
READERS: tuple[Reader, ...] = (Rounds(), *NUMBER_READERS)

# So few columns can be bent, if there are so many rows for each unit of noise.
_FEW_COLUMNS, _ENOUGH_TO_BEND = 16, 1_340

# Planes between classes can be bent, too, by so many waves, from so many rows on for each unit of
# noise: with fewer, waves are noise.
_CURVES, _ENOUGH_FOR_CURVES = 256, 300

# How far waves reach, for columns in their ranges: for rounds, for least squares, and for votes.
_ROUNDS_SCALE, _SCALE, _VOTES_SCALE = 5.0, 6.0, 7.0

# Of waves that bend lines for numbers: how far they reach, and how much of the length of features
# the lines have.
_BENDING_SCALE, _BENDING_PORTION = 10.0, 0.5

# Votes among embeddings in so many dimensions; softer in more, where rows are further apart.
_SHARPEST, _DIRECTIONS = 6.0, 64

# How much columns count beside the constant of rays, for numbers: lines that are nearly straight.
_STRETCH_OF_NUMBERS = 3.0

# λ: what counts of classes is which is largest, so less is shrunk. Embeddings have much in common.
_RIDGE_OF_CLASSES, _RIDGE = 0.3, 0.5


def named(name: object, among: Sequence[Reader] = READERS) -> Reader:
    """Return the reader of that name, or raise `InvalidInput`."""
    for reader in among:
        if reader.name == name:
            return reader
    names = [AUTO, *(reader.name for reader in among)]
    return _validate.reject_argument("reader", name, f"one of {names}")


def check(reader: object, features: object, among: Sequence[Reader]) -> None:
    """Raise `InvalidInput` unless there is such a reader, and it has use for such features."""
    if reader != AUTO and named(reader, among).name == Average.name and not _left_open(features):
        _validate.reject_argument(
            "features", features, "'auto': an average has features of its own"
        )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What was chosen.

    Attributes:
        reader: how to release and to answer.
        features: of rounds, least squares or votes.
        ridge: how much least squares shrinks.
    """

    reader: Reader
    features: str | SymmetricMap
    ridge: float


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that is known before a reader is chosen. Public.

    Attributes:
        reader: a name, or "auto".
        features: as the caller gave them.
        columns: how rows become keys.
        width: of keys.
        classes: how many there are; None for regression.
        privacy: what may be spent.
        group_rows: the influence of a record.
        has_public_rows: whether there are any.
    """

    reader: str
    features: str | SymmetricMap
    columns: Columns | Embeddings
    width: int
    classes: int | None
    privacy: Privacy
    group_rows: float
    has_public_rows: bool

    @property
    def needs_rows(self) -> bool:
        """Whether a number of rows is needed to choose, or by what is chosen."""
        if self.reader == Solve.name:
            return self._pictures and _left_open(self.features)
        return self.reader == Average.name

    @property
    def _pictures(self) -> bool:
        """Whether columns are alike, and to be classified: parts of one picture."""
        return self.classes is not None and self.columns.alike and not self._embedded

    @property
    def _quantities(self) -> bool:
        """Whether each column is a quantity: straight lines, bent a little."""
        return not self._embedded and not self._pictures

    @property
    def _embedded(self) -> bool:
        return isinstance(self.columns, Embeddings)

    def choose(self, rows: int | None) -> Recipe:
        """Return the reader that was asked for, or the one that public numbers recommend.

        Args:
            rows: a public number of rows, if it is needed.
        """
        noise = crude_multiplier(self.privacy, 1, self.group_rows)
        name = self.reader
        if name == AUTO:
            name = Solve.name if self.classes is None else Rounds.name
        if name == Average.name:
            return Recipe(reader=named(name), features=self._for_votes(rows, noise), ridge=_RIDGE)
        features = self.features
        if _left_open(features):
            find = self._to_solve if name == Solve.name else self._to_learn
            features = find(rows, noise)
        smooth = self.classes is None or self._embedded
        ridge = _RIDGE if smooth else _RIDGE_OF_CLASSES
        return Recipe(reader=named(name), features=features, ridge=ridge)

    def _for_votes(self, rows: int | None, noise: float) -> SymmetricMap:
        scale = _VOTES_SCALE
        if self._embedded:
            scale = _SHARPEST * min(1.0, math.sqrt(_DIRECTIONS / self.width))
        return self._waves(waves_for(rows, noise), scale)

    def _to_learn(self, rows: int | None, noise: float) -> str | SymmetricMap:
        """Return features for rounds: planes between classes, and curves in pictures."""
        if self.has_public_rows and not self._quantities:
            return UnitLandmarks.kind
        if self._pictures:
            return self._waves(waves_count(rows, noise), _ROUNDS_SCALE)
        if self._embedded:
            return AUTO
        planes = UnitLinear(self.width, key_norm=self.columns.norm, stretch=STRETCH)
        if rows is None or rows / noise < _ENOUGH_FOR_CURVES:
            return planes
        return LinearAndFourier(planes, self._waves(_CURVES, _ROUNDS_SCALE), portion=0.5)

    def _to_solve(self, rows: int | None, noise: float) -> str | SymmetricMap:
        if self.has_public_rows and not self._quantities:
            return UnitLandmarks.kind
        norm = self.columns.norm
        if self._pictures:
            return self._waves(waves_for(rows, noise), _SCALE)
        if self._embedded and self.width < WIDE:
            return UnitFourier.kind
        stretch = _STRETCH_OF_NUMBERS if self.classes is None else STRETCH
        lines = UnitLinear(self.width, key_norm=norm, stretch=stretch)
        seen = 0.0 if rows is None else rows / noise
        if self._embedded or self.width > _FEW_COLUMNS or seen < _ENOUGH_TO_BEND:
            return lines
        if self.classes is not None:  # planes between them are bent less
            return LinearAndFourier(lines, self._waves(BENDING_WAVES, _SCALE))
        waves = self._waves(BENDING_WAVES, _BENDING_SCALE)
        return LinearAndFourier(lines, waves, portion=_BENDING_PORTION)

    def _waves(self, count: int, scale: float) -> UnitFourier:
        norm = self.columns.norm
        return UnitFourier(
            self.width, frequencies=count, scale=scale / norm**2, key_norm=norm, query_norm=norm
        )


def _left_open(features: object) -> bool:
    return isinstance(features, str) and features == AUTO
