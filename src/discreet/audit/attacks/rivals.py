"""What the same attacker gets where nothing is private: exact attention, and exact retrieval.

Exact attention answers softmax(scale·QKᵀ)·V over the rows as they are. Retrieval answers with the
row whose key is nearest, key and value. She asks about the row's own key. NOT PRIVATE.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Floats, Integers
from discreet.audit.attacks.planting import Scene

# So many pairs of a target and a row at a time.
_PAIRS = 2**22

# Two rows that are so close, in units of the key's length, are one.
_SAME = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Exact:
    """All rows but one, as exact answers about each target have them. PRIVATE.

    Attributes:
        numerators: Σ w·v over the others, at the key of each target, shape (m, d_v).
        denominators: Σ w, shape (m,).
        weights: w of the target itself, shape (m,).
        nearest: which of the other rows is nearest to each target, shape (m,).
        copies: whether it has the same key, shape (m,).
        values: of all rows.
    """

    numerators: Floats
    denominators: Floats
    weights: Floats
    nearest: Integers
    copies: NDArray[np.bool_]
    values: Floats

    @classmethod
    def of(cls, scene: Scene) -> "Exact":
        """Return what there is to know of the others.

        Args:
            scene: rows and targets.
        """
        at_once = max(_PAIRS // len(scene.keys), 1)
        pieces = [
            cls._some(scene, np.arange(start, min(start + at_once, len(scene.targets))))
            for start in range(0, len(scene.targets), at_once)
        ]
        parts: Any = [np.concatenate(each) for each in zip(*pieces, strict=True)]
        above, below, weights, nearest, copies = parts
        return cls(above, below, weights, nearest, copies, scene.values)

    @staticmethod
    def _some(scene: Scene, chosen: Integers) -> tuple[NDArray[np.generic], ...]:
        asked, scale = scene.targets[chosen], scene.layout.kernel.scale
        inner = asked @ scene.keys.T
        squared = np.sum(asked**2, axis=1)
        logits = scale * inner
        distances = np.sum(scene.keys**2, axis=1) - 2 * inner
        if scene.own is not None:
            itself = (np.arange(len(chosen)), scene.own[chosen])
            logits[itself], distances[itself] = -np.inf, np.inf
        # The same factor on all weights of a query changes no answer.
        largest = np.maximum(logits.max(axis=1), scale * squared)
        weights = np.exp(logits - largest[:, None])
        nearest = np.argmin(distances, axis=1)
        apart = np.linalg.norm(scene.keys[nearest] - asked, axis=1)
        return (
            weights @ scene.values,
            weights.sum(axis=1),
            np.exp(scale * squared - largest),
            nearest,
            apart <= _SAME * np.sqrt(squared),
        )

    def answers(self, targets: Integers, values: Floats | None) -> Floats:
        """Return exact attention at the targets' keys, shape (trials, d_v).

        Args:
            targets: which, shape (trials,).
            values: of each in the data, shape (trials, d_v); None if it is left out.
        """
        above, below = self.numerators[targets], self.denominators[targets]
        if values is not None:
            own = self.weights[targets]
            above, below = above + own[:, None] * values, below + own
        return np.asarray(above / below[:, None])

    def left(self, targets: Integers, answers: Floats) -> Floats:
        """Return the values that targets must have for these answers, shape (trials, d_v).

        Args:
            targets: which, shape (trials,).
            answers: at their keys.
        """
        own = self.weights[targets][:, None]
        all_of_it = answers * (self.denominators[targets][:, None] + own)
        return np.asarray((all_of_it - self.numerators[targets]) / own)

    def retrieved(self, targets: Integers, values: Floats | None) -> tuple[Floats, Floats]:
        """Return the values of the nearest rows, and how unlike the keys are: zero for the same.

        Of two rows with the same key another one is returned than the target.

        Args:
            targets: which, shape (trials,).
            values: of each in the data, shape (trials, d_v); None if it is left out.
        """
        copied, others = self.copies[targets], self.values[self.nearest[targets]]
        if values is None:
            return others, np.where(copied, 0.0, 1.0)
        return np.where(copied[:, None], others, values), np.zeros(len(targets))


def nearest_of(found: Floats, candidates: Floats) -> Integers:
    """Return which candidate each value is nearest to, shape (trials,).

    Args:
        found: shape (trials, d_v).
        candidates: shape (k, d_v).
    """
    products = found @ candidates.T - np.sum(candidates**2, axis=1) / 2
    return np.asarray(np.argmax(products, axis=1))
