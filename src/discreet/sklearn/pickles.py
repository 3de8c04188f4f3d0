"""A release as bytes: the same as in its file, so a pickle holds nothing that a file does not."""

from typing import Any

from discreet._warn import warn
from discreet.errors import NotPrivateWarning
from discreet.memory import Memory, container
from discreet.memory.file import MEMORY
from discreet.memory.layout import Layout
from discreet.privacy import NOT_PRIVATE
from discreet.regression import LeastSquares
from discreet.regression.file import LEAST_SQUARES
from discreet.sklearn.reading import Release


def packed(release: Release) -> bytes:
    """Return the file of a release."""
    if isinstance(release, Memory):
        return container.to_bytes(release.released, MEMORY)
    return container.to_bytes(release.released, LEAST_SQUARES)


def unpacked(data: bytes) -> Release:
    """Return the release in a file; warns if it was made with a test source of noise."""
    released: Any = container.from_bytes(data, MEMORY, LEAST_SQUARES)
    if not released.private:
        warn(
            f"This estimator is {NOT_PRIVATE}: its noise came from {released.source}.",
            NotPrivateWarning,
        )
    return Memory(released) if isinstance(released.layout, Layout) else LeastSquares(released)
