"""Feature maps with a temperature: what attention is made of. Public names of `features`."""

from discreet.features import (
    FEATURE_RADIUS,
    Fourier,
    Kernel,
    KeyFeatures,
    Landmarks,
    Minimax,
    RowMap,
    Taylor,
)

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
