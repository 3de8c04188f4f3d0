"""A source that hands out given words, so that a test can steer a sampler bit by bit."""

import numpy as np

from discreet.noise import Entropy


class Replay(Entropy):
    """Hands out the given words in order and fails when they run out."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count, "the sampler asked for more words than the test foresaw"
        return np.array(taken, dtype=np.uint64)
