"""Files that are written whole, or not at all."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_MOUNTS = Path("/proc/self/mountinfo")


def is_mounted_alone(path: Path) -> bool:
    """Whether a file was mounted by itself, as `docker -v host.db:/x/own.db` does, links followed.

    No other file can take its name, and whatever a program keeps beside it is not shared with those
    who see the file elsewhere. Where there is no `/proc/self/mountinfo`, nothing is known: False.
    """
    try:
        mounts = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    named = os.fsencode(path.resolve())
    return not path.is_dir() and any(_unescaped(each.split()[4]) == named for each in mounts)


def _unescaped(field: bytes) -> bytes:
    """Return a path as it is: blanks and backslashes are octal numbers in a list of mounts."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), field)


@contextmanager
def whole_file(path: Path, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Yield a file that takes its name when it is complete; if that fails, nothing is left of it.

    Until then it has a name of its own beside it, so that two writers do not meet.

    Args:
        path: the name that it will have.
        replace: whether a file of that name may be replaced; `FileExistsError` if not.
    """
    part = path.with_name(f".discreet-{os.getpid()}-{threading.get_ident()}.part")
    with part.open("xb") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _publish(part, path, replace=replace)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _publish(part: Path, path: Path, *, replace: bool) -> None:
    if replace:
        part.replace(path)
        return
    try:
        os.link(part, path)  # fails if somebody was faster
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        part.replace(path)
    else:
        part.unlink()
