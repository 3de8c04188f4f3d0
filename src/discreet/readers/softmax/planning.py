"""What a classifier will be like, before anything is spent: from public numbers only."""

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from discreet import _validate
from discreet._typing import Array
from discreet.features.base import SymmetricMap
from discreet.features.columns import TableColumns
from discreet.readers.rounds.cached import bytes_of
from discreet.readers.softmax.layout import MOST_CLASSES, Rounds
from discreet.readers.softmax.mechanism import SOFTMAX, PlanOptions, SoftmaxOptions
from discreet.sums.forecast import Forecast, planned_shape, planned_unit
from discreet.sums.mechanism import shows_options
from discreet.sums.settings import Settings

# Rows of each class for each unit of noise, and what was measured with as many on real data.
_FEW, _SOME, _MANY = 5.0, 20.0, 100.0

# Floating-point operations that one core does in a second, and seconds that noise, eigenvectors and
# the rest take at least.
_FLOPS, _AT_LEAST = 1e10, 0.2

# Keys that may be text embeddings: these are harder to tell apart.
_WIDE = 100


@dataclass(frozen=True, kw_only=True)
class ClassifierPlan(Forecast):
    """Predictions for one classifier. `str(plan)` is a page for people.

    Attributes:
        epsilon: to be spent.
        delta: to be spent.
        rows: the public number of rows that it is planned for.
        class_count: C.
        features: the feature map.
        rounds: T, how many steps are taken.
        noise_multiplier: σ of all rounds together, in units of what one row or record can change.
        noise_rows: the same in rows: twice as much where rows are replaced, and `group_rows` times
            as much for records.
        kept: whether features are kept between rounds; else each pass computes them again.
        feature_bytes: that the features of all rows take, kept or not.
        file_bytes: of the numbers in the file; its header has a few thousand more.
        fit_flops: floating-point operations of all passes.
    """

    derived: ClassVar[tuple[str, ...]] = (
        "feature_count",
        "passes",
        "seconds",
        "rows_for_noise",
        "rows_needed",
        "verdict",
        "warning",
    )

    class_count: int
    features: SymmetricMap
    rounds: int
    noise_multiplier: float
    noise_rows: float
    kept: bool
    feature_bytes: int
    file_bytes: int
    fit_flops: float

    @property
    def feature_count(self) -> int:
        """How many numbers stand for a key."""
        return self.features.features

    @property
    def passes(self) -> int:
        """How often all rows are read: once for each round, and once for the calibration.

        Of a table the calibration takes two, and columns that have to be found one more.
        """
        found = isinstance(self.features, TableColumns) and not self.features.known
        return self.rounds + (1 if self.features.constant is None else 2) + found

    @property
    def seconds(self) -> float:
        """About how long a fit takes on one core, within a factor of three or so."""
        return self.fit_flops / _FLOPS + _AT_LEAST

    @property
    def rows_for_noise(self) -> float:
        """How many rows of each class there are for each unit of noise, if classes are alike.

        What accuracy depends on, before all else.
        """
        return self.rows / (self.noise_rows * self.class_count)

    @property
    def rows_needed(self) -> int:
        """About how many rows it takes for most of what is possible, if classes are well apart."""
        return round(_SOME * self.noise_rows * self.class_count)

    @property
    def verdict(self) -> str:
        """What the figures come to, in a sentence or two. Measured on real data."""
        if self.rows_for_noise < _FEW:
            said = "little better than guessing"
        elif self.rows_for_noise < _SOME:
            said = "on the way: about three quarters of what is possible, if classes are well apart"
        elif self.rows_for_noise < _MANY:
            said = "most of what is possible, if classes are well apart"
        else:
            said = "nearly all that the features allow"
        if self.features.dim >= _WIDE:
            said += "; but text embeddings with hundreds of dimensions need several times more rows"
        return f"{said}."

    @property
    def subject(self) -> str:
        """Rows, and how many classes they have."""
        return f"rows of {self.class_count:,} classes"

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The page below the verdict: rows, features, noise and costs."""
        kept = (
            "bytes of features, kept between rounds"
            if self.kept
            else "bytes of features are more than the limit: each pass computes them again"
        )
        return [
            ("rows", f"{self.rows_for_noise:,.3g} of each class for each unit of noise"),
            (
                "rows needed",
                (
                    f"about {self.rows_needed:,} for most of what is possible, if classes are well "
                    "apart; several times more if not"
                ),
            ),
            ("features", self.features.describe()),
            ("noise", f"σ = {self.noise_rows:.4g} rows, for all rounds together"),
            ("rounds", f"{self.rounds}, so {self.passes} passes over the rows"),
            ("memory", f"{self.feature_bytes:,} {kept}"),
            ("file", f"{self.file_bytes:,} bytes and a header, whatever the number of rows"),
            (
                "fit",
                (
                    f"{self.fit_flops / 1e9:,.3g} billion operations, some {self.seconds:,.2g} "
                    "seconds on one core of a processor"
                ),
            ),
        ]


@shows_options(SoftmaxOptions, PlanOptions.__annotations__)
def plan(
    *,
    rows: int,
    key_dim: int,
    classes: Array,
    by_record: bool = False,
    **options: Unpack[PlanOptions],
) -> ClassifierPlan:
    """Return what `softmax_regression` with these options would give, before anything is spent.

    A function of public numbers only.

    Args:
        rows: a public (rounded) number of rows: what the builder will give as `rows_hint`.
        key_dim: width of keys, d.
        classes: the list of them, or how many there are.
        by_record: whether `groups` will be given.
        **options: those of `softmax_regression`.

    Returns:
        The plan.

    Raises:
        InvalidInput: an argument is not what it should be.
    """
    rows, shape = planned_shape(rows=rows, key_dim=key_dim)
    if np.ndim(classes) == 0:
        classes = np.arange(_validate.whole("classes", classes, at_least=2, at_most=MOST_CLASSES))
    wanted = SoftmaxOptions(classes=classes, rows_hint=rows, **options)
    settings = SOFTMAX.resolve([shape], wanted, unit=planned_unit(by_record=by_record))
    return _predict(rows, settings, limit=wanted.memory_limit)


def _predict(rows: int, settings: Settings[Rounds], *, limit: float) -> ClassifierPlan:
    [layout] = settings.layouts
    features = layout.kernel
    taken = bytes_of(rows, features)
    numbers = sum(int(np.prod(shape)) for shape in layout.shapes)
    return ClassifierPlan(
        rows=rows,
        epsilon=settings.privacy.epsilon,
        delta=settings.privacy.delta,
        class_count=layout.columns,
        features=features,
        rounds=layout.rounds,
        noise_multiplier=settings.multiplier,
        noise_rows=settings.sigma(layout) / layout.row_bound,
        kept=taken <= limit,
        feature_bytes=taken,
        file_bytes=8 * numbers + sum(array.nbytes for array in layout.arrays().values()),
        fit_flops=rows * _row_flops(layout, kept=taken <= limit),
    )


def _row_flops(layout: Rounds, *, kept: bool) -> float:
    """Return the floating-point operations for one row, in all passes.

    Logits are needed in all but the first round and in the calibration, sums in every round, second
    moments in the first.
    """
    count, rounds = layout.kernel.features, layout.rounds
    mapped = layout.kernel.operations * (1 if kept else rounds + 1)
    return mapped + 2.0 * rounds * 2 * count * layout.columns + float(count) * (count + 1)
