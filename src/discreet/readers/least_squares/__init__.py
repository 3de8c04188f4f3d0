"""Least squares on private rows: sums and second moments, read by solving."""

from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.building import LeastSquaresBuilder, least_squares, load
from discreet.readers.least_squares.mechanism import Moments, settle
from discreet.readers.least_squares.options import LeastSquaresOptions
from discreet.readers.least_squares.solution import Solution

__all__ = [
    "LeastSquares",
    "LeastSquaresBuilder",
    "LeastSquaresOptions",
    "Moments",
    "Solution",
    "least_squares",
    "load",
    "settle",
]
