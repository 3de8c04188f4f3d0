"""Sums of distances as a mechanism: options, public settings from them, one pass over the rows.

And what to expect of them before anything is spent (`plan`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet import _validate
from discreet._arrays import plain_numbers
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.features.base import NORMS
from discreet.features.cosines import LEAST_TERMS, MOST_TERMS, Cosines, left_out
from discreet.noise import RoundedGaussian
from discreet.readers.distances.answers import Distances
from discreet.readers.distances.layout import DistanceLayout
from discreet.sums.forecast import Forecast, planned_shape, planned_unit
from discreet.sums.mechanism import Mechanism, ReleaseOptions
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution
from discreet.sums.source import Chunk, Form, RowSource, tables_of

# Where nobody says how many rows there are; and the most numbers that are released.
_USUAL_TERMS, _MOST_FEATURES = 512, 2**15

# Rows are spread out: a cusp is met by one in so many of them, or fewer.
_AT_A_CUSP = 8.0


@dataclass(frozen=True, kw_only=True)
class DistanceOptions(ReleaseOptions):
    """The options of sums of distances, checked.

    Attributes:
        p: the power: distances are Σ_j |y_j - x_j|^p. Above 0, at most 16.
        bounds: lower and upper ends of the points, a number each or one for each column. Public:
            choose them without looking at the data. Points and queries are clipped to them.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        weight_bound: public bound on the size of a weight.
        weighted: whether rows have weights of their own, which are private; else all weigh one.
        features: the most numbers that may be released; None for 2^15. Distances have cusps, which
            more features follow more closely.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. With it as many features are taken as the noise
            deserves.
        group_rows: a record's influence is scaled down to that of so many rows.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        leaks: names of what was taken from the private rows, which the guarantee does not cover.
    """

    p: float
    bounds: Any
    weight_bound: float = 1.0
    weighted: bool = True
    features: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            low, high = (np.asarray(end, dtype=np.float64) for end in self.bounds)
        except (TypeError, ValueError):
            _validate.reject("bounds", "...", "two ends, a number each or one for each column")
        if low.ndim > 1 or high.ndim > 1:
            _validate.reject("bounds", "...", "two ends, a number each or one for each column")
        if not isinstance(self.weighted, bool):
            _validate.reject_argument("weighted", self.weighted, "True or False")
        checked: dict[str, Any] = {
            "p": _validate.real("p", self.p, above=0, at_most=16),
            "bounds": (low, high),
            "weight_bound": _validate.real("weight_bound", self.weight_bound, **NORMS),
        }
        if self.features is not None:
            checked["features"] = _validate.whole(
                "features", self.features, at_least=32, at_most=2**22
            )
        self._keep(checked)

    def ends(self, dim: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return lower and upper ends of so many columns.

        Args:
            dim: number of columns.

        Raises:
            InvalidInput: the bounds have another number of columns.
        """
        low, high = self.bounds
        if not all(each.ndim == 0 or each.shape == (dim,) for each in (low, high)):
            _validate.reject("bounds", "...", f"a number each, or one for each of {dim} columns")
        return tuple(np.broadcast_to(low, dim).tolist()), tuple(np.broadcast_to(high, dim).tolist())


class DistanceMechanism(Mechanism[DistanceOptions, DistanceLayout, Distances]):
    """Σ w·φ(x) over all rows, with noise once: what `Distances` answers from."""

    name = "distances"
    options = DistanceOptions
    answers = Distances

    def source(
        self, keys: Array, values: Array, groups: Array, options: DistanceOptions
    ) -> RowSource:
        """Return points and weights: arrays, or chunks of both.

        Args:
            keys: arrays, or chunks.
            values: what comes with the keys.
            groups: the record of each row; None if each row is its own.
            options: public.
        """
        if values is None and not options.weighted and hasattr(keys, "__array__"):
            values = np.broadcast_to(0.0, len(keys))  # nobody looks at them
        chunk = _weighted if options.weighted else _unweighted
        return RowSource.of(keys, values, groups, Form(values="weights", chunk=chunk))

    def resolve(
        self, shapes: Sequence[Shape], options: DistanceOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[DistanceLayout]:
        """Return the settings: bounds, lattice, and as many terms as the noise deserves.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """
        [shape] = shapes
        if shape.heads:
            _validate.reject("heads", shape.heads, "(): points have shape (n, d)")
        multiplier = crude_multiplier(options.privacy, 1, options.group_rows)
        low, high = options.ends(shape.key_dim)
        layout = DistanceLayout(
            kernel=Cosines(
                low=low,
                high=high,
                power=options.p,
                terms=_terms(options, shape.key_dim, multiplier),
            ),
            weight_bound=options.weight_bound,
            weighted=options.weighted,
            resolution=value_resolution(multiplier, rows_hint=options.rows_hint),
        )
        return options.settings(layout, unit)

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `plan`)
        """Return what sums of distances will be like; see `plan`.

        Args:
            **given: the arguments of this reader's `plan`.
        """
        return plan(**given)


