"""Least squares on private rows: sums and second moments, read by solving."""

from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.layout import Moments
from discreet.readers.least_squares.mechanism import LEAST_SQUARES, LeastSquaresOptions
from discreet.readers.least_squares.planning import RegressionPlan, plan
from discreet.readers.least_squares.solution import Solution

__all__ = [
    "LEAST_SQUARES",
    "LeastSquares",
    "LeastSquaresOptions",
    "Moments",
    "RegressionPlan",
    "Solution",
    "plan",
]
