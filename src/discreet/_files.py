"""Files that are written whole, or not at all, into room that can be claimed beforehand.

And one safetensors file for whatever was released: tensors, public settings, checksum. No pickle.
What is in it is the business of whoever packs it. The checksum guards against damage and mix-ups,
not against somebody who wants to deceive: whoever can write the file can write a checksum.
"""

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from discreet._validate import warn
from discreet.errors import CorruptRelease, DiscreetError, NotPrivateWarning
from discreet.privacy import NOT_PRIVATE

_MOUNTS = Path("/proc/self/mountinfo")

# Errors of a system that cannot claim room for a file: it has to be believed that there is some.
_CANNOT_CLAIM = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV)

# So many formats are named where another was expected.
_NAMED = 2

# Bytes of a name that are kept in that of its part: file systems have names of 255 at most.
_LONGEST_NAME = 200


def is_mounted_alone(path: Path) -> bool:
    """Whether a file was mounted by itself, as `docker -v host.db:/x/own.db` does, links followed.

    No other file can take its name, and whatever a program keeps beside it is not shared with those
    who see the file elsewhere. Where there is no `/proc/self/mountinfo`, nothing is known: False.
    """
    try:
        mounts = _MOUNTS.read_bytes().split(b"\n")
    except OSError:
        return False
    # The fifth field of a line, if there is one.
    points = (b"".join(line.split(b" ", 5)[4:5]) for line in mounts)
    return not path.is_dir() and os.fsencode(path.resolve()) in map(_unescaped, points)


def _unescaped(field: bytes) -> bytes:
    """Return a path as it is: blanks and backslashes are octal numbers in a list of mounts."""
    return re.sub(rb"\\([0-3][0-7]{2})", lambda found: bytes([int(found[1], 8)]), field)


