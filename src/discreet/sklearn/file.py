"""The file of an estimator: its release, and how rows become keys and answers become targets.

The file is that of the release, which says in one more entry of its settings what the estimator
knows: schema or ranges, classes, names of columns. All of it is public. So whoever has no
scikit-learn reads the same file as a release.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from discreet import _validate
from discreet.errors import CorruptRelease, DiscreetError
from discreet.features.columns import TableColumns
from discreet.readers.registry import Readable
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.sklearn.classifier import PrivateClassifier
from discreet.sklearn.columns import Columns, Embeddings, Tabled
from discreet.sklearn.estimator import PrivateEstimator
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.readers import named
from discreet.sklearn.regressor import PrivateRegressor
from discreet.sklearn.targets import Labels, LabelSets, Targets
from discreet.tables.schema import Schema

# What predictions from a release depend on besides.
_PARAMETERS = {"classifier": ("decision",), "regressor": ("target",)}

_KINDS: dict[str, type[PrivateEstimator]] = {
    "classifier": PrivateClassifier,
    "regressor": PrivateRegressor,
}


def restored(release: Readable) -> PrivateEstimator:
    """Return the estimator that a release belongs to, fitted.

    Args:
        release: with a description of the estimator.

    Raises:
        CorruptRelease: the description makes no sense.
    """
    given = getattr(release.released, "estimator", None)  # type: ignore[union-attr]
    try:
        return _restored(release, given)
    except DiscreetError as error:
        raise CorruptRelease(f"Expected the file of an estimator: {error}") from None
    except Exception:  # noqa: BLE001 (whatever a forged file makes of it)
        raise CorruptRelease("Expected the file of an estimator, and it makes no sense.") from None


def _restored(release: Any, given: Any) -> PrivateEstimator:  # noqa: ANN401
    guarantee = release.guarantee
    kind = given["kind"]
    if set(given["parameters"]) != set(_PARAMETERS[kind]):
        raise CorruptRelease("Expected the parameters that predictions depend on, and no others.")
    columns = _columns(given["columns"])
    targets = _targets(given["targets"])
    made: PrivateEstimator = _KINDS[given["kind"]](
        guarantee.epsilon,
        guarantee.delta,
        neighbours=str(guarantee.neighbours),
        group_rows=release.released.group_rows,
        reader=given["reader"],
        **given["parameters"],
        **_public(release, columns, targets),
    )
    names = given["names"]
    width = _validate.whole("width", given["width"], at_least=1)
    if names is not None:
        if len(names) != width or not all(isinstance(each, str) for each in names):
            raise CorruptRelease("Expected a name for each column.")
        made.feature_names_in_ = np.asarray(names, dtype=object)
    made.n_features_in_ = width
    bare = type(release)(replace(release.released, estimator=None))  # as `fit` leaves it
    made.restore_fit(bare, columns, targets, reader=given["reader"])
    _check(made, release, columns, targets)
    return made


def _public(
    release: Any,  # noqa: ANN401
    columns: Columns | Embeddings | Tabled,
    targets: Labels | LabelSets | Targets,
) -> dict[str, Any]:
    """Return what is public of rows and targets, as parameters: who fits again needs them.

    But for what was taken from the rows: who fits again is warned again.
    """
    found: dict[str, Any] = {"rows_hint": release.released.rows_hint}
    if isinstance(columns, Tabled):
        found["columns"] = columns.schema
    elif isinstance(columns, Embeddings):
        found["norm"] = columns.norm
    else:
        found["bounds"] = (columns.ranges.low.tolist(), columns.ranges.high.tolist())
    if isinstance(targets, Labels):
        found["classes"] = targets.classes.tolist()
    elif isinstance(targets, Targets):
        found["target_bounds"] = (targets.ranges.low.tolist(), targets.ranges.high.tolist())
    return {name: each for name, each in found.items() if name not in release.receipt.leaks}


def _check(
    made: PrivateEstimator,
    release: Any,  # noqa: ANN401
    columns: Columns | Embeddings | Tabled,
    targets: Labels | LabelSets | Targets,
) -> None:
    """Raise unless description and release belong together, as far as both tell."""
    made.check_parameters()
    reader = named(made.reader_, targets)
    layout = release.released.layout
    features = layout.kernel
    tabled = isinstance(columns, Tabled)
    fits = isinstance(release, reader.answers) and tabled == isinstance(features, TableColumns)
    if isinstance(columns, Tabled):
        fits &= columns.schema.names == list(getattr(made, "feature_names_in_", ()))
        fits &= columns.fits(features)
    else:  # a regressor's averages have keys with one number more
        fits &= features.dim - made.n_features_in_ in (0, 1)
    if isinstance(columns, Columns):
        fits &= len(columns.ranges.low) == made.n_features_in_
    if isinstance(release, SoftmaxRegression):
        fits &= isinstance(targets, Labels) and targets.classes.tolist() == list(layout.classes)
    elif not isinstance(targets, Labels):
        count = len(targets.ranges.low) if isinstance(targets, Targets) else targets.count
        fits &= count == getattr(layout, "outputs", getattr(layout, "value_dim", count))
    if not fits:
        raise CorruptRelease("Expected a description that belongs to the release.")


def _columns(given: Any) -> Columns | Embeddings | Tabled:  # noqa: ANN401
    if "schema" in given:
        return Tabled(Schema.from_json(dict(given["schema"])))
    if "norm" in given:
        return Embeddings(given["norm"])
    ends = _ends(given)
    return Columns(ends, root=float(given["root"]), directions=bool(given["directions"]))


def _ends(given: Any) -> Ranges:  # noqa: ANN401
    """Return ranges of columns or targets, if they are finite and none is upside down."""
    low, high = (np.asarray(given[name], dtype=np.float64) for name in ("low", "high"))
    sound = low.ndim == 1 and low.shape == high.shape and len(low)
    if not sound or not np.all(np.isfinite(high - low)) or np.any(low > high):
        raise CorruptRelease("Expected ranges, the low end of each no higher than the other.")
    return Ranges(low, high)


def _targets(given: Any) -> Labels | LabelSets | Targets:  # noqa: ANN401
    if "classes" in given:
        return Labels.of(given["classes"], distinct=True).of_dtype(given.get("dtype"))
    if "labels" in given:
        return LabelSets(_validate.whole("labels", given["labels"], at_least=1))
    return Targets(_ends(given), bool(given["single"]), log=bool(given["log"]))
