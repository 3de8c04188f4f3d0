"""What stands between a client and its server, and loses the connection at a chosen moment."""

import contextlib
import pathlib
import select
import socket
import tempfile
import threading

NAME = ".s.PGSQL.5432"


class Relay:
    """Passes on what is said, until the n-th message that has some words in it.

    Then the connection is cut: before the server hears them, or after it has answered and before
    the client hears that. All that come later are passed on, unless `gone`.
    """

    def __init__(self, folder, words, *, number=1, heard=False, gone=False):
        self.target = str(pathlib.Path(folder) / NAME)
        self.words, self.number, self.heard, self.gone = words, number, heard, gone
        self.cut = False
        self._folder = tempfile.TemporaryDirectory(prefix="relay-", dir="/tmp")
        self.folder = self._folder.name
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(pathlib.Path(self.folder) / NAME))
        self._door.listen()

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._folder.cleanup()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            if self.cut and self.gone:
                return
            server.connect(self.target)
            last = False
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data or (last and source is server):
                        return  # the answer, which nobody hears
                    if source is client and self._is_the_one(data):
                        self.cut = last = True
                        if not self.heard:
                            return
                    (server if source is client else client).sendall(data)

    def _is_the_one(self, data):
        self.number -= self.words in data
        return not self.cut and self.number == 0
