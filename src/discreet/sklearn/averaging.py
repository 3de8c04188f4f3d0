"""Answers that are averages over near rows, from a memory."""

from typing import ClassVar

import numpy as np

from discreet._typing import Floats
from discreet.memory import Memory, build
from discreet.memory.temperature import Goal
from discreet.noise import Entropy
from discreet.sklearn.reading import Reader, Release, Rows, Terms


class Average(Reader):
    """Weights e^(scale·⟨q, k⟩): for few rows, and for small ε."""

    name: ClassVar[str] = "average"

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return a memory of the rows."""
        return build(
            rows.keys,
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
            public_rows=terms.public_rows,
            goal=Goal.AVERAGE if terms.classes is None else Goal.RANK,
            group_rows=terms.group_rows,
        )

    def scores(self, release: Release, queries: Floats) -> Floats:
        """Return by how much each class weighs more near a query than it does everywhere.

        With weights w_i and classes c_i, num_c = Σ w_i·[c_i = c], den = Σ w_i, and π_c the share of
        class c in all rows: the score is num_c - π_c·den, for each row that there is. A frequent
        class does not win because it is frequent.

        Values are e_c - 1/C, so a memory answers AV_c = num_c - den/C and D = den. At the origin
        all weights are one, so π_c = AV_c(0)/D(0) + 1/C, with its noise; and 1/C cancels:

            score_c = (AV_c(q) - D(q)·AV_c(0)/D(0))/D(0).
        """
        memory = _memory(release)
        [totals], [rows] = _sums(memory, np.zeros((1, queries.shape[1])))
        # Fewer rows than one there are not; and no share is below none or above all.
        rows = max(float(rows), 1.0)
        count = len(totals)
        excess = np.clip(totals / rows, -1 / count, 1 - 1 / count)
        numerators, denominators = _sums(memory, queries)
        return np.asarray((numerators - denominators[:, None] * excess) / rows)

    def numbers(self, release: Release, queries: Floats) -> Floats:
        """Return weighted means of the values."""
        return np.asarray(_memory(release).attend(queries), dtype=np.float64)

    def noise(self, release: Release, queries: Floats) -> Floats:
        """Return the standard error of the noise in them."""
        return np.asarray(_memory(release).noise_stderr(queries), dtype=np.float64)


def _memory(release: Release) -> Memory:
    if not isinstance(release, Memory):
        raise TypeError(f"Expected a Memory, got a {type(release).__name__}.")
    return release


def _sums(memory: Memory, queries: Floats) -> tuple[Floats, Floats]:
    numerators, denominators = memory.sums(queries)
    return np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
