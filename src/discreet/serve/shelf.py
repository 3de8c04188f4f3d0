"""The files that are served: opened when the server starts, and again when they have changed.

A release is in memory, so nothing that happens to its file changes an answer. A new file is opened
whole and then takes the place of the old one, between two answers. One that is cut short, damaged
or gone leaves the old release where it is, and `Shelf.problems` says so.
"""

import errno
import os
import re
import stat
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from discreet._load import from_bytes
from discreet.errors import CorruptRelease, InvalidInput, MostlyNoiseWarning
from discreet.privacy import NOT_PRIVATE
from discreet.serve.asking import Answering, answering

# What a name in an address may be, without any quoting.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

# Nanoseconds.
_SETTLED = 2_000_000_000

_STILL = "the release that was there before still answers"


@dataclass(frozen=True)
class _Identity:
    """What tells a file from another of its name, and from itself after it was written to."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> "_Identity":
        """Return that of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    @property
    def is_settled(self) -> bool:
        """Whether nobody has written to it for so long that the next write will show."""
        return time.time_ns() - self.changed > _SETTLED


@dataclass(frozen=True)
class Held:
    """A release, and the file that it came from.

    Attributes:
        path: of the file.
        answering: what answers.
        loaded: the identity of the file that it is in.
        seen: that of the file that was looked at last; None for none.
        problem: why they are not the same, in a sentence without a path; None if they are.
    """

    path: Path
    answering: Answering
    loaded: _Identity
    seen: _Identity | None
    problem: str | None = None


class Shelf(Mapping[str, Answering]):
    """Releases by the names that they are served under: the stems of their files.

    Reading it is safe while `look` runs in another thread: one release takes the place of another
    in one step.

    Args:
        files: at least one.
        encoder: of corpora: a name or a path; "none" for none; None for the one that a file names.
        allow_not_private: whether files that were made with a test source of noise are served.

    Raises:
        InvalidInput: a file is not there, has a name that no address can have, or that another file
            has, or cannot be asked by HTTP.
        CorruptRelease: a file is none of discreet, was cut short or altered.
    """

    def __init__(
        self,
        files: Sequence[Path],
        *,
        encoder: str | None = None,
        allow_not_private: bool = False,
    ) -> None:
        if not files:
            raise InvalidInput("Expected a file to serve.")
        self._encoder, self._allow_not_private = encoder, allow_not_private
        self._held: dict[str, Held] = {}
        for path in files:
            name = _name_of(path)
            if name in self._held:
                raise InvalidInput(
                    f"Expected files with different names, and {self._held[name].path} and {path} "
                    f"would both be served as {name}."
                )
            self._held[name] = self._first(path)

    def __getitem__(self, name: str) -> Answering:
        return self._held[name].answering

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong with files whose earlier release still answers, by name."""
        return {name: each.problem for name, each in self._held.items() if each.problem is not None}

    def look(self, *, say: Callable[[str], None] = lambda _: None) -> None:
        """Open what has changed since the last look. Blocks; one thread at a time.

        Args:
            say: told each change in a sentence.
        """
        for name, held in list(self._held.items()):
            after = self._looked_at(held)
            if after is held:
                continue
            self._held[name] = after
            if after.answering is not held.answering:
                say(f"{name}: a new file was opened, and answers from now on.")
            elif after.problem != held.problem:
                say(f"{name}: {after.problem or 'the file is as it was again.'}")

    def _looked_at(self, held: Held) -> Held:
        """Return what is held now: the same object if nothing has changed."""
        try:
            with _file(held.path) as file:
                found = _Identity.of(os.fstat(file.fileno()))
                if found == held.seen:
                    return held
                if found == held.loaded:
                    return replace(held, seen=found, problem=None)
                made, found = self._opened(file)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            return _kept(held, None, f"the file {'was removed' if gone else 'cannot be read'}")
        except Exception as error:  # noqa: BLE001 (whatever is in it, the old release answers)
            # Perhaps somebody is still writing: clocks of file systems are coarse.
            return _kept(held, found if found.is_settled else None, _why(error))
        return Held(held.path, made, found, found)

    def _first(self, path: Path) -> Held:
        try:
            with _file(path) as file:
                made, found = self._opened(file)
        except OSError as error:
            raise InvalidInput(
                f"Expected {path} to be a file that discreet released ({error.strerror})."
            ) from None
        except (CorruptRelease, InvalidInput) as error:
            raise type(error)(f"{path}: {error}") from None
        return Held(path, made, found, found)

    def _opened(self, file: BinaryIO) -> tuple[Answering, _Identity]:
        """Return what answers from a file, which nobody has written to while it was read."""
        before = _Identity.of(os.fstat(file.fileno()))
        release: Any = from_bytes(file.read())
        receipt = getattr(release, "receipt_", None) or release.receipt
        if not receipt.private and not self._allow_not_private:
            raise InvalidInput(
                f"Expected a file that may be given away, and this one is {NOT_PRIVATE}: its noise "
                f"came from {receipt.source} (--not-private serves it all the same)."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MostlyNoiseWarning)  # the card and the page say so
            return answering(release, encoder=self._encoder), before


def _file(path: Path) -> BinaryIO:
    """Open a file. A pipe would keep whoever opens it waiting, and a device would never end.

    Args:
        path: of the file.

    Raises:
        OSError: it cannot be read, or it is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    folder = "it is a folder; name the files in it"
    raise OSError(errno.EINVAL, folder if stat.S_ISDIR(mode) else "it is a pipe or a device")


def _why(error: Exception) -> str:
    """Return why a file was not opened, without a word of what is in it."""
    if isinstance(error, CorruptRelease):
        return "the file was cut short or damaged"
    if isinstance(error, InvalidInput):
        return "the new file is not one that is served here"
    return "the new file cannot be opened"


def _kept(held: Held, seen: _Identity | None, why: str) -> Held:
    """Return what is held, with what is wrong with its file."""
    problem = f"{why}; {_STILL}."
    if held.seen == seen and held.problem == problem:
        return held
    return replace(held, seen=seen, problem=problem)


def _name_of(path: Path) -> str:
    """Return the name that a file is served under."""
    if not os.path.lexists(path):
        raise InvalidInput(
            f"Expected {path} to be a file that discreet released, and it is not there."
        )
    if _NAME.fullmatch(path.stem) is None or set(path.stem) == {"."}:
        raise InvalidInput(
            f"Expected the name of {path} to be letters, digits, dots, dashes and underscores, at "
            "most 100 of them: it becomes part of an address."
        )
    return path.stem
