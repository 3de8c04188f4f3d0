"""A release as bytes: the same as in its file, so a pickle holds nothing that a file does not."""

from dataclasses import replace
from typing import Any

from discreet._warn import warn
from discreet.errors import CorruptRelease, NotPrivateWarning
from discreet.privacy import NOT_PRIVATE
from discreet.readers.attention.bundle import Memories
from discreet.readers.registry import READABLE, Readable, from_bytes, to_bytes


def packed(release: Readable) -> bytes:
    """Return the file of a release."""
    return to_bytes(release)


def unpacked(data: bytes, *, leaks: tuple[str, ...] = ()) -> Readable:
    """Return the release in a file; warns if it was made with a test source of noise.

    Args:
        data: the file.
        leaks: what was taken from the rows, as the estimator knows it.
    """
    release = from_bytes(data)
    if not isinstance(release, READABLE):
        raise CorruptRelease("Expected the release of an estimator, got a structure.")
    if not release.private:
        warn(
            f"This estimator is {NOT_PRIVATE}: its noise came from {release.receipt.source}.",
            NotPrivateWarning,
        )
    return release if set(leaks) <= set(release.receipt.leaks) else _with(release, leaks)


def _with(release: Readable, leaks: tuple[str, ...]) -> Readable:
    """Return a release that says what was taken: in pickles of before, the estimator did alone."""
    if isinstance(release, Memories):
        raise CorruptRelease("Expected the release of an estimator, got a model's context.")
    released = release.released
    both = tuple(dict.fromkeys([*released.receipt.leaks, *leaks]))
    receipt = replace(released.receipt, leaks=both)
    guarantee = replace(released.guarantee, scope=receipt.covering(receipt.scope))
    reader: type[Any] = type(release)
    stated: Readable = reader(replace(released, receipt=receipt, guarantee=guarantee))
    return stated
