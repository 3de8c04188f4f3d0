"""One map of each kind for least squares, small."""

import numpy as np
from data import unit_rows

from discreet.features import registry
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import Linear, UnitLinear


def public_rows(dim, norm=1.0):
    """Rows of several lengths up to the bound."""
    rows = unit_rows(120, dim, seed=8) * norm
    rows[::3] *= 0.5
    return rows


def maps(dim, norm=1.0):
    """A map of each kind, and landmarks whose matrix makes no sense."""
    near = UnitLandmarks(public_rows(dim, norm), rank=24, scale=2.0 / norm**2, key_norm=norm)
    arrays = near.arrays()
    noise = np.random.default_rng(0).integers(-(2**22), 2**22, arrays["matrix"].shape)
    arrays |= {"matrix": noise.astype(np.int32), "exponents": arrays["exponents"] * 0 + 12}
    return {
        "linear": Linear(dim, key_norm=norm),
        "linear, nearly constant": Linear(dim, key_norm=norm, stretch=0.3),
        "rays": UnitLinear(dim, key_norm=norm),
        "lines and waves": LinearAndFourier(
            UnitLinear(dim, key_norm=norm),
            UnitFourier(dim, frequencies=9, scale=3.0 / norm**2, key_norm=norm, query_norm=norm),
        ),
        "waves": UnitFourier(
            dim, frequencies=20, scale=3.0 / norm**2, key_norm=norm, query_norm=norm
        ),
        "landmarks": near,
        "landmarks that make no sense": registry.FEATURES.restore(near.parameters(), arrays),
    }


KINDS = tuple(maps(2))
