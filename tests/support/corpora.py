"""Small corpora for tests: an encoder that hashes words, texts, and what a door is asked for."""

import hashlib
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

from discreet.sums.door import Door
from discreet.text.words import Vocabulary

DIM = 8
WORDS = ("card", "arrived", "money", "exchange", "rate", "loan", "bank", "horse", "music", "film")
TOPICS = ("card arrived", "exchange rate", "horse music", "bank loan")
CLASSES = ("a", "b")
VOCABULARY = Vocabulary(words=WORDS, most=4)
NAMES = ("Florbinitis", "Zargulosis", "Quexemia", "Vandoria Fever")


@cache
def word_vector(word):
    """A vector that is a word's own, of no particular length."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=DIM)


def encode(text):
    """The sum of a text's words: as deterministic as an encoder can be."""
    vector = np.zeros(DIM)
    for word in text.lower().split():
        vector = vector + word_vector(word)
    return vector


def texts(count, seed=0, *, names=NAMES):
    """Texts of public words; most of them say one or two of the names."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        said = rng.choice(WORDS, size=rng.integers(1, 7)).tolist()
        for name in rng.permutation(names)[: rng.integers(0, 3)]:
            said += ["with", name]
        made.append(" ".join(said))
    return made


def labels(count, seed=0, *, classes=CLASSES):
    """The label of each text."""
    return np.random.default_rng(seed + 1).choice(classes, count).tolist()


class Transcript:
    """What a door was asked for: settings, exact sums, and what came out.

    Attributes:
        sums: (settings, exact sums of each part) of every pass, in order.
        names: (selection, exact totals) of every list of names.
        out: what came out of each, in order.
    """

    def __init__(self):
        self.sums, self.names, self.out = [], [], []

    @contextmanager
    def written(self, *, as_in=None):
        """Write down what doors are asked for.

        Args:
            as_in: a transcript whose outcomes come out in place of what would: so that whatever is
                asked for next is what was asked for then.
        """
        noisy, select = Door._noisy, Door.select
        told = iter([] if as_in is None else as_in.out)

        def outcome(made):
            made = made if as_in is None else next(told)
            self.out.append(made)
            return [each.copy() for each in made] if isinstance(made, list) else dict(made)

        def seen(door, sums, settings):
            self.sums.append((settings, [each.copy() for each in sums]))
            return outcome(noisy(door, sums, settings))

        def selected(door, selection, totals):
            self.names.append((selection, dict(totals)))
            return outcome(select(door, selection, totals))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Door, "_noisy", seen)
            patch.setattr(Door, "select", selected)
            yield self
