"""The maps there are. A closed list: what is not on it is neither built nor loaded.

Callers ask a map for what they need to know (`base.RowMap`, `kernel.Kernel`), never which kind it
is. Whether a map is for attention or for predictions its class says (`RowMap.argument`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from numpy.typing import NDArray

from discreet import _validate
from discreet.features.base import RowMap, SymmetricMap
from discreet.features.columns import TableColumns
from discreet.features.concatenation import LinearAndFourier
from discreet.features.cosines import Cosines
from discreet.features.fourier import Fourier, UnitFourier
from discreet.features.kernel import Kernel, Wanted
from discreet.features.landmarks import Landmarks, UnitLandmarks
from discreet.features.linear import Linear, UnitLinear
from discreet.features.minimax import Minimax
from discreet.features.nearest import Nearest
from discreet.features.taylor import Taylor

AUTO = "auto"

# "auto" asks kernels in this order what they have to offer.
KINDS: tuple[type[RowMap], ...] = (
    Minimax,
    Fourier,
    Taylor,
    Landmarks,
    Linear,
    UnitLinear,
    UnitFourier,
    LinearAndFourier,
    UnitLandmarks,
    Cosines,
    TableColumns,
    Nearest,
)

AnyMap = TypeVar("AnyMap", bound=RowMap)


@dataclass(frozen=True)
class Registry(Generic[AnyMap]):
    """The maps on the list that one argument of the public calls takes.

    Attributes:
        argument: its name.
    """

    argument: str

    @property
    def kinds(self) -> tuple[type[AnyMap], ...]:
        """Their classes, in order."""
        taken = tuple(kind for kind in KINDS if kind.argument == self.argument)
        return cast("tuple[type[AnyMap], ...]", taken)

    def check_registered(self, given: object) -> None:
        """Raise `InvalidInput` unless a map is exactly of a kind that a file can bring back.

        A subclass is none: whoever loads its file would get the class that it was made from.

        Args:
            given: what the caller gave as the argument.

        Raises:
            InvalidInput: it is not.
        """
        if type(given) not in KINDS or getattr(given, "argument", None) != self.argument:
            names = ", ".join(kind.__name__ for kind in self.kinds)
            _validate.reject_argument(self.argument, given, f"{AUTO!r}, or exactly one of {names}")

    def kind_named(self, name: object) -> type[AnyMap]:
        """Return the kind of that name, or of that other name.

        Args:
            name: what the caller, or a file, says.

        Returns:
            The class.

        Raises:
            InvalidInput: there is none.
        """
        for kind in self.kinds:
            if kind.kind == name or name in kind.aliases:
                return kind
        names = [AUTO, *(next(iter(kind.aliases), kind.kind) for kind in self.kinds)]
        return _validate.reject_argument(self.argument, name, f"one of {names}")

    def restore(self, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> AnyMap:
        """Return the map with these `RowMap.parameters` and `RowMap.arrays`.

        Args:
            parameters: the numbers, and the kind.
            arrays: what was computed when the map was made.

        Returns:
            The same map, to the bit.

        Raises:
            InvalidInput: there is no such kind, or no such map of it.
        """
        given = dict(parameters)
        return self.kind_named(given.pop("kind")).restore(given, arrays)


KERNELS = Registry[Kernel](Kernel.argument)
FEATURES = Registry[SymmetricMap](SymmetricMap.argument)
DISTANCES = Registry[Cosines](Cosines.argument)


def choose(name: str, wanted: Wanted) -> Kernel:
    """Return the kernel of that name; "auto" is the first that has something to offer.

    That is Minimax if few enough features reach eps_s (4,096 unless other limits are given), else
    Fourier with as many frequencies as the noise deserves.

    Args:
        name: of a kind, or "auto".
        wanted: what is asked of it.

    Returns:
        The kernel.

    Raises:
        InvalidInput: there is no such kind, or it takes more than numbers.
    """
    if name != AUTO:
        return KERNELS.kind_named(name).named(wanted)
    offers = (kind.offered(wanted) for kind in KERNELS.kinds)
    return next(offer for offer in offers if offer is not None)
