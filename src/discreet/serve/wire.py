"""What comes and goes over the wire: strict JSON in, numbers out, and why a request is refused.

A refusal is one sentence that names what was wrong in the request. It has nothing in it that the
caller did not send or could not know: no path, no line of a file, no traceback.
"""

import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Floats

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"

# Lists within lists: no release has more axes of heads and batches than this.
_DEEPEST = 8


class Refused(Exception):  # noqa: N818 (the name says what happened)
    """A request that gets no answer.

    Args:
        status: of HTTP, from 400 to 499.
        sentence: what was wrong, for whoever sent it.
        headers: of the response, besides.
    """

    def __init__(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})


def parsed(data: bytes) -> dict[str, Any]:
    """Return the object that a body holds, if every program that reads it finds the same in it.

    Args:
        data: the body.

    Raises:
        Refused: it is no JSON of UTF-8; a name is there twice; a number is none (NaN, Infinity); it
            is nested too deeply; or it is no object.
    """
    try:
        found = json.loads(
            data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant
        )
    except UnicodeDecodeError:
        raise Refused(400, "Expected the body to be text in UTF-8.") from None
    except RecursionError:
        raise Refused(400, "Expected JSON that is not nested so deeply.") from None
    except ValueError:
        raise Refused(400, "Expected the body to be JSON.") from None
    if not isinstance(found, dict):
        raise Refused(400, 'Expected a JSON object, such as {"queries": [[0.5, 0.5]]}.')
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused(400, "Expected every name of a JSON object once.")
    return found


def _no_constant(_: str) -> NoReturn:
    raise Refused(400, "Expected finite numbers: NaN and Infinity are not of JSON.")


def numbers(name: str, given: object) -> Floats:
    """Return lists of lists of numbers as an array: all of one length, and nothing but numbers.

    Args:
        name: of the field, for the sentence.
        given: as JSON has it.

    Raises:
        Refused: it is anything else.
    """
    shape: list[int] = []
    level: list[Any] = [given]
    while level and isinstance(level[0], list):
        lengths = {len(each) if isinstance(each, list) else -1 for each in level}
        if len(lengths) != 1 or len(shape) == _DEEPEST:
            break
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
    if not shape or not set(map(type, level)) <= {int, float}:
        raise Refused(400, f"Expected {name} to be a list of lists of numbers, all of one length.")
    try:
        flat = np.array(level, dtype=np.float64)
    except OverflowError:
        flat = np.array([math.inf])
    if not np.all(np.isfinite(flat)):
        raise Refused(400, f"Expected {name} to be numbers within the range of float64.")
    return flat.reshape(shape)


def flag(name: str, given: object) -> bool:
    """Return what is true or false.

    Args:
        name: of the field.
        given: as JSON has it.
    """
    if not isinstance(given, bool):
        raise Refused(400, f"Expected {name} to be true or false.")
    return given


def text(name: str, given: object, *, longest: int) -> str:
    """Return a text that can be written down: Unicode, not blank, and not endless.

    Args:
        name: of the field.
        given: as JSON has it.
        longest: so many characters, at the most.
    """
    if not isinstance(given, str) or not given.strip() or len(given) > longest:
        raise Refused(400, f"Expected {name} to be a text of 1 to {longest:,} characters.")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise Refused(400, f"Expected {name} to be Unicode without halves of characters.") from None
    return given


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Return JSON: arrays as lists, and null for a number that is none.

    Args:
        facts: arrays, and whatever JSON knows.
    """
    plain = {
        name: each.tolist() if isinstance(each, np.ndarray) else each
        for name, each in facts.items()
    }
    try:
        return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(_finite(plain), allow_nan=False, separators=(",", ":")).encode()


def _finite(value: Any) -> Any:  # noqa: ANN401 (whatever JSON holds)
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def single(queries: Floats) -> NDArray[Any]:
    """Return queries in float32, in which answers take half the time; huge ones as they are.

    Args:
        queries: finite.
    """
    fits = not queries.size or float(np.abs(queries).max()) < 1e30
    return queries.astype(np.float32) if fits else queries
