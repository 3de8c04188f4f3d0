"""Every map of rows to integers, with a norm bound that is known before any data.

`base` says what a map is and how to add one, `kernel` what a temperature adds to it, `registry`
which there are. For predictions: `linear`, `fourier`, `concatenation` and `landmarks`. For
attention: `taylor` and `minimax` (each a `polynomial`), `fourier` and `landmarks`, of
`public_rows`; their public names are in `discreet.kernels`, too.
"""

from discreet.features.base import FEATURE_RADIUS, KeyFeatures, RowMap, SymmetricMap
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import Fourier, UnitFourier
from discreet.features.kernel import Kernel
from discreet.features.landmarks import Landmarks, UnitLandmarks
from discreet.features.linear import Linear, UnitLinear
from discreet.features.minimax import Minimax
from discreet.features.public_rows import PublicRows
from discreet.features.taylor import Taylor

__all__ = [
    "FEATURE_RADIUS",
    "Fourier",
    "Kernel",
    "KeyFeatures",
    "Landmarks",
    "Linear",
    "LinearAndFourier",
    "Minimax",
    "PublicRows",
    "RowMap",
    "SymmetricMap",
    "Taylor",
    "UnitFourier",
    "UnitLandmarks",
    "UnitLinear",
]
