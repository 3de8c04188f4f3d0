"""What a row adds to least squares, and which features it has: fixed before a row is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.features.columns import TableColumns
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import Linear, UnitLinear
from discreet.features.public_rows import PublicRows
from discreet.sums.layout import ValueLayout
from discreet.sums.moments import SecondMoments
from discreet.sums.settings import part_sigmas

# Of the squared budget, for second moments: a half loses where rows are few, a tenth where they are
# many; between a quarter and 0.4 it hardly matters.
SHARE = 1 / 3

# Where rows are spread over the ball of their bound, e^(-scale·‖x - y‖²/2) tells neighbours from
# others; landmarks know better where rows are, and can look closer.
_WAVES_SCALE, _LANDMARKS_SCALE = 2.5, 5.0

# As many waves as the noise lets one see: so many rows for each unit of noise, and more.
_FEW_WAVES, _SOME_WAVES, _MANY_WAVES = 256, 512, 1024
_SOME_ROWS, _MANY_ROWS = 2_700, 27_000

# Beside lines, to bend them.
BENDING_WAVES, _BENDING_SCALE = 64, 6.0

# Keys as wide as this are embeddings, made to be told apart by planes; so many random waves as they
# would need are more than the noise allows.
WIDE = 256

# So many public rows tell their second moments well enough.
_ENOUGH = 20_000


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of the features, as far as a caller said it.

    Attributes:
        features: a map, the name of a kind, or "auto".
        dim: width of keys.
        key_norm: bound on keys.
        rows: a public number of rows, if there is one.
        multiplier: σ of the noise, in units of a row's contribution.
        public_rows: rows like the keys, if there are any.
    """

    features: str | SymmetricMap
    dim: int
    key_norm: float
    rows: int | None
    multiplier: float
    public_rows: PublicRows | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The features, and the second moments that go with them.

    Attributes:
        features: the map.
        share: of the squared budget for second moments.
        moment: the mean of [φ; 1] ⊗ [φ; 1] over public rows, if there are any.
    """

    features: SymmetricMap
    share: float
    moment: Floats | None


def check_features(features: str | SymmetricMap) -> None:
    """Raise `InvalidInput` unless this is a map that can be asked for, or the name of one.

    Args:
        features: what the caller gave.
    """
    if not isinstance(features, str):
        registry.FEATURES.check_registered(features)
    elif features != registry.AUTO:
        registry.FEATURES.kind_named(features)


def choose(request: Request, share: float | None) -> Choice:
    """Return features, and the share of second moments: the given one, if any was."""
    features = choose_features(request)
    public = request.public_rows
    return Choice(
        features=features,
        share=SHARE if share is None else share,
        moment=None if public is None else public_moment(features, public),
    )


def choose_features(request: Request) -> SymmetricMap:
    """Return the features that were asked for, or those that public numbers recommend."""
    features = request.features
    if isinstance(features, str):
        return _made(features, request)
    if features.dim != request.dim or features.key_norm != request.key_norm:
        wanted = f"features for keys of width {request.dim} and norm {request.key_norm:g}"
        _validate.reject("features", f"{features.dim}, {features.key_norm:g}", wanted)
    return features


def _made(name: str, request: Request) -> SymmetricMap:
    """Return the map of that name."""
    kind = registry.FEATURES.kind_named(_kind(request) if name == registry.AUTO else name)
    if kind is TableColumns:
        wanted = "a TableColumns: it has to know what the columns are"
        _validate.reject_argument("features", name, wanted)
    dim, norm = request.dim, request.key_norm
    if kind is Linear:
        return Linear(dim, key_norm=norm)
    if kind is UnitLinear:
        return UnitLinear(dim, key_norm=norm)
    if kind is LinearAndFourier:
        waves = _waves(request, BENDING_WAVES, _BENDING_SCALE)
        return LinearAndFourier(Linear(dim, key_norm=norm), waves)
    if kind is UnitFourier:
        return _waves(request, waves_for(request.rows, request.multiplier), _WAVES_SCALE)
    if request.public_rows is None:
        need = "public_rows"
        return _validate.reject(
            "features", name, f"given with {need}, of which it is made", needs=need
        )
    return UnitLandmarks(request.public_rows, scale=_LANDMARKS_SCALE / norm**2, key_norm=norm)


def _kind(request: Request) -> str:
    """Return the kind that suits rows of such a width, as far as public numbers tell."""
    if request.rows is None:
        raise InvalidInput(
            'Expected features="auto" to come with rows_hint, a public (rounded) number of rows; '
            "or name the features.",
            argument="features",
            value=registry.AUTO,
            wanted="given with rows_hint, a public (rounded) number of rows",
            needs="rows_hint",
        )
    if request.public_rows is not None:
        return UnitLandmarks.kind
    return Linear.kind if request.dim >= WIDE else UnitFourier.kind


def waves_for(rows: int | None, multiplier: float) -> int:
    """Return how many random Fourier features so many rows deserve under so much noise."""
    seen = 0 if rows is None else rows / multiplier
    if seen < _SOME_ROWS:
        return _FEW_WAVES
    return _SOME_WAVES if seen < _MANY_ROWS else _MANY_WAVES


def _waves(request: Request, count: int, scale: float) -> UnitFourier:
    norm = request.key_norm
    return UnitFourier(
        request.dim, frequencies=count, scale=scale / norm**2, key_norm=norm, query_norm=norm
    )


def public_moment(features: SymmetricMap, public_rows: PublicRows) -> Floats:
    """Return the mean of [φ; 1] ⊗ [φ; 1] over public rows, shape (r + 1, r + 1)."""
    mapped = features.key_features(public_rows.mixed[:_ENOUGH]).features / features.unit
    counted = np.concatenate([mapped, np.ones((len(mapped), 1))], axis=1)
    return np.asarray(counted.T @ counted / len(mapped))


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

    def moments_sigma(self, sigma: float) -> float:
        """Return the noise of a second moment in real units, given that of the sums on the lattice.

        Zero if no second moments are released.

        Args:
            sigma: standard deviation of the noise on the sums, in lattice units.
        """
        return part_sigmas(self, sigma)[1] / self.moment_unit**2 if self.share else 0.0

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
        """Return the layout with these `parameters`, and these arrays of its map.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        names = ("value_dim", "value_norm", "tau", "resolution", "share", "ridge", "centred")
        return cls(
            kernel=registry.FEATURES.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            **{name: parameters[name] for name in names},
            coarseness=parameters.get("coarseness", 0),
            moment=arrays["moment"] if parameters["public"] else None,
        )
