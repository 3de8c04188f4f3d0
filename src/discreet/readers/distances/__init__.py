"""Sums of distances from any point to private points: noise once, at the price of one query."""

from discreet.readers.distances.answers import Distances
from discreet.readers.distances.mechanism import DISTANCES, DistanceOptions, DistancePlan

__all__ = ["DISTANCES", "DistanceOptions", "DistancePlan", "Distances"]
