"""Feature maps: row by row, with bounds that are known before any data is seen."""

from discreet.kernels.taylor import Taylor

__all__ = ["Taylor"]
