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
from discreet.provenance import Stated

if TYPE_CHECKING:
    from discreet import (
        accounting,
        audit,
        kernels,
        ledger,
        noise,
        paper,
        testing,
        text,
    )
    from discreet._api import (
        Builder,
        LeastSquaresBuilder,
        build,
        build_many,
        distances,
        least_squares,
        plan,
        softmax_regression,
    )
    from discreet._load import load
    from discreet.accounting import combine
    from discreet.client import connect
    from discreet.readers.attention import Memories, Memory
    from discreet.readers.discovery import discover
    from discreet.readers.distances import Distances
    from discreet.readers.least_squares import LeastSquares
    from discreet.readers.softmax import SoftmaxRegression
    from discreet.stream import Stream
    from discreet.text import Corpus

__all__ = [
    "BudgetExceeded",
    "Builder",
    "Corpus",
    "CorruptRelease",
    "DiscreetError",
    "Distances",
    "Guarantee",
    "InvalidInput",
    "LeastSquares",
    "LeastSquaresBuilder",
    "LedgerError",
    "Memories",
    "Memory",
    "MostlyNoiseWarning",
    "Neighbours",
    "NotCoveredWarning",
    "NotPrivateWarning",
    "Privacy",
    "PrivacyLeakWarning",
    "SoftmaxRegression",
    "Stated",
    "Stream",
    "__version__",
    "accounting",
    "audit",
    "build",
    "build_many",
    "combine",
    "connect",
    "discover",
    "distances",
    "kernels",
    "least_squares",
    "ledger",
    "load",
    "noise",
    "paper",
    "plan",
    "softmax_regression",
    "testing",
    "text",
]

_ROOMS = (
    "accounting",
    "audit",
    "kernels",
    "ledger",
    "noise",
    "paper",
    "testing",
    "text",
)
_API = (
    "Builder",
    "LeastSquaresBuilder",
    "build",
    "build_many",
    "distances",
    "least_squares",
    "plan",
    "softmax_regression",
)
_FROM = {
    **dict.fromkeys(_API, "_api"),
    **dict.fromkeys(("Memories", "Memory"), "readers.attention"),
    "Corpus": "text",
    "Distances": "readers.distances",
    "LeastSquares": "readers.least_squares",
    "SoftmaxRegression": "readers.softmax",
    "Stream": "stream",
    "combine": "accounting",
    "connect": "client",
    "discover": "readers.discovery",
    "load": "_load",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module, a class or a function)
    """Load a room (`discreet.noise`, ...) or a front door the first time somebody asks for it."""
    if name in _ROOMS:
        return importlib.import_module(f"discreet.{name}")
    if name not in _FROM:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(f"discreet.{_FROM[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
