"""What a row adds to least squares: w ⊗ a as in a memory, and a ⊗ a beside it.

The public settings of a regression: pure functions of public numbers.

The file of a regression.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.readers.attention.mechanism import default_tau
from discreet.readers.least_squares.choosing import Request, choose
from discreet.readers.least_squares.options import LeastSquaresOptions
from discreet.sums.layout import ValueLayout
from discreet.sums.moments import SecondMoments, drawable
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution


@dataclass(frozen=True, kw_only=True)
class Moments(SecondMoments, ValueLayout):
    """Map, bounds, lattice and shares of one regression.

    Attributes:
        kernel: the feature map of rows and queries.
        heads: leading axes of keys and values; () for one head.
        value_dim: d_v.
        value_norm: bound on ‖v‖₂; public, enforced by clipping.
        tau: τ, the weight of the column that counts rows.
        resolution: `value_norm` is at most 2^resolution lattice units.
        share: of the squared budget that the second moments have; zero if none are released.
        coarseness: how many bits features lose before they are squared.
        ridge: λ, in units of the noise (`solution`).
        centred: whether predictions are shrunk towards the mean of all values, and not to zero.
        moment: the mean of [φ; 1] ⊗ [φ; 1] over public rows, shape (r + 1, r + 1), if there are
            any.
    """

    noun: ClassVar[tuple[str, str]] = ("regression", "regressions")

    kernel: SymmetricMap
    ridge: float
    centred: bool
    moment: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        registry.FEATURES.check_registered(self.kernel)
        ridge = _validate.real("ridge", self.ridge, at_least=1e-3, at_most=1e3)
        object.__setattr__(self, "ridge", ridge)
        if not isinstance(self.centred, bool):
            _validate.reject("centred", self.centred, "True or False")
        self._check_moment()
        super().__post_init__()

    def _check_moment(self) -> None:
        if self.moment is None:
            return
        # What is checked stays as it is.
        object.__setattr__(self, "moment", np.array(self.moment))
        count = self.kernel.features + 1
        shaped = self.moment.shape == (count, count) and self.moment.dtype == np.float64
        if not shaped or not np.all(np.abs(self.moment) <= 1 + 1e-6):
            _validate.reject("moment", "...", f"means of products, shape {(count, count)}")
        self.moment.flags.writeable = False

    @property
    def or_else(self) -> str:
        """A larger share, or less influence of a record."""
        return f", or share={self.share:.3g} to be, or group_rows to be smaller"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        public = self.moment is not None
        own = {"share": self.share, "ridge": self.ridge, "centred": self.centred, "public": public}
        # Files from before there was such a number have none; most need none.
        cut = {"coarseness": self.coarseness} if self.coarseness else {}
        return {**super().parameters(), **own, **cut}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the map's arrays, and the public moment if there is one."""
        own: dict[str, NDArray[np.generic]] = {}
        if self.moment is not None:
            own["moment"] = self.moment
        return {**super().arrays(), **own}

    @classmethod
    def restore(
        cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> "Moments":
        """Return the layout with these `parameters`, and these arrays of its map."""
        names = ("value_dim", "value_norm", "tau", "resolution", "share", "ridge", "centred")
        return cls(
            kernel=registry.FEATURES.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            **{name: parameters[name] for name in names},
            coarseness=parameters.get("coarseness", 0),
            moment=arrays["moment"] if parameters["public"] else None,
        )


def settle(
    shapes: Sequence[Shape], options: LeastSquaresOptions, *, unit: Unit = Unit.ROW
) -> Settings[Moments]:
    """Return the settings of a regression. The same options and shapes give the same settings."""
    if len(shapes) != 1:
        _validate.reject("layers", f"{len(shapes)} of them", "one")
    [shape] = shapes
    multiplier = crude_multiplier(options.privacy, math.prod(shape.heads), options.group_rows)
    value_norm = options.number("value_norm", 0, 1)
    request = Request(
        features=options.features,
        dim=shape.key_dim,
        key_norm=options.number("key_norm", 0, 1),
        rows=options.rows_hint,
        multiplier=multiplier,
        public_rows=options.public_rows_of(0, 1, dim=shape.key_dim),
    )
    chosen = choose(request, options.share)
    tau = value_norm / 2 if options.centred else default_tau(value_norm, shape.value_dim)
    layout = Moments(
        kernel=chosen.features,
        heads=shape.heads,
        value_dim=shape.value_dim,
        value_norm=value_norm,
        tau=tau if options.tau is None else options.number("tau", 0, 1),
        resolution=value_resolution(multiplier, rows_hint=options.rows_hint),
        share=chosen.share,
        ridge=options.ridge,
        centred=options.centred,
        moment=chosen.moment,
    )
    return Settings(
        layouts=(drawable(layout, options.privacy, unit, options.group_rows),),
        privacy=options.privacy,
        unit=unit,
        group_rows=options.group_rows,
        rows_hint=options.rows_hint,
        leaks=options.leaks,
    )
