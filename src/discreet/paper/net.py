"""The net of query points behind the adaptive structures.

An answer is bounded for every point of a net at once (union bound), so an adversary who chooses
queries after seeing answers gains nothing; queries are snapped to the net before they are answered,
because only there does the bound hold.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Floats

_MOST_LOG_POINTS = 600.0  # beyond, a share of the failure probability would not fit a float


@dataclass(frozen=True)
class Net:
    """Cell centres of a grid on [0, upper]^dim: within `radius` of every point in each coordinate.

    It lives in query space, whatever the number of features: ⌈upper/(2·radius)⌉^dim points.
    """

    upper: float
    radius: float
    dim: int

    def __post_init__(self) -> None:
        _validate.real("eps_0", self.radius, at_least=1e-9 * self.upper)
        if self.log_points > _MOST_LOG_POINTS:
            wanted = f"so large that the net in {self.dim} dimensions has at most e^600 points"
            _validate.reject("eps_0", self.radius, wanted)

    @property
    def cells(self) -> int:
        """Cells along each coordinate."""
        return max(1, math.ceil(self.upper / (2 * self.radius) * (1 - 1e-12)))

    @property
    def log_points(self) -> float:
        """The logarithm of |N|; the number itself may not fit a float."""
        return self.dim * math.log(self.cells)

    def failure_per_point(self, failure: float) -> float:
        """Return failure/|N|, the share of each point in the union bound."""
        return failure * math.exp(-self.log_points)

    def snap(self, queries: Floats) -> Floats:
        """Return the nearest net point of each query, which is clipped to [0, upper] first."""
        width = self.upper / self.cells
        cell = np.minimum(np.floor(np.clip(queries, 0.0, self.upper) / width), self.cells - 1)
        return np.asarray((cell + 0.5) * width)
