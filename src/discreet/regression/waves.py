"""Random Fourier features of the Gaussian kernel: smooth curves of any shape."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.kernels import Fourier
from discreet.regression.maps import QueryMap


@dataclass(frozen=True)
class Waves(Fourier, QueryMap):
    """Cosines and sines of random waves: φ(x)·φ(y) ≈ e^(-scale·‖x - y‖²/2).

    The features of `Fourier` without the weights that make e^(scale·⟨x, y⟩) of them: every row has
    length one, whatever its own length is. Give `query_norm` the value of `key_norm`.
    """

    kind: ClassVar[str] = "waves"

    @property
    def unit(self) -> float:
        """Integer units to one: the table's amplitude, with √frequencies taken out."""
        return self._amplitude * math.sqrt(self.frequencies)

    def _weights(self, integers: Integers) -> Floats | None:  # noqa: ARG002
        """All are one."""
        return None

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the frequencies, in radians for one unit of a coordinate."""
        return {"frequencies": self._query_frequencies}

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q): (heads, m, d), clipped, to (heads, m, 2·frequencies)."""
        xp = namespace(queries)
        angles = queries @ arrays["frequencies"]
        pairs = xp.stack([xp.cos(angles), xp.sin(angles)], axis=-1)
        heads, count, _ = queries.shape
        return xp.reshape(pairs, (heads, count, self.features)) / math.sqrt(self.frequencies)

    def describe(self) -> str:
        """Return the number of waves, and how long they are."""
        return (
            f"{self.frequencies:,} random waves at scale {self.scale:.4g}, public seed {self.seed} "
            f"({self.features:,} features)"
        )
