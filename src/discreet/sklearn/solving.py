"""Answers that are functions fitted to all rows, from their second moments."""

from typing import ClassVar

import numpy as np

from discreet._typing import Floats
from discreet.noise import Entropy
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.sklearn.reading import NumberReader, Release, Rows, Terms, released
from discreet.sums.source import RowSource


class Solve(NumberReader):
    """Least squares: for many rows, and for straight lines."""

    name: ClassVar[str] = "least_squares"

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return a regression of the rows."""
        return released(
            LEAST_SQUARES,
            RowSource.of(rows.keys, rows.values, rows.groups),
            entropy,
            features=terms.features,
            ridge=terms.ridge,
            centred=terms.classes is None,
            public_rows=terms.public_rows,
            **terms.of_any_release,
        )

    def scores(self, release: Release, queries: Floats) -> Floats:
        """Return estimates of the probability of each class, less 1/C."""
        return self.numbers(release, queries)

    def numbers(self, release: Release, queries: Floats) -> Floats:
        """Return predicted values."""
        return np.asarray(_fitted(release).predict(queries), dtype=np.float64)

    def noise(self, release: Release, queries: Floats) -> Floats:
        """Return how far the noise has moved each of them."""
        return np.asarray(_fitted(release).predict(queries, stderr=True)[1], dtype=np.float64)


def _fitted(release: Release) -> LeastSquares:
    if not isinstance(release, LeastSquares):
        raise TypeError(f"Expected a LeastSquares, got a {type(release).__name__}.")
    return release
