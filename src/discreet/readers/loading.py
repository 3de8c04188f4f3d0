"""Opening a file, whatever was released in it. A closed list of what there is."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from discreet._packing import Restorer
from discreet.privacy import Guarantee
from discreet.readers.attention import bundle as several
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.card import MEMORY
from discreet.readers.attention.mechanism import Layout
from discreet.readers.attention.memory import Memory
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.card import LEAST_SQUARES
from discreet.readers.least_squares.mechanism import Moments
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.card import SOFTMAX_REGRESSION
from discreet.readers.softmax.layout import Rounds
from discreet.sums import container
from discreet.sums.container import Format
from discreet.sums.layout import RowLayout
from discreet.sums.release import Released

if TYPE_CHECKING:
    from discreet.paper.structure import Structure

# Whatever answers from sums of outer products, and whatever a file can hold.
Readable = Memory | Memories | LeastSquares | SoftmaxRegression
Release: TypeAlias = "Readable | Structure"


@dataclass(frozen=True)
class _Kind:
    """One kind of release.

    Attributes:
        layout: that it has.
        form: of its files.
        reader: what answers from it.
    """

    layout: type[RowLayout]
    form: Format[Any]
    reader: type[Any]


_KINDS = (
    _Kind(Layout, MEMORY, Memory),
    _Kind(Moments, LEAST_SQUARES, LeastSquares),
    _Kind(Rounds, SOFTMAX_REGRESSION, SoftmaxRegression),
)


def load(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 (what it is, the file says)
    """Return what is in a file: a memory, a regression, a classifier, or a structure of the paper.

    That is a `Memory`, `Memories`, a `LeastSquares`, a `SoftmaxRegression` or a class of
    `discreet.paper`. (`discreet.memory.load`, `discreet.regression.load`, `discreet.rounds.load`
    and `discreet.paper.load` open one kind, and say so to a type checker.) Raises `CorruptRelease`
    if the file is none, was cut short or altered; warns with `NotPrivateWarning` if it was made
    with a test source of noise.
    """
    return container.read(path, from_bytes)


def to_bytes(release: Release) -> bytes:
    """Return the file of a release."""
    if isinstance(release, Memories):
        return several.to_bytes(release)
    if isinstance(release, Readable):
        return container.to_bytes(release.released, _kind(release.released).form)
    from discreet.paper import file

    return file.to_bytes(release)


def from_bytes(data: bytes) -> Release:
    """Return the release in a file's bytes, or raise `CorruptRelease`."""
    return container.unpack(data, _RESTORERS)


def whole_guarantee(release: Release) -> Guarantee:
    """Return what is promised to whoever has the whole file: more than an entry of answers."""
    return release.guarantee if isinstance(release, Readable) else release.whole_guarantee


def _kind(released: Released[Any]) -> _Kind:
    [kind] = [kind for kind in _KINDS if type(released.layout) is kind.layout]
    return kind


def _structure(settings: Any, tensors: Mapping[str, NDArray[Any]]) -> "Structure":  # noqa: ANN401
    """Return a structure of the paper."""
    from discreet.paper import file  # here, because it takes long to load and few files need it

    return file.restored(settings, tensors)


def _restorer(kind: _Kind) -> Restorer[Release]:
    released = container.restorer(kind.form)
    return lambda settings, tensors: kind.reader(released(settings, tensors))


_RESTORERS: dict[str, Restorer[Release]] = {
    **{kind.form.name: _restorer(kind) for kind in _KINDS},
    several.FORMAT: several.restored,
    "discreet-structure": _structure,
}
