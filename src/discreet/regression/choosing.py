"""Which features, and whose second moments: from public numbers, and public rows if any."""

from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.kernels.public_rows import PublicRows
from discreet.regression import registry
from discreet.regression.linear import Linear
from discreet.regression.maps import QueryMap
from discreet.regression.near_landmarks import NearLandmarks
from discreet.regression.rays import Rays
from discreet.regression.waves import Waves

# Of the squared budget, for second moments: a half loses where rows are few, a twentieth where they
# are many.
SHARE = 0.25

# So many public rows tell their second moments well enough.
_ENOUGH = 20_000


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of the features, as far as a caller said it.

    Attributes:
        features: a map, the name of a kind, or "auto".
        dim: width of keys.
        value_dim: width of values.
        key_norm: bound on keys.
        rows: a public number of rows, if there is one.
        multiplier: σ of the noise, in units of a row's contribution.
        public_rows: rows like the keys, if there are any.
        share: of the squared budget for second moments; None if it was not said.
    """

    features: str | QueryMap
    dim: int
    value_dim: int
    key_norm: float
    rows: int | None
    multiplier: float
    public_rows: PublicRows | None
    share: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The features, and the second moments that go with them.

    Attributes:
        features: the map.
        share: of the squared budget for second moments.
        moment: the mean of [φ; 1] ⊗ [φ; 1] over public rows, if the share is zero.
    """

    features: QueryMap
    share: float
    moment: Floats | None


def choose(request: Request) -> Choice:
    """Return features and shares."""
    features = request.features
    if isinstance(features, str):
        features = _made(request)
    elif features.dim != request.dim or features.key_norm != request.key_norm:
        wanted = f"features for keys of width {request.dim} and norm {request.key_norm:g}"
        _validate.reject("features", f"{features.dim}, {features.key_norm:g}", wanted)
    share = SHARE if request.share is None else request.share
    return Choice(
        features=features,
        share=share,
        moment=None if share else public_moment(features, request.public_rows),
    )


def _made(request: Request) -> QueryMap:
    name = request.features
    if name == registry.AUTO:
        name = _kind(request)
    if name == Linear.kind:
        return Linear(request.dim, key_norm=request.key_norm)
    if name == Rays.kind:
        return Rays(request.dim, key_norm=request.key_norm)
    if name == NearLandmarks.kind:
        if request.public_rows is None:
            return _validate.reject("features", name, "given with public_rows to make it of")
        return NearLandmarks(
            request.public_rows, scale=5 / request.key_norm**2, key_norm=request.key_norm
        )
    return Waves(
        request.dim,
        frequencies=512,
        scale=2.5 / request.key_norm**2,
        key_norm=request.key_norm,
        query_norm=request.key_norm,
    )


def _kind(request: Request) -> str:
    if request.rows is None:
        raise InvalidInput(
            'Expected features="auto" to come with rows_hint, a public (rounded) number of rows; '
            "or name the features."
        )
    if request.public_rows is not None:
        return NearLandmarks.kind
    return Waves.kind


def public_moment(features: QueryMap, public_rows: PublicRows | None) -> Floats:
    """Return the mean of [φ; 1] ⊗ [φ; 1] over public rows, shape (r + 1, r + 1)."""
    if public_rows is None:
        return _validate.reject("share", 0, "above 0, unless public_rows are given")
    mapped = features.key_features(public_rows.mixed[:_ENOUGH]).features / features.unit
    counted = np.concatenate([mapped, np.ones((len(mapped), 1))], axis=1)
    return np.asarray(counted.T @ counted / len(mapped))
