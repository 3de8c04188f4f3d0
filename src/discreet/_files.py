"""Files that are written whole, or not at all."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes its name when it is complete; if that fails, nothing is left of it.

    Until then it has a name of its own beside it, so that two writers do not meet.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except FileExistsError:  # somebody else's
        raise
    except BaseException:
        part.unlink(missing_ok=True)
        raise
