"""Feature maps with a temperature: what attention is made of. The public names of `features`."""

from discreet.features.base import FEATURE_RADIUS, KeyFeatures, RowMap
from discreet.features.fourier import Fourier
from discreet.features.kernel import Kernel
from discreet.features.landmarks import Landmarks
from discreet.features.minimax import Minimax
from discreet.features.taylor import Taylor

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
