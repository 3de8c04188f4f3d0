"""How much one request may ask for, and the reading of bodies within that."""

import asyncio
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from discreet import _validate
from discreet.serve.wire import Refused

# Whoever sends more than is read has to be cut off, or it would be taken for the next request.
CLOSE = {"connection": "close"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a request may ask for.

    Attributes:
        body: bytes of a body, whether its length is said beforehand or not.
        queries: how many are answered at once; also rows and questions.
        seconds: until a request has to have arrived, and its answer to have been taken.
        at_once: questions that are read or answered at one time; each holds at most a body. Others
            wait for their turn, a few seconds at the most.
        text: characters of a question.
    """

    body: int = 4_194_304
    queries: int = 1_024
    seconds: float = 30.0
    at_once: int = 64
    text: int = 10_000

    def __post_init__(self) -> None:
        names = {"body": "max_body", "queries": "max_queries", "at_once": "at_once", "text": "text"}
        for name, said in names.items():
            _validate.whole(said, getattr(self, name), at_least=1)
        _validate.real("timeout", self.seconds, above=0)

    def check_count(self, name: str, count: int) -> int:
        """Return how many queries there are, if that is not none and not too many.

        Args:
            name: of the field.
            count: how many there are.

        Raises:
            Refused: with status 413 if there are too many.
        """
        if count < 1:
            raise Refused(400, f"Expected {name} not to be empty.")
        if count > self.queries:
            raise Refused(
                413, f"Expected at most {self.queries:,} {name} in one request, got {count:,}."
            )
        return count


async def body_of(request: Request, limits: Limits) -> bytes:
    """Return the body of a request, once all of it is there.

    Args:
        request: whose body nobody has read.
        limits: on its size, and on the time that it takes.

    Raises:
        Refused: 413 if it is too long, 408 if it takes too long.
    """
    too_long = Refused(413, f"Expected a body of at most {limits.body:,} bytes.", CLOSE)
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "Expected content-length to be a whole number.", CLOSE)
    if len(length) > 18 or int(length) > limits.body:
        raise too_long
    found = bytearray()
    try:
        async with asyncio.timeout(limits.seconds):
            async for piece in request.stream():
                found += piece
                if len(found) > limits.body:
                    raise too_long
    except TimeoutError:
        raise Refused(
            408, f"Expected the whole body within {limits.seconds:g} seconds.", CLOSE
        ) from None
    except ClientDisconnect:
        raise Refused(400, "Expected the whole body before the end.", CLOSE) from None
    return bytes(found)
