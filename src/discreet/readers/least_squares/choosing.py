"""Which features, and how the budget is shared: from public numbers, and public rows if any."""

from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.features import registry
from discreet.features.base import QueryMap
from discreet.features.concatenation import LinesAndWaves
from discreet.features.fourier import Waves
from discreet.features.landmarks import NearLandmarks
from discreet.features.linear import Linear, Rays
from discreet.features.public_rows import PublicRows

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

    features: str | QueryMap
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

    features: QueryMap
    share: float
    moment: Floats | None


def choose(request: Request, share: float | None) -> Choice:
    """Return features, and the share of second moments: the given one, if any was."""
    features = choose_features(request)
    public = request.public_rows
    return Choice(
        features=features,
        share=SHARE if share is None else share,
        moment=None if public is None else public_moment(features, public),
    )


def choose_features(request: Request) -> QueryMap:
    """Return the features that were asked for, or those that public numbers recommend."""
    features = request.features
    if isinstance(features, str):
        return _made(features, request)
    if features.dim != request.dim or features.key_norm != request.key_norm:
        wanted = f"features for keys of width {request.dim} and norm {request.key_norm:g}"
        _validate.reject("features", f"{features.dim}, {features.key_norm:g}", wanted)
    return features


def _made(name: str, request: Request) -> QueryMap:
    """Return the map of that name."""
    if name == registry.AUTO:
        name = _kind(request)
    dim, norm = request.dim, request.key_norm
    if name == Linear.kind:
        return Linear(dim, key_norm=norm)
    if name == Rays.kind:
        return Rays(dim, key_norm=norm)
    if name == LinesAndWaves.kind:
        waves = _waves(request, BENDING_WAVES, _BENDING_SCALE)
        return LinesAndWaves(Linear(dim, key_norm=norm), waves)
    if name == Waves.kind:
        return _waves(request, waves_for(request.rows, request.multiplier), _WAVES_SCALE)
    if request.public_rows is None:
        need = "public_rows"
        return _validate.reject("features", name, f"given with {need} to make it of", needs=need)
    return NearLandmarks(request.public_rows, scale=_LANDMARKS_SCALE / norm**2, key_norm=norm)


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
        return NearLandmarks.kind
    return Linear.kind if request.dim >= WIDE else Waves.kind


def waves_for(rows: int | None, multiplier: float) -> int:
    """Return how many waves so many rows deserve under so much noise."""
    seen = 0 if rows is None else rows / multiplier
    if seen < _SOME_ROWS:
        return _FEW_WAVES
    return _SOME_WAVES if seen < _MANY_ROWS else _MANY_WAVES


def _waves(request: Request, count: int, scale: float) -> Waves:
    norm = request.key_norm
    return Waves(
        request.dim, frequencies=count, scale=scale / norm**2, key_norm=norm, query_norm=norm
    )


def public_moment(features: QueryMap, public_rows: PublicRows) -> Floats:
    """Return the mean of [φ; 1] ⊗ [φ; 1] over public rows, shape (r + 1, r + 1)."""
    mapped = features.key_features(public_rows.mixed[:_ENOUGH]).features / features.unit
    counted = np.concatenate([mapped, np.ones((len(mapped), 1))], axis=1)
    return np.asarray(counted.T @ counted / len(mapped))
