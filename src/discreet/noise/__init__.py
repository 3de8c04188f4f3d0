"""Exact integer noise, and the integer lattice that it is added on. Integers in, integers out."""

from discreet.noise.entropy import Entropy, SystemEntropy
from discreet.noise.exact import IntegerLaw
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, TruncatedLaplace
from discreet.noise.lattice import Lattice, checked_add, clip_integer_rows, exact_product

__all__ = [
    "DiscreteLaplace",
    "Entropy",
    "IntegerLaw",
    "Lattice",
    "RoundedGaussian",
    "SystemEntropy",
    "TruncatedLaplace",
    "checked_add",
    "clip_integer_rows",
    "exact_product",
]
