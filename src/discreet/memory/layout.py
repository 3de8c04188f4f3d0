"""The public shape of one memory: everything that is fixed before a row is read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from discreet.kernels import Kernel, registry
from discreet.memory.value_layout import ValueLayout


@dataclass(frozen=True, kw_only=True)
class Layout(ValueLayout):
    """Kernel, bounds and lattice of one memory (one layer, with its heads).

    Attributes:
        kernel: the feature map of keys and queries.
        heads: leading axes of keys and values; () for one head.
        value_dim: d_v.
        value_norm: bound on ‖v‖₂; public, enforced by clipping.
        tau: τ, the weight of the denominator's column.
        resolution: `value_norm` is at most 2^resolution lattice units.
    """

    noun: ClassVar[tuple[str, str]] = ("memory", "memories")

    kernel: Kernel

    def __post_init__(self) -> None:
        registry.check_registered(self.kernel)
        super().__post_init__()

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Layout":
        """Return the layout with these `parameters`, and these arrays of its kernel."""
        return cls(
            kernel=registry.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            **{name: parameters[name] for name in ("value_dim", "value_norm", "tau", "resolution")},
        )


def default_tau(value_norm: float, value_dim: int) -> float:
    """Return τ = value_norm/(4·d_v^¼).

    The error of an answer o is, per coordinate, proportional to √(B² + τ²)·√(1 + o²/τ²); summed
    over coordinates it is least at τ² = B·‖o‖/√d_v. This is the least for ‖o‖ = B/16, which
    averages over many rows come to; larger answers lose little, and numerators alone gain.
    """
    return value_norm / (4 * math.sqrt(math.sqrt(value_dim)))
