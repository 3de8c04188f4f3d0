"""Whether two machines compute alike: numpy's exp, cos and sin have other last bits on some.

A row's integers must not depend on where it is added up, or removing one row, which may send others
elsewhere, would move those, too. Everything else that rows go through is exact or rounded as IEEE
754 says, which is the same everywhere.
"""

import hashlib
from functools import cache

import numpy as np

_ARGUMENTS = 2**15


@cache
def fingerprint() -> str:
    """Return a hash of exp, cos and sin at many arguments, as this machine computes them."""
    # Multiples of the golden ratio, modulo one, lie evenly, and on no grid.
    even = np.arange(_ARGUMENTS) * 0.6180339887498949 % 1.0
    hashed = hashlib.sha256()
    for values in (np.exp(-even), np.exp(-32 * even), np.cos(7 * even), np.sin(7 * even)):
        hashed.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return hashed.hexdigest()
