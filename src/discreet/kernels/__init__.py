"""Feature maps: row by row, with bounds that are known before any data is seen.

`base` says what a kernel offers, `registry` which kinds there are; each kind has a file of its own.
"""

from discreet.kernels.base import Kernel
from discreet.kernels.fourier import Fourier
from discreet.kernels.landmarks import Landmarks
from discreet.kernels.maps import FEATURE_RADIUS, KeyFeatures, RowMap
from discreet.kernels.minimax import Minimax
from discreet.kernels.taylor import Taylor

__all__ = [
    "FEATURE_RADIUS",
    "Fourier",
    "Kernel",
    "KeyFeatures",
    "Landmarks",
    "Minimax",
    "RowMap",
    "Taylor",
]
