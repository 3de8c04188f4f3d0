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
    NotCoveredWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
)
from discreet.privacy import Guarantee, Neighbours, Privacy

if TYPE_CHECKING:
    from discreet import accounting, kernels, memory, noise, paper, testing
    from discreet.memory import Builder, Memory, build, build_many, combine, load, plan

__all__ = [
    "BudgetExceeded",
    "Builder",
    "CorruptRelease",
    "DiscreetError",
    "Guarantee",
    "InvalidInput",
    "Memory",
    "Neighbours",
    "NotCoveredWarning",
    "NotPrivateWarning",
    "Privacy",
    "PrivacyLeakWarning",
    "__version__",
    "accounting",
    "build",
    "build_many",
    "combine",
    "kernels",
    "load",
    "memory",
    "noise",
    "paper",
    "plan",
    "testing",
]

_ROOMS = ("accounting", "kernels", "memory", "noise", "paper", "testing")
_FROM_MEMORY = ("Builder", "Memory", "build", "build_many", "combine", "load", "plan")


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module, a class or a function)
    """Load a room (`discreet.noise`, ...) the first time somebody asks for it."""
    if name in _ROOMS:
        return importlib.import_module(f"discreet.{name}")
    if name in _FROM_MEMORY:
        return getattr(importlib.import_module("discreet.memory"), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
