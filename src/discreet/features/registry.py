"""The maps of least squares. A closed list: what is not on it is neither built nor loaded."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from discreet import _validate
from discreet.features.base import QueryMap
from discreet.features.concatenation import LinesAndWaves
from discreet.features.fourier import Waves
from discreet.features.landmarks import NearLandmarks
from discreet.features.linear import Linear, Rays

AUTO = "auto"

KINDS: tuple[type[QueryMap], ...] = (Linear, Rays, Waves, LinesAndWaves, NearLandmarks)


def check_registered(features: object) -> None:
    """Raise `InvalidInput` unless a map is exactly of a kind that a file can bring back."""
    if type(features) not in KINDS:
        kinds = [kind.__name__ for kind in KINDS]
        _validate.reject_argument(
            "features", features, f"{AUTO!r}, or exactly one of {', '.join(kinds)}"
        )


def kind_named(name: object) -> type[QueryMap]:
    """Return the kind of that name, or raise `InvalidInput`."""
    for kind in KINDS:
        if kind.kind == name:
            return kind
    return _validate.reject_argument(
        "features", name, f"one of {[AUTO, *(kind.kind for kind in KINDS)]}"
    )


def restore(parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> QueryMap:
    """Return the map with these `parameters` and `arrays`."""
    given = dict(parameters)
    return kind_named(given.pop("kind")).restore(given, arrays)
