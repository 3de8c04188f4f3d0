"""From integer logits to what a row says against them: the same to the bit, wherever a row stands.

p = softmax(logits) and q = p - e_y, cut to a length of at most `radius`. Exponentials come from a
table, sums are of integers, and the rest are single operations that IEEE 754 rounds in one way
only: np.exp of a whole array would give other last bits in other places of it. Privacy needs
nothing else of p than that; the bound on q is exact whatever p is.
"""

from functools import cache

import numpy as np

from discreet._typing import Floats, Integers
from discreet.noise.lattice import clip_integer_rows

# exp is tabulated at so many steps for each unit of a logit, down to e^-20: smaller ones are zero
# for whoever adds them up. Entries are whole numbers up to 2^30: sums over classes are exact.
_STEPS = 2**10
_DEEPEST = 20
_ONE = 2**30


def residuals(logits: Floats, labels: Integers, *, unit: float, bits: int, radius: int) -> Integers:
    """Return q of some rows, in units of 2^-bits, shape (m, C): Σ q² ≤ radius², exactly.

    Args:
        logits: integers stored as float64, shape (m, C).
        labels: the class of each row, from 0 on, shape (m,).
        unit: so many of the logits' units are one.
        bits: of the lattice that q is rounded to.
        radius: the bound on ‖q‖, in units of that lattice.
    """
    shares = probabilities(logits, unit=unit)
    shares[np.arange(len(labels)), labels] -= 1.0
    rounded = np.rint(shares * 2.0**bits).astype(np.int64)
    return clip_integer_rows(rounded, radius=radius)


def probabilities(logits: Floats, *, unit: float) -> Floats:
    """Return softmax(logits/unit), row by row, to the bit: shape (m, C)."""
    below = np.max(logits, axis=1, keepdims=True) - logits  # exact: whole numbers below 2^53
    steps = np.minimum(np.rint(below * (_STEPS / unit)), float(_STEPS * _DEEPEST))
    weights = np.take(_table(), steps.astype(np.int64))
    return np.asarray(weights / np.sum(weights, axis=1, keepdims=True))


@cache
def _table() -> Floats:
    """2^30·e^-x at each step, rounded."""
    table = np.asarray(np.rint(_ONE * np.exp(np.arange(_STEPS * _DEEPEST + 1) / -_STEPS)))
    table.flags.writeable = False
    return table
