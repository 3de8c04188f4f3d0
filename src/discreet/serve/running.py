"""The server as a process: a socket, uvicorn, and a log. Connections that dawdle are cut off."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import h11
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.errors import InvalidInput
from discreet.serve.app import LOOPBACK, application
from discreet.serve.counted import LOG
from discreet.serve.handling import Settings
from discreet.serve.limits import CLOSE
from discreet.serve.shelf import Shelf
from discreet.serve.wire import JSON, as_json

# Connections that are answered at one time, and those besides that are told to come back; and bytes
# of a request before its body.
_CONNECTIONS, _TOLD, _HEAD = 512, 64, 16_384


def run(
    shelf: Shelf,
    settings: Settings,
    *,
    host: str,
    port: int,
    is_open: bool,
    ready: Callable[[str], None],
) -> None:
    """Serve until the process is told to stop; requests that are being answered are answered.

    Args:
        shelf: the releases.
        settings: who may ask, and how much.
        host: the address to listen at.
        port: likewise; 0 for a free one.
        is_open: whether others than this machine may ask without a token.
        ready: told the address, when it is open.

    Raises:
        InvalidInput: the address is for others, and nobody said who may ask; or it cannot be
            listened at.
    """
    alone = is_loopback(host)
    if not alone and settings.tokens is None and not is_open:
        raise InvalidInput(
            f"Expected --token-file for --host {host}, which others can reach; or --open, if "
            "everybody who can may ask."
        )
    if alone and settings.tokens is None and not is_open:
        settings = replace(settings, hosts=LOOPBACK | {_written(host)})
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with _listening(host, port, family) as listening:
        config = _config(application(shelf, settings), settings)
        ready(f"http://{_written(host)}:{listening.getsockname()[1]}")
        # Questions are answered side by side, and threads of one would wait for those of others.
        with threadpool_limits(1, user_api="blas"):
            uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int, family: socket.AddressFamily) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        unknown = isinstance(error, socket.gaierror)
        why = "no such address" if unknown else os.strerror(error.errno or 0)
        raise InvalidInput(
            f"Expected an address that can be listened at, and {_written(host)}:{port} cannot "
            f"({why}); --port 0 takes a port that is free."
        ) from None


def _written(host: str) -> str:
    """Return an address as addresses of pages have it."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Args:
        host: a name or an address.
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_to(stream: Any) -> None:  # noqa: ANN401 (whatever can be written to)
    """Write the log of the server, one line a request, and what is wrong with connections.

    Args:
        stream: where to.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for logger, level in ((LOG, logging.INFO), (logging.getLogger("uvicorn"), logging.CRITICAL)):
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False


def _config(app: Any, settings: Settings) -> uvicorn.Config:  # noqa: ANN401
    seconds = settings.limits.seconds

    class Protocol(Guarded):
        allowed = seconds

    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # its lines have all of an address in them
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_HEAD,
        timeout_graceful_shutdown=max(int(seconds), 1),
    )


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse whatever is asked: an application for connections that are one too many."""
    said = as_json({"error": "Expected fewer connections at once; try again in a second."})
    await Response(said, 429, {"retry-after": "1", **CLOSE}, JSON)(scope, receive, send)


class Guarded(H11Protocol):
    """A connection whose requests have to arrive in time, and which answers in JSON.

    uvicorn waits for ever for the rest of a request's head, and for somebody to take an answer.
    """

    allowed: float = 30.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        if len(self.connections) > _CONNECTIONS + _TOLD:
            transport.abort()
        elif len(self.connections) > _CONNECTIONS:
            self.app = _too_many
        # Or the end of an answer waits some 40 ms for its beginning to be acknowledged.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come; a request that is there in whole is waited for no more."""
        if self._waiting is None and self._is_idle:
            self._wait()
        super().data_received(data)
        if not self._is_idle:
            self._stop_waiting()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that asks for nothing, also if its last answer was never taken."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.allowed, self.transport.abort)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (uvicorn's words)
        """Refuse what is no request of HTTP/1.1."""
        self._refuse(400, b"Bad Request", "Expected a request of HTTP/1.1.")

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.allowed, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        said = f"Expected the head of a request within {self.allowed:g} seconds."
        self._refuse(408, b"Request Timeout", said)

    def _refuse(self, status: int, reason: bytes, sentence: str) -> None:
        body = as_json({"error": sentence})
        if not self.transport.is_closing() and self.conn.our_state is not h11.SEND_BODY:
            self.transport.write(
                b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
                b"connection: close\r\n\r\n%s" % (status, reason, len(body), body)
            )
        self.transport.close()
        self.loop.call_later(self.allowed, self.transport.abort)
