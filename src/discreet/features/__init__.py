"""Every map of rows to integers, with a norm bound that is known before any data.

Maps for attention are kernels, and their public names are in `discreet.kernels`, too; the others
are for predictions. The docstring of `RowMap` says how to add one.
"""

from discreet.features.base import FEATURE_RADIUS, KeyFeatures, RowMap, SymmetricMap
from discreet.features.columns import Bins, Categories, TableColumns, Unknown
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import Fourier, UnitFourier
from discreet.features.kernel import Kernel
from discreet.features.landmarks import Landmarks, UnitLandmarks
from discreet.features.linear import Linear, UnitLinear
from discreet.features.minimax import Minimax
from discreet.features.nearest import Nearest
from discreet.features.public_rows import PublicRows
from discreet.features.taylor import Taylor

__all__ = [
    "FEATURE_RADIUS",
    "Bins",
    "Categories",
    "Fourier",
    "Kernel",
    "KeyFeatures",
    "Landmarks",
    "Linear",
    "LinearAndFourier",
    "Minimax",
    "Nearest",
    "PublicRows",
    "RowMap",
    "SymmetricMap",
    "TableColumns",
    "Taylor",
    "UnitFourier",
    "UnitLandmarks",
    "UnitLinear",
    "Unknown",
]
