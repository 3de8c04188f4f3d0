"""Privacy accounting: pure functions of public numbers, no data.

What mechanisms cost, alone and together, how much noise a budget needs, and receipts that say which
mechanisms a release is made of.
"""

from discreet.accounting.compose import (
    advanced,
    basic,
    calibrate,
    gaussian_beside,
    tight,
    with_sampler_error,
)
from discreet.accounting.events import (
    Disclosure,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    TruncatedLaplace,
)
from discreet.accounting.gaussian import gaussian_epsilon, gaussian_sigma
from discreet.accounting.receipt import Receipt, combine

__all__ = [
    "Disclosure",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Receipt",
    "TruncatedLaplace",
    "advanced",
    "basic",
    "calibrate",
    "combine",
    "gaussian_beside",
    "gaussian_epsilon",
    "gaussian_sigma",
    "tight",
    "with_sampler_error",
]
