"""Which reader, and which features: rules of public numbers. A closed list of readers."""

from dataclasses import dataclass

from discreet import _validate
from discreet.regression import QueryMap
from discreet.regression.linear import Linear
from discreet.regression.near_landmarks import NearLandmarks
from discreet.regression.waves import Waves
from discreet.sklearn.averaging import Average
from discreet.sklearn.columns import Columns, Embeddings
from discreet.sklearn.reading import Reader
from discreet.sklearn.solving import Solve

AUTO = "auto"

READERS: tuple[Reader, ...] = (Average(), Solve())

# Averages need no second moments, which few rows do not pay for: up to so many rows for each class
# at ε = 1.
_ROWS_OF_A_CLASS = 150


def named(name: object) -> Reader:
    """Return the reader of that name, or raise `InvalidInput`."""
    for reader in READERS:
        if reader.name == name:
            return reader
    names = [AUTO, *(reader.name for reader in READERS)]
    return _validate.reject_argument("reader", name, f"one of {names}")


def check(reader: object, features: object) -> None:
    """Raise `InvalidInput` unless there is such a reader, and it has use for such features."""
    if reader != AUTO and named(reader).name == Average.name and not _left_open(features):
        _validate.reject_argument(
            "features", features, "'auto': an average has features of its own"
        )


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that is known before a reader is chosen. Public.

    Attributes:
        reader: a name, or "auto".
        given: the features that the caller gave: who names features wants least squares.
        features: those of `features_for`.
        epsilon: of the guarantee.
        classes: how many there are; None for regression.
    """

    reader: str
    given: str | QueryMap
    features: str | QueryMap
    epsilon: float
    classes: int | None

    @property
    def needs_rows(self) -> bool:
        """Whether a number of rows is needed to choose, or by what is chosen."""
        asked = self.reader == Average.name
        return asked or self._few_is is not None or _left_open(self.features)

    @property
    def _few_is(self) -> float | None:
        """Up to how many rows an average is better; None if that is no question.

        Two classes are one straight line apart, as numbers are, and so are quantities.
        """
        if self.reader != AUTO or self.classes is None or self.classes < 3:
            return None
        if not _left_open(self.given) or self.features == Linear.kind:
            return None
        return _ROWS_OF_A_CLASS * self.classes / self.epsilon

    def choose(self, rows: int | None) -> Reader:
        """Return the reader that was asked for, or the one that public numbers recommend.

        Args:
            rows: a public number of rows, if it is needed.
        """
        if self.reader != AUTO:
            return named(self.reader)
        few = self._few_is
        averages = few is not None and rows is not None and rows <= few
        return named(Average.name if averages else Solve.name)


def features_for(
    features: str | QueryMap, columns: Columns | Embeddings, *, has_public_rows: bool
) -> str | QueryMap:
    """Return the features that were asked for, or those for such columns.

    Columns with ranges of their own are each a quantity: straight lines. Columns that are alike are
    parts of one picture, and embeddings are directions: curves.
    """
    if not _left_open(features):
        return features
    if has_public_rows:
        return NearLandmarks.kind
    if isinstance(columns, Embeddings):
        return AUTO
    return Waves.kind if columns.alike else Linear.kind


def _left_open(features: object) -> bool:
    return isinstance(features, str) and features == AUTO
