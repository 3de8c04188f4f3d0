"""What sums of distances will be like, before anything is spent: from public numbers only."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.features.cosines import Cosines, left_out
from discreet.noise import RoundedGaussian
from discreet.readers.distances.mechanism import DISTANCES
from discreet.readers.distances.options import DistanceOptions
from discreet.sums.forecast import Forecast, planned_shape, planned_unit


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
