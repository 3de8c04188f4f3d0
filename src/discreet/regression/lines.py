"""What the maps that are made of a constant and the columns have in common."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import NDArray

from discreet import _validate
from discreet.kernels.maps import FEATURE_RADIUS
from discreet.regression.maps import QueryMap


@dataclass(frozen=True)
class Lines(QueryMap):
    """A constant and the columns, which count `stretch` times as much: r = d + 1.

    Attributes:
        dim: number of coordinates d.
        key_norm: bound on ‖x‖₂; public, enforced by clipping.
        stretch: how much the columns count beside the constant.
    """

    dim: int
    _: KW_ONLY
    key_norm: float = 1.0
    stretch: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _validate.whole("dim", self.dim, at_least=1))
        norm = _validate.real("key_norm", self.key_norm, above=0)
        object.__setattr__(self, "key_norm", norm)
        stretch = _validate.real("stretch", self.stretch, at_least=2.0**-8, at_most=2.0**8)
        object.__setattr__(self, "stretch", stretch)

    @property
    def features(self) -> int:
        """A constant, and the columns."""
        return self.dim + 1

    @property
    def unit(self) -> float:
        """The longest integer features have the length of the radius, but for rounding."""
        return float(FEATURE_RADIUS)

    @property
    def entry_bound(self) -> int:
        """No coordinate exceeds the norm."""
        return FEATURE_RADIUS

    @property
    def operations(self) -> int:
        """A square and a product for each column."""
        return 4 * self.features

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing but the numbers themselves."""
        return {}

    def parameters(self) -> dict[str, object]:
        """Return the numbers that make the same map again."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "key_norm": self.key_norm,
            "stretch": self.stretch,
        }
