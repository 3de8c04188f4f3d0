"""Features of landmarks, renormalised: how near a row is to public ones, whatever else it is."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._arrays import namespace
from discreet._typing import Array, Floats
from discreet.kernels import Landmarks
from discreet.kernels.landmarks import RANK
from discreet.kernels.maps import FEATURE_RADIUS, SHRINK
from discreet.kernels.public_rows import PublicRows
from discreet.regression.maps import QueryMap


@dataclass(frozen=True, init=False)
class NearLandmarks(Landmarks, QueryMap):
    """The features of `Landmarks`, each row's stretched to length one.

    No kernel of attention any more, and better for it here: a row uses the whole of the
    sensitivity, also where no landmark is near.
    """

    kind: ClassVar[str] = "near_landmarks"

    def __init__(
        self,
        public_rows: ArrayLike | PublicRows,
        *,
        rank: int = RANK,
        scale: float,
        key_norm: float,
    ) -> None:
        """Make landmarks of public rows.

        Args:
            public_rows: that look like the private keys, shape (n, d); longer ones are clipped.
                They become part of every file: never private rows, nor anything computed from them.
            rank: how many landmarks and features at most.
            scale: φ(x)·φ(y) is about e^(-scale·‖x - y‖²/2) where landmarks are near.
            key_norm: public bound on keys.
        """
        made = Landmarks(
            public_rows, rank=rank, scale=scale, key_norm=key_norm, query_norm=key_norm
        )
        self._settle(**{each.name: getattr(made, each.name) for each in fields(made)})

    @property
    def unit(self) -> float:
        """Integer features have the length of the radius, but for rounding."""
        return float(FEATURE_RADIUS)

    @staticmethod
    def _cut(features: Floats) -> None:
        """Bring features to the length of `FEATURE_RADIUS`, or a little less, in place."""
        np.clip(features, -FEATURE_RADIUS, FEATURE_RADIUS, out=features)
        # Exact in any order: at most 2,000 squares of 2^32.
        squared = np.einsum("ij,ij->i", features, features)
        # The factor is smaller than the quotient by more than all roundings can add, and cutting
        # towards zero only shrinks. A row of zeros stays one.
        factors = FEATURE_RADIUS / np.sqrt(np.maximum(squared, 1.0)) * SHRINK
        features *= factors[:, None]
        np.trunc(features, out=features)

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return landmarks and matrix."""
        return self._map

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q): (heads, m, d), clipped, to (heads, m, r)."""
        xp = namespace(queries)
        features = self._values(queries, arrays) @ arrays["matrix"]
        squared = xp.sum(features * features, axis=-1, keepdims=True)
        # Less than rounding leaves of a row, and it is nowhere near any of them.
        floor = xp.full_like(squared, FEATURE_RADIUS**-2.0)
        return features / xp.sqrt(xp.maximum(squared, floor))

    def describe(self) -> str:
        """Return how many landmarks there are."""
        return f"{super().describe()}, renormalised"
