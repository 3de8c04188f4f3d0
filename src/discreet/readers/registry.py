"""The readers that there are, and the files of all of them. A closed list.

A new reader is a folder beside this file, and a line in `MECHANISMS`.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from discreet import _validate
from discreet._files import Restorer, read, unpack
from discreet._typing import Array
from discreet.privacy import Guarantee
from discreet.readers.attention import bundle
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.discovery.mechanism import Discovered
from discreet.readers.discovery.mechanism import restored as discovery_restored
from discreet.readers.distances.mechanism import DISTANCES
from discreet.readers.glm.mechanism import GLM
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.readers.table.mechanism import TABLE
from discreet.sums import container
from discreet.sums.mechanism import Mechanism
from discreet.sums.release import Release

if TYPE_CHECKING:
    from discreet.paper.structure import Structure

MECHANISMS: tuple[Mechanism[Any, Any, Any], ...] = (
    ATTENTION,
    LEAST_SQUARES,
    SOFTMAX,
    DISTANCES,
    GLM,
    TABLE,
)

# Whatever answers from sums, and whatever a file can hold.
Readable = Release[Any] | Memories
READABLE = (Release, Memories)
AnyFile: TypeAlias = "Readable | Structure"


def mechanism_named(name: object) -> Mechanism[Any, Any, Any]:
    """Return the mechanism of that name, or raise `InvalidInput`.

    Args:
        name: of a reader, such as "attention".
    """
    for each in MECHANISMS:
        if each.name == name:
            return each
    return _validate.reject_argument("reader", name, f"one of {[each.name for each in MECHANISMS]}")


def load(
    path: str | os.PathLike[str],
    *,
    reference: Array = None,
    more: Mapping[str, Restorer[Any]] | None = None,
) -> Any:  # noqa: ANN401 (what it is, the file says)
    """Return what is in a file, whatever was released in it.

    That is a `Memory`, `Memories`, a `LeastSquares`, a `SoftmaxRegression`, `Distances` or a
    class of `discreet.paper`. (`Memory.load` and its like open one kind, and say so to a type
    checker.)

    Args:
        path: of the file.
        reference: of a memory or a bundle of them: public points to read near in place of those in
            the file (`Memory.with_reference`); for a bundle also a list with one array for each.
            None for those in the file.
        more: kinds of files that rooms further down know of, and what restores them.

    Raises:
        CorruptRelease: the file is none, was cut short or altered.
        InvalidInput: the points are not as wide as keys are, or no memory is in the file.

    Warns with `NotPrivateWarning` if it was made with a test source of noise.
    """
    release = read(path, lambda data: unpack(data, {**_restorers(), **(more or {})}))
    if reference is None:
        return release
    if not isinstance(release, (Memory, Memories)):
        _validate.reject_argument(
            "reference", "...", "left out: only memories are read near points"
        )
    return release.with_reference(reference)


def to_bytes(release: AnyFile) -> bytes:
    """Return the file of a release.

    Args:
        release: of any kind.
    """
    if isinstance(release, Memories):
        return bundle.to_bytes(release)
    if isinstance(release, Release):
        return container.to_bytes(release)
    from discreet.paper import file

    return file.to_bytes(release)


def from_bytes(data: bytes, *, more: Mapping[str, Restorer[Any]] | None = None) -> Any:  # noqa: ANN401
    """Return the release in a file's bytes, or raise `CorruptRelease`. Warns of nothing.

    Args:
        data: the file.
        more: as for `load`.
    """
    return unpack(data, {**_restorers(), **(more or {})})


def whole_guarantee(release: AnyFile) -> Guarantee:
    """Return the guarantee of the whole file, and not only of one entry of its answers.

    Args:
        release: of any kind.
    """
    return release.guarantee if isinstance(release, READABLE) else release.whole_guarantee


def _restorers() -> dict[str, Restorer[AnyFile]]:
    return {
        **{each.answers.kind: container.restorer(each.answers) for each in MECHANISMS},
        bundle.FORMAT: bundle.restored,
        Discovered.kind: discovery_restored,
        "discreet-structure": _structure,
    }


def _structure(settings: Any, tensors: Mapping[str, NDArray[Any]]) -> "Structure":  # noqa: ANN401
    """Return a structure of the paper."""
    from discreet.paper import file  # here, because it takes long to load and few files need it

    return file.restored(settings, tensors)
