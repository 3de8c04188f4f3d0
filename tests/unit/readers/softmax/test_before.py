"""Sums of rounds and of the calibration as they were before tables had rounds of their own.

The hashes were written by version 1d9e4de, of the same rows, and are never written again: of maps
that existed then nothing may change a bit. Sums with a W of their own, and not the coefficients of
a whole run: those go along eigenvectors, which may differ in a last bit on another machine. (Whole
runs of both versions were compared on one machine, to the bit, under 240 settings.)
"""

import hashlib

import numpy as np
import pytest
from rounds import calibration, calibration_sums, exact_sums, round_of, rounds_of, settings_of

from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.linear import UnitLinear
from discreet.privacy import Neighbours
from discreet.sums.settings import Unit

WAVES = UnitFourier(3, frequencies=9, scale=1.0, key_norm=2.0, query_norm=2.0)
MAPS = {
    "rays": UnitLinear(3, key_norm=2.0, stretch=8.0),
    "waves": WAVES,
    "lines and waves": LinearAndFourier(UnitLinear(3, key_norm=2.0), WAVES),
}
ROWS = 300


def rows():
    """Whole numbers over powers of two, which no machine rounds."""
    rng = np.random.default_rng(0)
    keys = rng.integers(-300, 300, (ROWS, 3)) / 128
    return keys, rng.integers(0, 4, ROWS), rng.integers(0, 50, ROWS)


def weights_of(kernel):
    return np.random.default_rng(1).integers(-900, 900, (kernel.features, 4)) / 256


def settings_for(kernel, neighbours, unit):
    of_record = {"unit": Unit.RECORD, "group_rows": 2.5} if unit is Unit.RECORD else {}
    return settings_of(rounds_of(kernel, 4), neighbours, **of_record, epsilon=2.0)


def hashed(kernel, neighbours, unit):
    """All sums and the size of all noise: first round, cut or not, a later one, the calibration."""
    whole = settings_for(kernel, neighbours, unit)
    keys, labels, groups = rows()
    groups = groups if unit is Unit.RECORD else None
    weights = weights_of(kernel)
    digest = hashlib.sha256()
    passes = [
        (this, exact_sums(this, keys, labels, groups))
        for this in (round_of(whole), round_of(whole, coarseness=3), round_of(whole, weights))
    ]
    passes.append((calibration(whole), calibration_sums(whole, weights, keys, labels, groups)))
    for this, sums in passes:
        for part, law in zip(sums, this.laws(this.layouts[0]), strict=True):
            digest.update(part.astype("<i8").tobytes())
            digest.update(f"{law.sigma:.10e}".encode())
    return digest.hexdigest()[:16]


BEFORE = {
    ("rays", "row", "add_remove"): "e65e209f67070f14",
    ("rays", "row", "replace"): "ce99a4225163fe3f",
    ("rays", "record", "add_remove"): "03625d3de6c356e5",
    ("rays", "record", "replace"): "6c379df702d393eb",
    ("waves", "row", "add_remove"): "8b153a014b46ea38",
    ("waves", "row", "replace"): "d559c717688a99da",
    ("waves", "record", "add_remove"): "914b24845108fe12",
    ("waves", "record", "replace"): "ebaa534a1605febd",
    ("lines and waves", "row", "add_remove"): "c5a688c5871f7a91",
    ("lines and waves", "row", "replace"): "3708c16a54116238",
    ("lines and waves", "record", "add_remove"): "237635f58eec7015",
    ("lines and waves", "record", "replace"): "645d3940cfa226f1",
}


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("name", MAPS)
def test_rounds_of_maps_that_existed_before_are_the_same_to_the_bit(name, unit, neighbours):
    assert hashed(MAPS[name], neighbours, unit) == BEFORE[name, str(unit), str(neighbours)]
