"""`discreet.load`: whatever was released into a file, as the object that it was."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.readers import registry

if TYPE_CHECKING:
    from discreet.text import Corpus


def load(path: str | os.PathLike[str], *, reference: Array = None) -> Any:  # noqa: ANN401 (what it is, the file says)
    """Return what is in a file, whatever was released in it.

    That is a `Memory`, `Memories`, a `LeastSquares`, a `SoftmaxRegression`, `Distances`, a
    `Corpus`, the names that `discover` found, a fitted estimator of `discreet.sklearn`, or a class
    of `discreet.paper`. (`Memory.load` and its like open one kind, and say so to a type checker.)

    Args:
        path: of the file.
        reference: of a memory or a bundle of them: public points to read near in place of those in
            the file (`Memory.with_reference`); for a bundle also a list with one array for each.
            None for those in the file.

    Raises:
        CorruptRelease: the file is none, was cut short or altered.
        InvalidInput: the points are not as wide as keys are, or no memory is in the file; or it is
            the file of an estimator, and scikit-learn is not installed.

    Warns with `NotPrivateWarning` if it was made with a test source of noise.
    """
    return _whole(open_release(path, reference=reference))


def from_bytes(data: bytes) -> Any:  # noqa: ANN401
    """Return what `load` does, of the bytes of a file. Warns of nothing, and names no file.

    Args:
        data: the whole file.

    Raises:
        CorruptRelease: it is none, was cut short or altered.
        InvalidInput: as for `load`.
    """
    return _whole(registry.from_bytes(data, more={"discreet-corpus": _corpus}))


def _whole(release: Any) -> Any:  # noqa: ANN401
    """Return a release, or the estimator that it belongs to."""
    if getattr(getattr(release, "released", None), "estimator", None) is None:
        return release
    try:
        from discreet.sklearn.file import restored
    except ImportError:
        raise InvalidInput(
            "Expected scikit-learn, which this estimator is for: pip install 'discreet[sklearn]'. "
            f"{type(release).__name__}.load opens the same file without it, and takes keys."
        ) from None
    return restored(release)


def open_release(path: str | os.PathLike[str], *, reference: Array = None) -> Any:  # noqa: ANN401
    """Return what `load` does, but for estimators: what answers in each of them.

    Args:
        path: of the file.
        reference: as for `load`.
    """
    return registry.load(path, reference=reference, more={"discreet-corpus": _corpus})


def _corpus(settings: Any, tensors: Mapping[str, NDArray[Any]]) -> "Corpus":  # noqa: ANN401
    """Return a corpus."""
    from discreet.text import file  # here, because few files need it

    return file.restored(settings, tensors)
