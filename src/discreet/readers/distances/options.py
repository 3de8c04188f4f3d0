"""What a caller of `distances` asks for: one list of options."""

from dataclasses import dataclass
from typing import Any, Required, TypedDict

import numpy as np

from discreet import _validate
from discreet._typing import Array
from discreet.features.base import NORMS
from discreet.sums.options import ReleaseOptions


class DistanceArguments(TypedDict, total=False):
    """The options by name, for type checkers; `DistanceOptions` has defaults and meaning."""

    p: Required[float]
    bounds: Required[tuple[Array, Array]]
    epsilon: Required[float]
    delta: Required[float]
    neighbours: str
    weight_bound: float
    weighted: bool
    features: int | None
    rows_hint: int | None
    group_rows: float


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
