"""Answers that are averages over near rows, from a memory."""

import math
from typing import ClassVar

import numpy as np

from discreet._typing import Floats
from discreet.kernels.base import Evidence
from discreet.memory import Memory, build
from discreet.memory.settings import CLEAR
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
        class c in all rows: the score is num_c - π_c·den, in public units (`_usual_sum`). No class
        wins because it is frequent.

        Values are e_c - 1/C, so a memory answers AV_c = num_c - den/C and D = den. With shares
        π_c = 1/C + s_c 1/C cancels:

            score_c = AV_c(q) - s_c·D(q).

        s_c = AV_c/D at a public query with much the same weight for all rows (`_shares`).
        """
        memory = _memory(release)
        numerators, denominators = _sums(memory, _lifted(memory, queries))
        scores = numerators - denominators[:, None] * _shares(memory)
        return np.asarray(scores / _usual_sum(memory))

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


def _shares(memory: Memory) -> Floats:
    """Return the share of each class in all rows, less 1/C, shape (C,); with noise.

    Asked at the origin, where all weights are one, or at the pole of the sphere, where short rows
    weigh nearly the same: where rows outweigh the noise by more. Where shares are no further
    from 1/C than errors may be, they are taken for equal: near rows D is large, and an error in a
    share would hide all that there is.
    """
    pole = np.eye(memory.kernel.dim)[-1] * memory.kernel.query_norm
    places = np.stack([0 * pole, pole])
    clear = memory.sums(places)[1] / memory.sums_stderr(places)[1]
    best = int(np.argmax(clear))
    reader, place = memory.reader, places[None, [best]]
    # A certificate holds for the worst of all data, and says nothing of these.
    certain = memory.kernel.evidence is Evidence.CERTIFICATE
    ask = reader.answers_with_noise if certain else reader.answers_with_stderr
    [[shares]], [[errors]] = ask(place, reader.arrays)
    known = clear[best] > CLEAR and _beyond(shares, errors)
    return np.asarray(shares if known else np.zeros_like(shares))


def _beyond(shares: Floats, errors: Floats) -> bool:
    """Return whether shares are longer than errors of such a size alone would be.

    The square of their length is within `_SURE` standard deviations of its mean nearly always.
    """
    surely = 1 + _SURE * math.sqrt(2 / len(shares))
    return float(shares @ shares) > surely * float(errors @ errors)


def _usual_sum(memory: Memory) -> float:
    """Return the sum of weights if all rows were 60 degrees from the query: a public number.

    Of as many rows as the builder said there are.
    """
    rows = memory.released.rows_hint or 1
    return rows * math.exp(memory.kernel.largest_logit / 2)
