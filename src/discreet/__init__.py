"""Differentially private attention over private keys and values.

Importing `discreet` is cheap: scipy, dp-accounting and every optional library are loaded only when
a name that needs them is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.errors import (
    BudgetExceeded,
    CorruptRelease,
    DiscreetError,
    InvalidInput,
    LedgerError,
    MostlyNoiseWarning,
    NotCoveredWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
)
from discreet.privacy import Guarantee, Neighbours, Privacy

if TYPE_CHECKING:
    from discreet import (
        accounting,
        kernels,
        ledger,
        noise,
        paper,
        testing,
    )
    from discreet.accounting import combine
    from discreet.readers.attention.building import Builder, build, build_many
    from discreet.readers.attention.memory import Memory
    from discreet.readers.attention.planning import plan
    from discreet.readers.least_squares.answers import LeastSquares
    from discreet.readers.least_squares.building import LeastSquaresBuilder, least_squares
    from discreet.readers.loading import load
    from discreet.readers.softmax.answers import SoftmaxRegression
    from discreet.readers.softmax.building import softmax_regression

__all__ = [
    "BudgetExceeded",
    "Builder",
    "CorruptRelease",
    "DiscreetError",
    "Guarantee",
    "InvalidInput",
    "LeastSquares",
    "LeastSquaresBuilder",
    "LedgerError",
    "Memory",
    "MostlyNoiseWarning",
    "Neighbours",
    "NotCoveredWarning",
    "NotPrivateWarning",
    "Privacy",
    "PrivacyLeakWarning",
    "SoftmaxRegression",
    "__version__",
    "accounting",
    "build",
    "build_many",
    "combine",
    "kernels",
    "least_squares",
    "ledger",
    "load",
    "noise",
    "paper",
    "plan",
    "softmax_regression",
    "testing",
]

_ROOMS = (
    "accounting",
    "kernels",
    "ledger",
    "noise",
    "paper",
    "testing",
)
_FROM = {
    **dict.fromkeys(("Builder", "Memory", "build", "build_many", "plan"), "readers.attention"),
    "combine": "accounting",
    **dict.fromkeys(
        ("LeastSquares", "LeastSquaresBuilder", "least_squares"), "readers.least_squares"
    ),
    **dict.fromkeys(("SoftmaxRegression", "softmax_regression"), "readers.softmax"),
    "load": "readers.loading",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module, a class or a function)
    """Load a room (`discreet.noise`, ...) the first time somebody asks for it."""
    if name in _ROOMS:
        return importlib.import_module(f"discreet.{name}")
    if name in _FROM:
        return getattr(importlib.import_module(f"discreet.{_FROM[name]}"), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
