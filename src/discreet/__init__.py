"""Differentially private attention over private keys and values.

Importing `discreet` is cheap: scipy, dp-accounting and every optional library are loaded only when
a name that needs them is first used.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from discreet._version import __version__
from discreet.errors import (
    BudgetExceeded,
    CorruptRelease,
    DiscreetError,
    InvalidInput,
    NotPrivateWarning,
    PrivacyLeakWarning,
)
from discreet.privacy import Guarantee, Neighbours, Privacy

if TYPE_CHECKING:
    from discreet import accounting, kernels, noise, paper, testing

__all__ = [
    "BudgetExceeded",
    "CorruptRelease",
    "DiscreetError",
    "Guarantee",
    "InvalidInput",
    "Neighbours",
    "NotPrivateWarning",
    "Privacy",
    "PrivacyLeakWarning",
    "__version__",
    "accounting",
    "kernels",
    "noise",
    "paper",
    "testing",
]

_ROOMS = ("accounting", "kernels", "noise", "paper", "testing")


def __getattr__(name: str) -> ModuleType:
    """Load a room (`discreet.noise`, ...) the first time somebody asks for it."""
    if name in _ROOMS:
        return importlib.import_module(f"discreet.{name}")
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