DISTANCES = DistanceMechanism()


def _terms(options: DistanceOptions, dim: int, multiplier: float) -> int:
    """Return how many terms of the series are kept: what is left out is below the noise.

    The noise of an answer is σ times the bound on weights; a row whose cusp is asked for moves it
    by `left_out`.
    """
    most = _MOST_FEATURES if options.features is None else options.features
    allowed = min(max((most - 1) // (2 * dim) + 1, LEAST_TERMS), MOST_TERMS)
    if options.rows_hint is None:
        return min(_USUAL_TERMS, allowed)
    terms = LEAST_TERMS
    hidden = _AT_A_CUSP * multiplier / options.rows_hint
    while terms < allowed and left_out(options.p, terms) > hidden:
        terms *= 2
    return min(max(terms, 64), allowed)


def _unweighted(keys: Array, values: Array, groups: Array) -> Chunk:
    """Return points as a table; whatever stands for their weights is not looked at."""
    del values
    return _weighted(keys, np.broadcast_to(0.0, len(keys)), groups)


def _weighted(keys: Array, values: Array, groups: Array) -> Chunk:
    """Return points and weights as a table: those with one column may be shape (n,)."""
    points, weights = plain_numbers("points", keys), plain_numbers("weights", values)
    points, weights = (each[:, None] if each.ndim == 1 else each for each in (points, weights))
    if points.ndim != 2:
        raise InvalidInput("Expected points of shape (n, d), or (n,) for one column.")
    return tables_of([(points, weights)]), groups


@dataclass(frozen=True, kw_only=True)
class DistancePlan(Forecast):
    """Predictions for sums of distances. `str(plan)` is a page for people.

    The noise is exact: it does not depend on the rows, nor on where a query is.

    Attributes:
        features: the feature map.
        noise_stderr: standard error of the noise in an answer.
        left_out: what the series leaves out of an answer, at most, for each unit of weight that
            lies at the query.
        file_bytes: of the numbers in the file; its header has a few thousand more.
    """

    derived: ClassVar[tuple[str, ...]] = (
        "feature_count",
        "mean_stderr",
        "rows_needed",
        "verdict",
        "warning",
    )

    features: Cosines
    noise_stderr: float
    left_out: float
    file_bytes: int

    @property
    def feature_count(self) -> int:
        """How many numbers are released."""
        return self.features.features

    @property
    def mean_stderr(self) -> float:
        """The standard error of an answer over the number of rows: of a mean distance."""
        return self.noise_stderr / self.rows

    @property
    def rows_needed(self) -> int:
        """So many rows have mean distances with a standard error of 1% of the largest."""
        return math.ceil(100 * self.noise_stderr / self.features.total_width)

    @property
    def verdict(self) -> str:
        """How far a mean distance will be off."""
        share = self.mean_stderr / self.features.total_width
        return (
            f"mean distances are off by about {1.96 * self.mean_stderr:.3g} (95%), "
            f"{1.96 * share:.2g} of the largest that there may be; with {self.rows_needed:,} rows "
            "the standard error would be 1% of that"
        )

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Noise, series and size."""
        return [
            ("noise", f"{self.noise_stderr:.4g} on each sum, wherever it is asked"),
            (
                "features",
                (
                    f"{self.features.describe()}; the series is off by at most {self.left_out:.3g} "
                    "for each row at the query itself"
                ),
            ),
            ("size", f"{self.file_bytes:,} bytes"),
        ]


def plan(*, rows: int, key_dim: int, by_record: bool = False, **options: Any) -> DistancePlan:  # noqa: ANN401
    """Return what `distances` with these options would give, before anything is spent.

    Args:
        rows: a public (rounded) number of rows.
        key_dim: number of columns of points.
        by_record: whether `groups` will be given.
        **options: those of `distances`, but for rows_hint; `weighted` whether there are weights.
    """
    rows, shape = planned_shape(rows=rows, key_dim=key_dim)
    wanted = DistanceOptions(**{"weighted": False, **options}, rows_hint=rows)
    settings = DISTANCES.resolve([shape], wanted, unit=planned_unit(by_record=by_record))
    [layout] = settings.layouts
    kernel = layout.kernel
    deviation = math.sqrt(RoundedGaussian(sigma=settings.sigma(layout)).variance)
    noise = deviation * layout.real_unit * math.sqrt(kernel.length) * kernel.total_width
    return DistancePlan(
        rows=rows,
        epsilon=settings.privacy.epsilon,
        delta=settings.privacy.delta,
        features=kernel,
        noise_stderr=noise,
        left_out=left_out(kernel.power, kernel.terms) * kernel.total_width * wanted.weight_bound,
        file_bytes=8 * (kernel.features + kernel.terms),
    )
