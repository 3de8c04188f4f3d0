"""The one door to randomness.

Every noise law draws its bits from an `Entropy`. The default, `SystemEntropy`, is AES-256-CTR
under a key from the operating system; there is no way to seed it and no fallback. Deterministic
sources for tests live in `discreet.testing`. Which source is private is decided by its type alone
(`is_private`), never by what it says of itself.
"""

import abc
import os
import threading
from collections.abc import Callable
from typing import NoReturn, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet._typing import Integers, Words
from discreet.errors import DiscreetError

_ZEROS = bytes(1 << 19)


class Entropy(abc.ABC):
    """A source of uniform 64-bit words."""

    # No attributes of its own, so that `SystemEntropy` can do without a dictionary, too.
    __slots__ = ()

    @property
    def private(self) -> bool:
        """Whether noise drawn from this source protects anybody; for readers, see `is_private`."""
        return is_private(self)

    @abc.abstractmethod
    def words(self, count: int) -> Words:
        """Return independent uniform words.

        Args:
            count: how many words.

        Returns:
            Words, shape (count,).
        """

    def realise(self, sampler: "Callable[[int, Entropy], Integers]", count: int) -> Integers:
        """Return `count` draws of a law, given its sampler.

        A source that has no bits (`discreet.testing.Silent`) answers here instead, so that no
        sampler needs to know about it.

        Args:
            sampler: a function of a number of draws and a source.
            count: how many draws.

        Returns:
            Integers, shape (count,).
        """
        return sampler(count, self)


class KeyStream:
    """AES-256-CTR as words: encrypts zeros under a 32-byte key, from counter zero on."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> Words:
        """Return the next `count` words of the stream (little-endian on every machine)."""
        block = np.empty(count, dtype="<u8")
        view = block.data.cast("B")
        for start in range(0, len(view), len(_ZEROS)):
            part = view[start : start + len(_ZEROS)]
            self._encryptor.update_into(memoryview(_ZEROS)[: len(part)], part)
        return block.astype(np.uint64, copy=False)


class _Forks:
    """Counts the forks that this process descends from, so that no stream survives one."""

    count = 0

    @classmethod
    def notice(cls) -> None:
        cls.count += 1


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_Forks.notice)


@final
class SystemEntropy(Entropy):
    """Cryptographic randomness, keyed by the operating system. The default everywhere.

    Each thread of each process has its own stream under its own key, so draws need no lock, and
    a child process starts anew instead of repeating its parent. It cannot be seeded, subclassed,
    pickled or copied, and nothing can be set on it: neither `words` nor `realise` can be replaced.
    """

    __slots__ = ("__weakref__", "_thread")

    _thread: threading.local

    def __init__(self) -> None:
        object.__setattr__(self, "_thread", threading.local())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("SystemEntropy cannot be changed.")

    def __init_subclass__(cls) -> None:
        raise TypeError("SystemEntropy is the only private source and cannot be subclassed.")

    def __reduce__(self) -> str:
        raise TypeError("SystemEntropy holds key material and is never pickled or copied.")

    def __repr__(self) -> str:
        return "SystemEntropy()"

    def words(self, count: int) -> Words:
        """Return fresh uniform words.

        Args:
            count: how many words.

        Returns:
            Words, shape (count,).

        Raises:
            DiscreetError: if the operating system offers no randomness.
        """
        # The process number catches a fork that bypassed Python; the count catches a process
        # number that was used again.
        home = (os.getpid(), _Forks.count)
        if getattr(self._thread, "home", None) != home:
            self._thread.stream = KeyStream(_operating_system_key())
            self._thread.home = home
        stream: KeyStream = self._thread.stream
        return stream.words(count)


def is_private(source: object) -> bool:
    """Return whether noise from this source protects anybody: only `SystemEntropy` itself does.

    By type and not by attribute: a subclass of `Entropy` may say of itself what it likes.
    """
    return type(source) is SystemEntropy


def _operating_system_key() -> bytes:
    """Return 32 bytes from the operating system; without them there is no noise and no release."""
    try:
        return os.urandom(32)
    except NotImplementedError as error:
        raise DiscreetError("The operating system offers no randomness.") from error
