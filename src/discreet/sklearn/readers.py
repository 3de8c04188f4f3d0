"""Which reader, and which features: rules of public numbers. A closed list of readers."""

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


def needs_rows(
    reader: str, *, given: str | QueryMap, features: str | QueryMap, classes: int | None
) -> bool:
    """Return whether a number of rows is needed to choose, or by what is chosen.

    Args:
        reader: a name, or "auto".
        given: the features that the caller gave.
        features: those of `features_for`.
        classes: how many there are; None for regression.
    """
    open_question = reader == AUTO and _several(classes, given)
    return reader == Average.name or open_question or _left_open(features)


def choose(
    reader: str,
    *,
    features: str | QueryMap,
    epsilon: float,
    rows: int | None,
    classes: int | None,
) -> Reader:
    """Return the reader that was asked for, or the one that such public numbers recommend.

    Args:
        reader: a name, or "auto".
        features: as the caller gave them: who names features wants least squares.
        epsilon: of the guarantee.
        rows: a public number of rows; "auto" needs it.
        classes: how many there are; None for regression.
    """
    if reader != AUTO:
        return named(reader)
    if _several(classes, features) and classes is not None and rows is not None:
        few = rows * epsilon <= _ROWS_OF_A_CLASS * classes
        return named(Average.name if few else Solve.name)
    return named(Solve.name)


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


def _several(classes: int | None, features: object) -> bool:
    """Whether there is a choice: two classes are one straight line apart, as numbers are."""
    return classes is not None and classes >= 3 and _left_open(features)


def _left_open(features: object) -> bool:
    return isinstance(features, str) and features == AUTO
