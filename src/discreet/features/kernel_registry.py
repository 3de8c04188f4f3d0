"""The kinds of kernels there are. A closed list: what is not on it is neither built nor loaded.

A new kind is a class in a file of its own, and its name here. Callers ask a kernel for what they
need to know (`base.Kernel`), never which kind it is.
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from discreet import _validate
from discreet.features.fourier import Fourier
from discreet.features.kernel import Kernel, Wanted
from discreet.features.landmarks import Landmarks
from discreet.features.minimax import Minimax
from discreet.features.taylor import Taylor

AUTO = "auto"

# In the order in which "auto" asks them what they have to offer.
KINDS: tuple[type[Kernel], ...] = (Minimax, Fourier, Taylor, Landmarks)


def check_registered(kernel: object) -> None:
    """Raise `InvalidInput` unless a kernel is exactly of a kind that a file can bring back.

    A subclass is none: whoever loads its file would get the class that it was made from.
    """
    if type(kernel) not in KINDS:
        kinds = [kind.__name__ for kind in KINDS]
        _validate.reject_argument(
            "kernel", kernel, f"{AUTO!r}, or exactly one of {', '.join(kinds)}"
        )


def kind_named(name: object) -> type[Kernel]:
    """Return the kind of that name, or raise `InvalidInput`."""
    for kind in KINDS:
        if kind.kind == name:
            return kind
    return _validate.reject_argument(
        "kernel", name, f"one of {[AUTO, *(kind.kind for kind in KINDS)]}"
    )


def choose(name: str, wanted: Wanted) -> Kernel:
    """Return the kernel of that name; "auto" is the first that has something to offer.

    That is Minimax if few enough features reach eps_s (4,096 unless other limits are given), else
    Fourier with as many frequencies as the noise deserves.
    """
    if name != AUTO:
        return kind_named(name).named(wanted)
    offers = (kind.offered(wanted) for kind in KINDS)
    return next(offer for offer in offers if offer is not None)


def restore(parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Kernel:
    """Return the kernel with these `Kernel.parameters` and `Kernel.arrays`."""
    given = dict(parameters)
    return kind_named(given.pop("kind")).restore(given, arrays)
