"""One map of each kind for least squares, small; and maps of tables, whose keys are looked up."""

import numpy as np
from data import unit_rows

from discreet._keys import LARGEST, MISSING
from discreet.features import registry
from discreet.features.columns import Bins, Categories, TableColumns
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


def tables():
    """Maps of tables of all widths, with lists and bins of all lengths."""
    amount, share = Bins.between(0, 1e5, skewed=True), Bins.between(-1, 1, skewed=False)
    two, fifty = Categories((0, 1)), Categories(tuple(range(50)))
    mixed = TableColumns((amount, two, share, fifty, Bins((-1.0, 0.0, 2.5), found=True)))
    wide = TableColumns((amount, two, share) * 20)
    return {
        "one number": TableColumns((amount,)),
        "one number, waves": TableColumns((share,)).with_waves(8),
        "one category of one": TableColumns((Categories((0,)),)),
        "one category of two": TableColumns((two,)),
        "two columns": TableColumns((fifty, share)),
        "columns that were found": TableColumns(
            (
                Categories((3, 17, 511), found=True),
                Categories((), found=True),
                Bins((), found=True),
                Bins((0.0,)),
                Bins(tuple(range(1, 14))),
            )
        ),
        "mixed": mixed,
        "mixed, waves": mixed.with_waves(32),
        "sixty columns": wide,
        "sixty columns, waves": wide.with_waves(8),
        "three hundred columns": TableColumns((two, share, Categories((0, 1, 2))) * 100),
    }


TABLES = tuple(tables())


def cells(column):
    """Keys of one column: in each bin or category, at its ends, unknown, missing, and huge."""
    odd = [MISSING, LARGEST, -LARGEST, 1e300, -1.0, 0.0, -0.0, 0.5, 2.0**24, 5e-324]
    if isinstance(column, Categories):
        return np.array([*column.places, *column.places, *odd, max(column.places, default=0) + 1])
    edges = np.asarray(column.edges)
    beside = [np.nextafter(edges, way) for way in (-np.inf, np.inf)]
    return np.concatenate([edges, *beside, odd])


def table_keys(table, count=200, seed=0, *, known=False):
    """Rows of such keys, shape (count, p); `known` for a bin or a listed category in all places."""
    rng = np.random.default_rng(seed)
    keys = np.empty((count, table.dim))
    for at, column in enumerate(table.columns):
        some = cells(column)
        if known:
            places = getattr(column, "places", None)
            some = some[np.abs(some) < 1e30] if places is None else np.array(places, dtype=float)
        keys[:, at] = rng.choice(some, count)
    return keys
