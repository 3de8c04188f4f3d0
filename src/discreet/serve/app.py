"""The application: what stands before the routes, for all of them.

Who may ask, how many at once, what browsers are told, what is counted and logged; and that whatever
goes wrong becomes one sentence.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.errors import InvalidInput
from discreet.serve.counted import LOG
from discreet.serve.handling import ROUTE, Handlers, Settings
from discreet.serve.limits import CLOSE
from discreet.serve.routes import ROUTES
from discreet.serve.shelf import Shelf
from discreet.serve.wire import JSON, Refused, as_json

# Names that a browser on the same machine has for it. Another name that leads here, such as that of
# a page that wants to read what only this machine may, is refused.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})

_SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")

# Files are looked at so often, in seconds.
_EVERY = 1.0

# A question waits for its turn for so many seconds.
_PATIENCE = 5.0

# Characters of a sentence.
_LONGEST = 300

_OPEN = frozenset(each.path for each in ROUTES if each.open)

_OF_ROUTES = {
    404: "Expected an address that GET /docs lists.",
    405: "Expected {allow} for this address, as GET /docs lists it.",
}


def application(shelf: Shelf, settings: Settings | None = None) -> ASGIApp:
    """Return the application that serves a shelf, for any ASGI server.

    Args:
        shelf: the releases.
        settings: who may ask, and how much.
    """
    return _Gate(Handlers(shelf, settings or Settings()))


class _Gate:
    """What stands before the routes.

    Args:
        handlers: what answers.
    """

    def __init__(self, handlers: Handlers) -> None:
        self._handlers, self._settings = handlers, handlers.settings
        self._router = handlers.router()
        self._router.lifespan_context = self._living
        self._turns = asyncio.Semaphore(self._settings.limits.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        began = time.perf_counter()
        response = _Watched(send, self._settings.limits.seconds)
        scope["app"] = self  # so that the router raises what it does not find
        try:
            self._check(Request(scope))
            await self._answer(scope, receive, response)
        except TimeoutError:  # nobody takes the answer: the server closes the connection
            response.status = 499
        except Exception as error:  # whatever it is, it becomes a sentence
            if response.status is not None:
                raise
            await _refusal(error)(scope, receive, response)
        self._note(scope, response.status or 499, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a question when it is its turn, before which its body is not read."""
        if scope["method"] != "POST":
            await self._router(scope, receive, send)
            return
        try:
            async with asyncio.timeout(min(_PATIENCE, self._settings.limits.seconds)):
                await self._turns.acquire()
        except TimeoutError:
            raise Refused(
                429,
                "Expected fewer requests at once; try again in a second.",
                {"retry-after": "1", **CLOSE},
            ) from None
        try:
            await self._router(scope, receive, send)
        finally:
            self._turns.release()

    def _check(self, request: Request) -> None:
        """Raise `Refused` unless this is one request, of somebody who may ask, under our name."""
        if "transfer-encoding" in request.headers and "content-length" in request.headers:
            # A proxy that believes the other one would take the rest of this for the next request.
            raise Refused(400, "Expected content-length or transfer-encoding, not both.", CLOSE)
        hosts, tokens = self._settings.hosts, self._settings.tokens
        if hosts is not None and _host_of(request) not in hosts:
            raise Refused(421, f"Expected a host of {', '.join(sorted(hosts))}.", CLOSE)
        if tokens is not None and request.scope["path"] not in _OPEN:
            tokens.check(request.headers.get("authorization"))

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request, and write a line without anything of what was asked."""
        route = scope.get(ROUTE, "other")
        self._handlers.counted.add(route, status, seconds)
        LOG.info("%s %s %d, %.1f ms", _method(scope), route, status, 1e3 * seconds)

    @contextlib.asynccontextmanager
    async def _living(self, _: object) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            self._handlers.pool.shutdown(wait=False, cancel_futures=True)

    async def _watch(self) -> None:
        """Look at the files from time to time, in a thread."""
        while True:
            await asyncio.sleep(_EVERY)
            await asyncio.to_thread(self._handlers.shelf.look, say=LOG.warning)


class _Watched:
    """Sends a response, with what browsers have to be told, and remembers its status.

    Args:
        send: where to.
        seconds: until somebody has to take each part of it.
    """

    def __init__(self, send: Send, seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *_SECURITY]
            if not any(name == _POLICY[0] for name, _ in headers):
                headers.append(_POLICY)
            message = {**message, "headers": headers}
        async with asyncio.timeout(self._seconds):
            await self._send(message)


def _refusal(error: Exception) -> Response:
    """Return what is said of an error: a sentence, and of a bug nothing but that it is one."""
    if isinstance(error, Refused):
        return _said(error.status, error.sentence, error.headers)
    if isinstance(error, InvalidInput):
        return _said(400, _sentence(error), {})
    if isinstance(error, HTTPException):
        allow = (error.headers or {}).get("Allow", "another method")
        said = _OF_ROUTES.get(error.status_code, "Expected another request.").format(allow=allow)
        return _said(error.status_code, said, {**(error.headers or {}), **CLOSE})
    if isinstance(error, MemoryError):
        return _said(413, "Expected fewer queries at once: there is not enough memory.", {})
    LOG.error("a bug, sorry: %s; the request got status 500", type(error).__name__)
    return _said(500, "A bug of the server, sorry: the request may have been right.", {})


def _said(status: int, sentence: str, headers: dict[str, str]) -> Response:
    return Response(as_json({"error": sentence}), status, headers, JSON)


def _sentence(error: InvalidInput) -> str:
    """Return what the library says, in short if it quotes a number of many digits."""
    said = str(error)
    if len(said) <= _LONGEST or error.argument is None:
        return said[:_LONGEST]
    return f"Expected {error.argument} to be {error.wanted}."[:_LONGEST]


def _host_of(request: Request) -> str:
    """Return the name by which the server is called, without a port."""
    host = request.headers.get("host", "").lower()
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _method(scope: Scope) -> str:
    """Return the method, if it is one: anything can stand there."""
    method: str = scope["method"]
    return method if method in {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} else "OTHER"
