"""Privacy accounting: pure functions of public numbers, no data.

`events` says what a mechanism is, `gaussian` and `loss` analyse, `compose` answers, and a `receipt`
says which mechanisms a release is made of.
"""

from discreet.accounting.compose import advanced, basic, calibrate, tight, with_sampler_error
from discreet.accounting.events import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    TruncatedLaplace,
)
from discreet.accounting.gaussian import gaussian_epsilon, gaussian_sigma
from discreet.accounting.receipt import Receipt, combine

__all__ = [
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
    "gaussian_epsilon",
    "gaussian_sigma",
    "tight",
    "with_sampler_error",
]
