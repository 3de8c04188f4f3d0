"""Answers of a classifier that learnt from all rows, round by round."""

from typing import ClassVar

import numpy as np

from discreet._typing import Floats
from discreet.noise import Entropy
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.readers.softmax.passes import labelled
from discreet.sklearn.reading import Reader, Release, Rows, Terms, released
from discreet.sklearn.targets import Labels
from discreet.sums.source import RowSource


class Rounds(Reader):
    """Softmax regression in rounds: for classes."""

    name: ClassVar[str] = "rounds"

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return a classifier of the rows."""
        if not isinstance(rows.targets, Labels):
            raise TypeError("Expected labels.")
        return released(
            SOFTMAX,
            RowSource.of(rows.keys, rows.given, rows.groups, labelled(rows.targets)),
            entropy,
            classes=rows.targets.classes,
            features=terms.features,
            public_rows=terms.public_rows,
            **terms.of_any_classifier,
        )

    def scores(self, release: Release, queries: Floats) -> Floats:
        """Return logits."""
        return np.asarray(_trained(release).logits(queries), dtype=np.float64)

    def probabilities(self, release: Release, queries: Floats) -> Floats:
        """Return the softmax of the logits."""
        return np.asarray(_trained(release).probabilities(queries), dtype=np.float64)


def _trained(release: Release) -> SoftmaxRegression:
    if not isinstance(release, SoftmaxRegression):
        raise TypeError(f"Expected a SoftmaxRegression, got a {type(release).__name__}.")
    return release
