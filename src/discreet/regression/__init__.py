"""Regression on private rows: the sums of a memory and their second moments, read by solving.

Follow a row through the files: `building` (the front door) → `layout` (what a row adds) with
`maps`, `lines`, `linear`, `rays`, `waves`, `lines_and_waves` and `near_landmarks` (features); sums,
noise and files are those of `discreet.memory`. A query goes through `fit` → `solution`. `options`,
`settings` and `choosing` hold what is public, `card` describes, `registry` says which maps there
are.
"""

from discreet.regression.building import LeastSquaresBuilder, least_squares, load
from discreet.regression.fit import LeastSquares
from discreet.regression.layout import Moments
from discreet.regression.linear import Linear
from discreet.regression.lines_and_waves import LinesAndWaves
from discreet.regression.maps import QueryMap
from discreet.regression.near_landmarks import NearLandmarks
from discreet.regression.options import LeastSquaresOptions
from discreet.regression.rays import Rays
from discreet.regression.settings import settle
from discreet.regression.solution import Solution
from discreet.regression.waves import Waves

__all__ = [
    "LeastSquares",
    "LeastSquaresBuilder",
    "LeastSquaresOptions",
    "Linear",
    "LinesAndWaves",
    "Moments",
    "NearLandmarks",
    "QueryMap",
    "Rays",
    "Solution",
    "Waves",
    "least_squares",
    "load",
    "settle",
]
