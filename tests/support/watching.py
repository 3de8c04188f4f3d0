"""What lies in a folder while something runs, however short."""

import os
import pathlib
import threading
import time
from contextlib import suppress


class Watch:
    """Reads every file below a folder, again and again, while a block runs."""

    def __init__(self, folder):
        self.folder, self.seen, self.files = folder, b"", 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _look(self):
        found = set()
        while not self._stop.is_set():
            for folder, _, names in os.walk(self.folder):  # which minds no folder that is gone
                for name in names:
                    with suppress(OSError):  # gone
                        found.add(pathlib.Path(folder, name).read_bytes())
            time.sleep(0.002)
        self.seen, self.files = b"\n".join(found), len(found)
