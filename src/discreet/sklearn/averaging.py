"""Answers that are averages over near rows, from a memory."""

import math
from typing import ClassVar

import numpy as np

from discreet._typing import Floats
from discreet.memory import Memory, build
from discreet.memory.temperature import Goal
from discreet.noise import Entropy
from discreet.sklearn.reading import Reader, Release, Rows, Terms
from discreet.sklearn.sphere import on_sphere

# Standard deviations that shares of classes must be beyond noise.
_SURE = 3.0


class Average(Reader):
    """Weights e^(scale·⟨q, k⟩) of rows on the sphere: for few rows, and for small ε."""

    name: ClassVar[str] = "average"

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return a memory of the rows, on the sphere."""
        public = terms.public_rows
        return build(
            on_sphere(rows.keys, terms.key_norm),
            rows.values,
            groups=rows.groups,
            entropy=entropy,
            epsilon=terms.epsilon,
            delta=terms.delta,
            neighbours=terms.neighbours,
            key_norm=terms.key_norm,
            query_norm=terms.key_norm,
            value_norm=terms.value_norm,
            rows_hint=terms.rows_hint,
            public_rows=None if public is None else on_sphere(public, terms.key_norm),
            goal=Goal.AVERAGE if terms.classes is None else Goal.RANK,
            group_rows=terms.group_rows,
        )

    def scores(self, release: Release, queries: Floats) -> Floats:
        """Return by how much each class weighs more near a query than it does everywhere.

        With weights w_i and classes c_i, num_c = Σ w_i·[c_i = c], den = Σ w_i, and π_c the share of
        class c in all rows: the score is num_c - π_c·den, for each row that there is. A frequent
        class does not win because it is frequent.

        Values are e_c - 1/C, so a memory answers AV_c = num_c - den/C and D = den. At the origin
        all weights are one, so π_c = 1/C + AV_c(0)/D(0), with noise; and 1/C cancels:

            score_c = (AV_c(q) - D(q)·AV_c(0)/D(0))/D(0).

        Near rows den is many times D(0), and the noise of π_c with it. So where AV(0) is no longer
        than noise alone may be, classes are taken for equally frequent: score_c = AV_c(q)/D(0).
        """
        memory = _memory(release)
        origin = np.zeros((1, memory.kernel.dim))
        [totals], [rows] = _sums(memory, origin)
        # Fewer rows than one there are not; and no share is below none or above all.
        rows = max(float(rows), 1.0)
        count = len(totals)
        excess = np.clip(totals / rows, -1 / count, 1 - 1 / count)
        if not _beyond_noise(totals, float(memory.sums_stderr(origin)[0][0])):
            excess[:] = 0
        numerators, denominators = _sums(memory, _lifted(memory, queries))
        return np.asarray((numerators - denominators[:, None] * excess) / rows)

    def numbers(self, release: Release, queries: Floats) -> Floats:
        """Return weighted means of the values."""
        memory = _memory(release)
        return np.asarray(memory.attend(_lifted(memory, queries)), dtype=np.float64)

    def noise(self, release: Release, queries: Floats) -> Floats:
        """Return the standard error of the noise in them."""
        memory = _memory(release)
        return np.asarray(memory.noise_stderr(_lifted(memory, queries)), dtype=np.float64)


def _memory(release: Release) -> Memory:
    if not isinstance(release, Memory):
        raise TypeError(f"Expected a Memory, got a {type(release).__name__}.")
    return release


def _lifted(memory: Memory, queries: Floats) -> Floats:
    return on_sphere(queries, memory.kernel.query_norm)


def _sums(memory: Memory, queries: Floats) -> tuple[Floats, Floats]:
    numerators, denominators = memory.sums(queries)
    return np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)


def _beyond_noise(totals: Floats, sigma: float) -> bool:
    """Return whether totals are longer than noise of such a standard deviation in each would be.

    ‖noise‖² is within `_SURE` standard deviations of its mean nearly always.
    """
    count = len(totals)
    return float(totals @ totals) > sigma**2 * (count + _SURE * math.sqrt(2 * count))
