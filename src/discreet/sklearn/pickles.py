"""A release as bytes: the same as in its file, so a pickle holds nothing that a file does not."""

from discreet._warn import warn
from discreet.errors import CorruptRelease, NotPrivateWarning
from discreet.loading import Readable, from_bytes, to_bytes
from discreet.privacy import NOT_PRIVATE


def packed(release: Readable) -> bytes:
    """Return the file of a release."""
    return to_bytes(release)


def unpacked(data: bytes) -> Readable:
    """Return the release in a file; warns if it was made with a test source of noise."""
    release = from_bytes(data)
    if not isinstance(release, Readable):
        raise CorruptRelease("Expected the release of an estimator, got a structure.")
    if not release.private:
        warn(
            f"This estimator is {NOT_PRIVATE}: its noise came from {release.receipt.source}.",
            NotPrivateWarning,
        )
    return release
