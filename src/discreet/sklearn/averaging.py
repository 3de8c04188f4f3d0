"""Answers that are averages over near rows: votes for classes, means of numbers."""

from typing import Any, ClassVar

import numpy as np

from discreet._typing import Floats
from discreet.noise import Entropy
from discreet.readers.attention.error_model import Goal
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.sklearn.reading import NumberReader, Release, Rows, Terms, released
from discreet.sklearn.sphere import on_sphere
from discreet.sums.source import RowSource


class Average(NumberReader):
    """Weights that fall with the distance of a row: for few rows, and for small ε.

    Classes are voted for by sums alone: e^(-scale·‖q - k‖²/2) over all rows, least squares without
    second moments. Numbers are means, from a memory of rows on the sphere.
    """

    name: ClassVar[str] = "average"

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return sums for votes, or a memory for means."""
        return _votes(rows, terms, entropy) if terms.classes else _means(rows, terms, entropy)

    def scores(self, release: Release, queries: Floats) -> Floats:
        """Return by how much each class weighs more near a query than it does everywhere.

        With weights w_i and classes c_i, num_c = Σ w_i·[c_i = c], den = Σ w_i, and π_c the share of
        class c in all rows: the score is num_c - π_c·den, for each row that there is said to be. No
        class wins because it is frequent. Values are e_c - 1/C, and 1/C cancels.
        """
        votes = _released(release, LeastSquares)
        numerators, denominators = votes.sums(queries)
        scores = numerators - denominators[:, None] * _excess(*votes.shares)
        return np.asarray(scores / (votes.released.rows_hint or 1), dtype=np.float64)

    def numbers(self, release: Release, queries: Floats) -> Floats:
        """Return weighted means of the values."""
        memory = _released(release, Memory)
        lifted = on_sphere(queries, memory.kernel.query_norm)
        return np.asarray(memory.attend(lifted), dtype=np.float64)

    def noise(self, release: Release, queries: Floats) -> Floats:
        """Return the standard error of the noise in them."""
        memory = _released(release, Memory)
        lifted = on_sphere(queries, memory.kernel.query_norm)
        return np.asarray(memory.noise_stderr(lifted), dtype=np.float64)


def _votes(rows: Rows, terms: Terms, entropy: Entropy | None) -> LeastSquares:
    return released(
        LEAST_SQUARES,
        RowSource.of(rows.keys, rows.values, rows.groups),
        entropy,
        features=terms.features,
        share=0.0,
        centred=False,
        **terms.of_any_release,
    )


def _means(rows: Rows, terms: Terms, entropy: Entropy | None) -> Memory:
    public = terms.public_rows
    return released(
        ATTENTION,
        RowSource.of(on_sphere(rows.keys, terms.key_norm), rows.values, rows.groups),
        entropy,
        query_norm=terms.key_norm,
        public_rows=None if public is None else on_sphere(public, terms.key_norm),
        goal=Goal.AVERAGE,
        **terms.of_any_release,
    )


def _released(release: Release, kind: type[Any]) -> Any:  # noqa: ANN401 (what `kind` says)
    if not isinstance(release, kind):
        raise TypeError(f"Expected a {kind.__name__}, got a {type(release).__name__}.")
    return release


def _excess(shares: Floats, errors: Floats) -> Floats:
    """Return shares of classes less 1/C, shape (C,), as far as they are more than their noise.

    James and Stein's estimate: what is as short as noise alone would be is taken for none, because
    near rows den is large, and an error in a share would hide all that there is.
    """
    apart = shares - shares.mean()
    noise = (len(apart) - 1) * float(np.mean(errors**2))
    squared = float(apart @ apart)
    return np.asarray(apart * max(1 - noise / max(squared, noise), 0.0) if noise else apart)
