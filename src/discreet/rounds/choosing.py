"""Which features a classifier has: from public numbers, and public rows if any."""

from dataclasses import replace

from discreet.regression import registry
from discreet.regression.choosing import WIDE, Request, choose_features, waves_for
from discreet.regression.maps import QueryMap
from discreet.regression.near_landmarks import NearLandmarks
from discreet.regression.rays import Rays
from discreet.regression.waves import Waves

# So many waves, where nobody says how many rows there are.
WAVES = 512

# How much columns count beside the constant of rays: classes need nothing but the side of a plane.
STRETCH = 8.0

# Where keys are spread over the ball of their bound.
_SCALE = 3.0


def choose(request: Request) -> QueryMap:
    """Return the features that were asked for, or those that public numbers recommend.

    Planes between wide keys, which were made to be told apart by planes; curves between others.
    """
    if request.features != registry.AUTO:
        return choose_features(request)
    if request.public_rows is not None:
        return choose_features(replace(request, features=NearLandmarks.kind))
    if request.dim >= WIDE:
        return Rays(request.dim, key_norm=request.key_norm, stretch=STRETCH)
    norm = request.key_norm
    return Waves(
        request.dim,
        frequencies=waves_count(request.rows, request.multiplier),
        scale=_SCALE / norm**2,
        key_norm=norm,
        query_norm=norm,
    )


def waves_count(rows: int | None, multiplier: float) -> int:
    """Return how many waves so many rows deserve under so much noise."""
    return WAVES if rows is None else waves_for(rows, multiplier)
