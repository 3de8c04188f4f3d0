"""What lies in a folder while something runs, however short; and waiting for what will happen."""

import os
import pathlib
import threading
import time
from contextlib import suppress


class Watch:
    """Reads every file below a folder, again and again, while a block runs."""

    def __init__(self, folder):
        self.folder = folder
        self._found = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self.look()

    @property
    def seen(self):
        """All that was found so far."""
        return b"\n".join(self._found.copy())

    @property
    def files(self):
        """How many different ones."""
        return len(self._found)

    def look(self):
        """Read what is there now."""
        for folder, _, names in os.walk(self.folder):  # which minds no folder that is gone
            for name in names:
                with suppress(OSError):  # gone
                    self._found.add(pathlib.Path(folder, name).read_bytes())

    def _keep_looking(self):
        while not self._stop.wait(0.002):
            self.look()


def has_open(pid, name):
    """Whether a process reads a file with this in its path, or has it in its memory."""
    with suppress(OSError):  # the process is gone
        if name in pathlib.Path(f"/proc/{pid}/maps").read_text():
            return True
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed
                if name in os.readlink(link):
                    return True
    return False


def eventually(condition, *, seconds=120):
    """Whether a condition comes true, on a busy machine, too."""
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return met


def parquet_opens(monkeypatch):
    """Return a list that names every Parquet file that is opened from now on, in order."""
    from pyarrow import parquet

    opens = []

    class Counting(parquet.ParquetFile):
        def __init__(self, source, *args, **options):
            opens.append(str(source))
            super().__init__(source, *args, **options)

    monkeypatch.setattr(parquet, "ParquetFile", Counting)
    return opens
