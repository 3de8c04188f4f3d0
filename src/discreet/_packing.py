"""One safetensors file for whatever was released: tensors, public settings, checksum. No pickle.

What is in it is the business of whoever packs it. The checksum guards against damage and mix-ups,
not against somebody who wants to deceive: whoever can write the file can write a checksum.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from discreet._validate import warn
from discreet.errors import CorruptRelease, DiscreetError, NotPrivateWarning
from discreet.privacy import NOT_PRIVATE

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
    match = _CHECKSUM.search(data)
    if match is None:
        raise CorruptRelease("Expected a file written by discreet, and this one has no checksum.")
    blank = data[: match.start(1)] + BLANK.encode() + data[match.end(1) :]
    if digest(blank) != match.group(1):
        raise CorruptRelease("Expected the checksum to match: the file was cut short or altered.")
    try:
        tensors = safetensors.load(data)
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        if metadata["format"] not in known or metadata["format_version"] != FORMAT_VERSION:
            kind = f"{metadata['format']} {metadata['format_version']}"
            wanted = " or ".join(f"{name} {FORMAT_VERSION}" for name in known)
            raise CorruptRelease(f"Expected {wanted}, got {kind}.")
        return known[metadata["format"]](json.loads(metadata["settings"]), tensors)
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


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
