"""Sources of noise for tests. Whatever is built with them is NOT PRIVATE.

They are separate named types, so that no option, environment variable or default can turn the
private source into one of them.
"""

import hashlib
import threading
from collections.abc import Callable

import numpy as np

from discreet import _validate
from discreet._typing import Integers, Words
from discreet.errors import DiscreetError
from discreet.noise.entropy import Entropy, KeyStream

__all__ = ["Seeded", "Silent"]


class Seeded(Entropy):
    """The same bits for the same seed, on every machine. NOT PRIVATE.

    Args:
        seed: a whole number of at least 0.
    """

    def __init__(self, seed: int) -> None:
        self.seed = _validate.whole("seed", seed, at_least=0)
        self._stream = KeyStream(
            hashlib.sha256(f"discreet test seed {self.seed}".encode()).digest()
        )
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Seeded({self.seed})"

    def words(self, count: int) -> Words:
        """Return the next words of this seed's stream.

        Args:
            count: how many words.

        Returns:
            Words, shape (count,).
        """
        with self._lock:
            return self._stream.words(count)


class Silent(Entropy):
    """All noise is zero, so that a structure can be compared with its exact truth. NOT PRIVATE."""

    def __repr__(self) -> str:
        return "Silent()"

    def words(self, count: int) -> Words:  # noqa: ARG002
        """Refuse: there are no bits behind zero noise.

        Args:
            count: how many words were wanted.

        Raises:
            DiscreetError: always.
        """
        raise DiscreetError("Silent() has no random words; it replaces the draws of a law.")

    def realise(self, sampler: Callable[[int, Entropy], Integers], count: int) -> Integers:  # noqa: ARG002
        """Return zeros, whatever the law.

        Args:
            sampler: not asked.
            count: how many draws.

        Returns:
            Zeros, shape (count,).
        """
        return np.zeros(count, dtype=np.int64)
