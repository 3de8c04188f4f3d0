"""Questions, each chosen by the answers before: an attacker who has answers only, and no file.

She knows all rows but one, and that row's key; its value, one of few, is the secret. She climbs: of
the questions of a round, the one whose answer speaks most clearly for one value against the next is
where the next round is asked around, more closely if none was clearer than before. From each answer
she takes off what all others add, and all that is left, weighed by how much the row counts there,
says what the value is.

All answers are made of one file, so that they can say no more than it does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from discreet._typing import Floats
from discreet.audit.attacks.planting import Coins, Scene
from discreet.readers.attention import comparison as oracle

# Rounds between one power of ten and the next, and the fewest questions of a round.
_ROUNDS, _FEWEST = 18, 5

# How far around, to begin with, in units of the longest query; and how much closer it gets.
_AROUND, _CLOSER = 0.3, 0.8

Answer = Callable[[Floats], Floats]
Sums = Callable[[Floats], tuple[Floats, Floats]]


def levels(questions: int) -> tuple[int, ...]:
    """Return after how many questions it is counted: 10, 100, ..., and the last.

    Args:
        questions: in all.
    """
    powers = [10**power for power in range(1, 20) if 10**power < questions]
    return (*powers, questions)


@dataclass(frozen=True, eq=False, repr=False)
class Target:
    """What she knows before she asks.

    Attributes:
        key: of the row.
        values: that it may have, shape (k, d_v).
        scale: logit = scale·⟨query, key⟩.
        norm: of the longest query.
        others: returns numerators and denominators over all other rows.
    """

    key: Floats
    values: Floats
    scale: float
    norm: float
    others: Sums

    def left(self, queries: Floats, answers: Floats) -> tuple[Floats, Floats]:
        """Return what is left for the row, in units of its weight, and that weight.

        Args:
            queries: shape (m, d).
            answers: to them, shape (m, d_v).
        """
        above, below = self.others(queries)
        weight = np.exp(self.scale * (queries @ self.key))
        left = answers * (below + weight)[:, None] - above
        return left / weight[:, None], weight

    def within(self, queries: Floats) -> Floats:
        """Return queries that are no longer than they may be.

        Args:
            queries: shape (m, d).
        """
        lengths = np.linalg.norm(queries, axis=1, keepdims=True)
        return np.asarray(queries * np.minimum(self.norm / np.maximum(lengths, 1e-300), 1.0))


def climb(target: Target, answer: Answer, questions: int, coins: Coins) -> list[int]:
    """Return which value she names after 10, 100, ... questions.

    Args:
        target: what she knows.
        answer: answers questions, shape (m, d), with shape (m, d_v).
        questions: how many she may ask.
        coins: by which she looks around.
    """
    centre, around, clearest = target.within(target.key[None])[0], _AROUND * target.norm, -np.inf
    summed, weights = np.zeros(target.values.shape[1]), 0.0
    named = []
    for rounds in _rounds(questions):
        for count in rounds:
            steps = coins.steps(count, len(centre)) * (around / len(centre) ** 0.5)
            steps[0] = 0.0
            queries = target.within(centre + steps)
            left, weight = target.left(queries, answer(queries))
            summed += (weight**2) @ left
            weights += float(np.sum(weight**2))
            clearness = weight * _margins(left, target.values)
            best = int(np.argmax(clearness))
            if clearness[best] > clearest:
                centre, clearest = queries[best], float(clearness[best])
            else:
                around *= _CLOSER
        named.append(int(np.argmax(_likeness((summed / weights)[None], target.values)[0])))
    return named


def _rounds(questions: int) -> Iterator[list[int]]:
    """Yield the sizes of the rounds before each level."""
    before = 0
    for level in levels(questions):
        rest = level - before
        size = max(rest // _ROUNDS, min(_FEWEST, rest))
        yield [min(size, rest - done) for done in range(0, rest, size)]
        before = level


def _likeness(left: Floats, values: Floats) -> Floats:
    return np.asarray(left @ values.T - np.sum(values**2, axis=1) / 2)


def _margins(left: Floats, values: Floats) -> Floats:
    """Return how much clearer the likeliest value is than the next, shape (m,)."""
    two = np.partition(_likeness(left, values), -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


@dataclass(frozen=True, eq=False, repr=False)
class Hidden:
    """One secret. PRIVATE.

    Attributes:
        target: which row.
        value: that it has, shape (d_v,).
        values: that it may have, shape (k, d_v).
        seed: of where she looks.
    """

    target: int
    value: Floats
    values: Floats
    seed: int


def ask_memory(scene: Scene, hidden: Hidden, questions: int) -> list[int]:
    """Return what she names by the answers of a new memory.

    Args:
        scene: rows and targets.
        hidden: what she wants to know.
        questions: how many she may ask.
    """
    others = scene.others(hidden.target)
    memory, known = scene.memory(hidden.target, hidden.value, others), scene.silent(others)

    def in_float32(queries: Floats) -> Floats:
        return np.asarray(memory.attend(queries.astype(np.float32)), dtype=np.float64)

    def sums(queries: Floats) -> tuple[Floats, Floats]:
        above, below = known.sums(queries.astype(np.float32))
        return np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)

    return _climbed(scene, hidden, sums, in_float32, questions)


def ask_exactly(scene: Scene, hidden: Hidden, questions: int) -> list[int]:
    """Return what she names by answers of exact attention. NOT PRIVATE.

    Args:
        scene: rows and targets.
        hidden: what she wants to know.
        questions: how many she may ask.
    """
    keys, held, scale = scene.keys, scene.values, scene.layout.kernel.scale
    if scene.own is not None:
        own = scene.own[hidden.target]
        keys, held = (np.delete(each, own, axis=0) for each in (keys, held))
    everyone = np.vstack([keys, scene.targets[hidden.target]]), np.vstack([held, hidden.value])

    def answer(queries: Floats) -> Floats:
        return oracle.attention(queries, *everyone, scale=scale)

    def sums(queries: Floats) -> tuple[Floats, Floats]:
        return oracle.attention_sums(queries, keys, held, scale=scale)

    return _climbed(scene, hidden, sums, answer, questions)


def _climbed(
    scene: Scene, hidden: Hidden, others: Sums, answer: Answer, questions: int
) -> list[int]:
    kernel = scene.layout.kernel
    key = scene.targets[hidden.target]
    target = Target(key, hidden.values, kernel.scale, kernel.query_norm, others)
    return climb(target, answer, questions, Coins(hidden.seed))
