"""Privacy accounting: pure functions of public numbers, no data.

`events` says what a mechanism is, `gaussian` and `loss` analyse, `compose` and `calibrate` answer.
"""

from discreet.accounting.calibrate import calibrate
from discreet.accounting.compose import advanced, basic, tight, with_sampler_error
from discreet.accounting.events import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    TruncatedLaplace,
)
from discreet.accounting.gaussian import gaussian_epsilon, gaussian_sigma

__all__ = [
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "TruncatedLaplace",
    "advanced",
    "basic",
    "calibrate",
    "gaussian_epsilon",
    "gaussian_sigma",
    "tight",
    "with_sampler_error",
]