@contextmanager
def whole_file(path: Path, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Yield a file that takes its name when it is complete; if that fails, nothing is left of it.

    Then it is on the disk, and so is its name, as far as the system can promise that.

    Args:
        path: the name that it will have.
        replace: whether a file of that name may be replaced; `FileExistsError` if not.
    """
    try:
        part = Part(path, replace=replace)
        try:
            yield part.file
            part.complete()
            part.publish()
        finally:
            part.discard()
    except OSError as error:
        if error.errno is None:
            raise
        # With the name that was asked for, not one that nobody has seen.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


class Part:
    """What will be a file, in the same folder: hidden until it is complete, and named when it is.

    On Linux it has no name until then (O_TMPFILE): a process that is killed leaves nothing of it.
    Elsewhere it is `.NAME.1.part`. Once complete it is `NAME.1.part`, for a moment or, if it cannot
    be published, for good. Each takes a number that nobody has: none is ever overwritten.

    Raises `OSError` if a file cannot be written there, or could not take its name.

    Args:
        path: the name that it will have.
        replace: whether a file of that name may be replaced.
        folder: where it is, if not where it is to go; then it is for its owner's eyes.
    """

    def __init__(self, path: Path, *, replace: bool, folder: Path | None = None) -> None:
        if folder is None:
            _check_name(path)
        self.path = path
        self.file: IO[bytes]
        # Complete, and under this name.
        self.whole: Path | None = None
        self._replace = replace
        self._folder = path.parent if folder is None else folder
        self._mode = 0o666 if folder is None else 0o600
        self._hidden: Path | None = None
        # Such a file takes its name by way of /proc. Where it could not, another part has one.
        unnamed = hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").is_dir()
        self._open(unnamed=unnamed and folder is None)

    def _open(self, *, unnamed: bool) -> None:
        if unnamed:
            with contextlib.suppress(OSError):  # a file system that has no files without names
                opened = os.open(self._folder, os.O_TMPFILE | os.O_RDWR, self._mode)
                self.file = os.fdopen(opened, "w+b")
                return
        for name in self._names("."):
            with contextlib.suppress(FileExistsError):
                opened = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, self._mode)
                self.file, self._hidden = os.fdopen(opened, "w+b"), name
                return

    def _names(self, prefix: str = "") -> Iterator[Path]:
        name = os.fsdecode(os.fsencode(self.path.name)[:_LONGEST_NAME])
        return (self._folder / f"{prefix}{name}.{number}.part" for number in itertools.count(1))

    def claim(self, size: int) -> None:
        """Take so many bytes of the disk, or raise `OSError`.

        No other file gets them, if the file system keeps such promises; else they are there now.
        """
        try:
            os.posix_fallocate(self.file.fileno(), 0, size)
        except AttributeError:  # a system without it
            self._check_room(size)
        except OSError as error:
            if error.errno not in _CANNOT_CLAIM:
                raise
            self._check_room(size)

    def _check_room(self, size: int) -> None:
        if shutil.disk_usage(self._folder).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(self, data: bytes) -> None:
        """Write all of it, from the beginning; what was claimed and is not needed is given back."""
        self.file.seek(0)
        self.file.write(data)
        self.file.truncate()
        self.complete()

    def complete(self) -> None:
        """Put what was written on the disk, under a name that says what it is."""
        if self.whole is not None:
            return
        self.file.flush()
        os.fsync(self.file.fileno())
        for name in self._names():
            with contextlib.suppress(FileExistsError):
                if self._hidden is None:
                    _link(self.file.fileno(), name)
                else:
                    _take_name(self._hidden, name)
                self.whole, self._hidden = name, None
                return

    def publish(self) -> None:
        """Give it its name; `FileExistsError` if somebody was faster and may not be replaced."""
        if self.whole is None:
            raise FileNotFoundError(errno.ENOENT, "not complete", os.fspath(self.path))
        if self._replace:
            self.whole.replace(self.path)
        else:
            _take_name(self.whole, self.path)
        self.whole = None
        self.sync_folder()

    def is_at(self, path: Path) -> bool:
        """Whether the file of this name is this one."""
        try:
            return os.path.samestat(os.fstat(self.file.fileno()), path.lstat())
        except OSError:
            return False

    def sync_folder(self) -> None:
        """Put names on the disk, where the system can."""
        with contextlib.suppress(OSError):
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def discard(self) -> None:
        """Leave nothing but what was published."""
        for name in (self.whole, self._hidden):
            if name is not None:
                with contextlib.suppress(OSError):  # its folder is gone, or not ours any more
                    name.unlink()
        self.close()

    def close(self) -> None:
        """Leave it as it is."""
        with contextlib.suppress(OSError):  # of what could not be written anyway
            self.file.close()


def _check_name(path: Path) -> None:
    """Raise `OSError` if no other file may take this name, before anything is done."""
    if path.is_symlink() or not path.exists():  # a link gives way, whatever it leads to
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if is_mounted_alone(path):
        raise OSError(
            errno.EBUSY, "the file was mounted by itself: mount its folder", os.fspath(path)
        )
    # Nothing but a folder is ever removed by this; and it fails in another way where a file may not
    # be removed, such as somebody else's in a folder that everybody may write to.
    with contextlib.suppress(NotADirectoryError):
        os.rmdir(path)


def _link(file: int, name: Path) -> None:
    """Give a name to a file that has none."""
    folder = os.open(name.parent, os.O_PATH)  # with one, Python follows links, which this is
    try:
        os.link(f"/proc/self/fd/{file}", name.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _take_name(old: Path, new: Path) -> None:
    """Rename a file; `FileExistsError` if there is one of that name."""
    try:
        os.link(old, new)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        new.open("xb").close()
        try:
            old.replace(new)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    else:
        old.unlink()


FORMAT_VERSION = "1"

BLANK = "0" * 64
# What makes something of a file's settings and tensors.
Opened = TypeVar("Opened", bound="_Opened")
Restorer = Callable[[Any, Mapping[str, NDArray[Any]]], Opened]

_CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')


class _Sourced(Protocol):
    """A receipt, of which only this matters here."""

    @property
    def source(self) -> str: ...


class _Opened(Protocol):
    """What a file holds: something that knows whether it is private, and what it cost."""

    @property
    def private(self) -> bool: ...

    @property
    def receipt(self) -> _Sourced: ...


def pack(
    tensors: Mapping[str, NDArray[Any]],
    *,
    name: str,
    settings: Mapping[str, Any],
    card: Mapping[str, object] | None,
) -> bytes:
    """Return a file: tensors, settings and, if there is one, a card, with a checksum.

    Args:
        tensors: by name.
        name: of the format.
        settings: public, as plain JSON types.
        card: the facts of a card, likewise; None for a format that has none.
    """
    metadata = {
        "format": name,
        "format_version": FORMAT_VERSION,
        "settings": _json(settings),
        **({} if card is None else {"card": _json(card)}),
        "checksum": BLANK,
    }
    # Of an array in another order it would write the memory, not the numbers.
    ordered = {name: np.ascontiguousarray(each) for name, each in tensors.items()}
    blank = safetensors.save(ordered, metadata=metadata)
    found = _CHECKSUM.findall(blank)
    if found != [BLANK.encode()]:
        raise DiscreetError("Expected one place for the checksum in the file's header.")
    return blank.replace(b'"checksum":"' + found[0], b'"checksum":"' + digest(blank), 1)


def unpack(data: bytes, known: Mapping[str, Restorer[Opened]]) -> Opened:
    """Return what a file holds, made by the restorer of the format that it says it is.

    Raises `CorruptRelease` if it is of none of them, or was altered.
    """
    if data[:1] == b"\x80" and data[8:9] != b"{":  # as pickles begin, and no file of safetensors
        raise CorruptRelease(
            "Expected a file that save wrote, and this one looks like a pickle, which would run "
            "the code in it: it is not opened. Let whoever has the model write model.save(path)."
        )
    match = _CHECKSUM.search(data)
    if match is None:
        raise CorruptRelease("Expected a file written by discreet, and this one has no checksum.")
    blank = data[: match.start(1)] + BLANK.encode() + data[match.end(1) :]
    if digest(blank) != match.group(1):
        raise CorruptRelease("Expected the checksum to match: the file was cut short or altered.")
    try:
        tensors = safetensors.load(data)
        length = int.from_bytes(data[:8], "little")
        metadata = _parsed(data[8 : 8 + length])["__metadata__"]
        if metadata["format"] not in known or metadata["format_version"] != FORMAT_VERSION:
            kind = f"{metadata['format']} {metadata['format_version']}"
            names = " or ".join(f"{name} {FORMAT_VERSION}" for name in known)
            wanted = names if len(known) <= _NAMED else "a release that this version knows"
            raise CorruptRelease(f"Expected {wanted}, got {kind}.")
        return known[metadata["format"]](_parsed(metadata["settings"]), tensors)
    except CorruptRelease:
        raise
    except (
        SafetensorError,
        DiscreetError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        raise CorruptRelease("Expected a release, but the file's contents make no sense.") from None


def read(path: str | os.PathLike[str], opener: Callable[[bytes], Opened]) -> Opened:
    """Return what a file holds, in the opener's words, with its name in every complaint.

    Warns with `NotPrivateWarning` if its noise came from a test source.
    """
    try:
        opened = opener(Path(path).read_bytes())
    except CorruptRelease as error:
        raise CorruptRelease(f"{os.fspath(path)}: {error}") from None
    if not opened.private:
        warn(
            f"{os.fspath(path)} is {NOT_PRIVATE}: its noise came from {opened.receipt.source}.",
            NotPrivateWarning,
        )
    return opened


def digest(data: bytes) -> bytes:
    """Return the checksum of a file that has `BLANK` in its place."""
    return hashlib.sha256(data).hexdigest().encode()


def _parsed(text: str | bytes) -> Any:  # noqa: ANN401 (whatever JSON holds)
    """Return what JSON says, if every program that reads it finds the same in it.

    Of two values under one name some take the first and some the last, and NaN is not of JSON.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise CorruptRelease("Expected every name once.")
        return found

    def never(constant: str) -> None:
        raise CorruptRelease(f"Expected numbers, and {constant} is none.")

    return json.loads(text, object_pairs_hook=once, parse_constant=never)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
