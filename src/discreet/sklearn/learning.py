"""Answers of a classifier that learnt from all rows, round by round."""

from typing import ClassVar

import numpy as np

from discreet._typing import Floats
from discreet.noise import Entropy
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.building import softmax_regression
from discreet.sklearn.reading import Reader, Release, Rows, Terms
from discreet.sklearn.targets import Labels


class Rounds(Reader):
    """Softmax regression in rounds: for classes."""

    name: ClassVar[str] = "rounds"

    def release(self, rows: Rows, terms: Terms, entropy: Entropy | None) -> Release:
        """Return a classifier of the rows."""
        if not isinstance(rows.targets, Labels):
            raise TypeError("Expected labels.")
        return softmax_regression(
            rows.keys,
            rows.given,
            groups=rows.groups,
            entropy=entropy,
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
