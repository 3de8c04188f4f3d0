"""Indices of FAISS, whose columns the caller gives: vectors as they are kept, list by list.

FAISS ends the whole process where it is asked to reconstruct what it cannot, and gives whatever is
in memory for ids that are not there (`reconstruct_n` of an inverted file). So it is only asked what
the kind of index is known to answer.
"""

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array, Integers
from discreet.errors import InvalidInput
from discreet.tables.columns import (
    Chunk,
    Columns,
    Form,
    Forms,
    InMemory,
    Part,
    listed,
    sentences,
)
from discreet.tables.stores import cells
from discreet.tables.stores.vectors import Vectors

_VECTORS = "vectors"

# What keeps vectors as they are; and what keeps codes, by a table that was trained on some vectors.
_AS_THEY_ARE = {
    "IndexFlat",
    "IndexFlatIP",
    "IndexFlatL2",
    "IndexHNSWFlat",
    "IndexIVFFlat",
}
_AS_CODES = {
    "IndexHNSWPQ",
    "IndexHNSWSQ",
    "IndexIVFPQ",
    "IndexIVFScalarQuantizer",
    "IndexPQ",
    "IndexScalarQuantizer",
}
_WITH_IDS = {"IndexIDMap", "IndexIDMap2"}

_NUMBERS_AT_ONCE = 2**20


def part_of(given: Any) -> Part:  # noqa: ANN401
    """Return an index with columns, or a bare one, as a table."""
    return _Index(given if isinstance(given, Vectors) else Vectors(given))


@dataclass(frozen=True, eq=False, repr=False)
class _Index(InMemory, Part):
    """An index and its columns. PRIVATE."""

    given: Vectors
    name: str = "index"
    where: str = "the index"

    def own_keys(self) -> str:
        """Return what its vectors are called here."""
        return _VECTORS

    @contextmanager
    def opened(self, columns: Columns) -> Iterator["_Reading"]:
        """Begin a pass."""
        with sentences(self.where, "readable to the end"):
            yield _Reading(self._kept, self._beside, columns, self.where)

    @cached_property
    def _kept(self) -> "_Kept":
        return _Kept.of(self.given)

    @cached_property
    def _beside(self) -> dict[str, "_Column"]:
        count = int(self.given.index.ntotal)
        return {
            name: _Column.of(column, name, count) for name, column in self.given.columns.items()
        }


class _Reading:
    """One pass over an index."""

    def __init__(
        self, kept: "_Kept", beside: dict[str, "_Column"], columns: Columns, where: str
    ) -> None:
        self._kept, self._beside, self._columns, self._where = kept, beside, columns, where
        single = {columns.groups, columns.values[0] if columns.labels else None}
        for name in columns.all:
            if name not in beside and (name != _VECTORS or name in single):
                known = listed([_VECTORS, *beside])
                raise InvalidInput(f"Expected {where} to have {name!r} beside it; it has: {known}.")

    @property
    def rows(self) -> int:
        """The number of vectors. PRIVATE."""
        return self._kept.count

    def forms(self) -> Forms:
        """Return what the columns hold."""
        groups = self._columns.groups
        return Forms(
            self._form(self._columns.keys),
            self._form(self._columns.values),
            None if groups is None else self._form((groups,)),
            self._where,
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield all vectors, some at a time, with what belongs to them."""
        columns = self._columns
        for vectors, ids in self._kept.chunks():
            if columns.labels:
                values = self._single(columns.values[0], ids)
                values = values.astype(str) if values.dtype.kind == "O" else values
            else:
                values = self._taken(columns.values, vectors, ids)
            groups = None if columns.groups is None else self._single(columns.groups, ids)
            if groups is not None and groups.dtype.kind not in "iuO":
                raise InvalidInput(
                    f"Expected {columns.groups} to hold a whole number or text for each vector."
                )
            yield self._taken(columns.keys, vectors, ids), values, groups

    def _single(self, name: str, ids: Integers) -> NDArray[Any]:
        """Return one number or text for each id, shape (m,)."""
        taken = self._beside[name].of_ids(ids)
        cells.check_single(taken, name, self._where)
        return taken.reshape(len(taken))

    def _taken(self, names: tuple[str, ...], vectors: NDArray[Any], ids: Integers) -> NDArray[Any]:
        """Return columns of some ids: numbers of shape (m, width), or texts of shape (m,)."""
        taken = [vectors if each == _VECTORS else self._beside[each].of_ids(ids) for each in names]
        return taken[0] if len(taken) == 1 else np.concatenate(taken, axis=1)

    def _form(self, names: tuple[str, ...]) -> Form:
        forms = [
            Form("lists", self._kept.dim) if each == _VECTORS else self._beside[each].form
            for each in names
        ]
        if len(forms) > 1 and any(each != Form("numbers") for each in forms):
            raise InvalidInput(
                f"Expected one column of lists in {self._where}, or many of numbers."
            )
        return forms[0] if len(forms) == 1 else Form("numbers", len(forms))


@dataclass(frozen=True, eq=False, repr=False)
class _Column:
    """What belongs to each id. PRIVATE.

    Attributes:
        name: of the column.
        cells: numbers, shape (n, width), or texts, shape (n,).
        ids: of the cells, sorted; None for 0, 1, ...
        form: what the cells are.
    """

    name: str
    cells: NDArray[Any]
    ids: Integers | None
    form: Form

    @classmethod
    def of(cls, given: Array, name: str, count: int) -> "_Column":
        """Return an array or a mapping as a column of an index with so many vectors."""
        if not isinstance(given, Mapping):
            array = _array(given, name)
            if len(array) != count:
                raise InvalidInput(f"Expected {name} to have one cell for each vector.")
            return cls(name, array, None, _form(array))
        try:
            # By `index`, since numpy would cut off what ids have behind the point.
            ids = np.fromiter(map(operator.index, given), dtype=np.int64, count=len(given))
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(f"Expected {name} to be an array or a mapping of ids.") from None
        order = np.argsort(ids)
        array = _array(list(given.values()), name)
        return cls(name, array[order], ids[order], _form(array))

    def of_ids(self, ids: Integers) -> NDArray[Any]:
        """Return the cells of some ids."""
        if self.ids is None:
            if len(ids) and not (ids.min() >= 0 and ids.max() < len(self.cells)):
                raise InvalidInput(
                    f"Expected {self.name} to be a mapping from ids, since those of the index are "
                    "not 0, 1, 2, ...: dict(zip(ids, values))."
                )
            return np.asarray(self.cells[ids])
        places = np.searchsorted(self.ids, ids).clip(max=max(len(self.ids) - 1, 0))
        if len(self.ids) == 0 or np.any(self.ids[places] != ids):
            raise InvalidInput(f"Expected {self.name} to have a cell for each id of the index.")
        return np.asarray(self.cells[places])


def _array(given: Array, name: str) -> NDArray[Any]:
    """Return cells as numbers, shape (n, width), or as texts, shape (n,), Python's own."""
    array = given if isinstance(given, list | tuple) else np.asarray(given)
    if isinstance(array, np.ndarray) and array.dtype.kind in "iufb" and array.ndim in (1, 2):
        return array.reshape(len(array), -1)
    plain = array.tolist() if isinstance(array, np.ndarray) else list(array)
    plain = [each.tolist() if isinstance(each, np.ndarray | np.generic) else each for each in plain]
    where = "the columns of the index"
    kinds = set(map(type, plain))
    return (cells.ids if kinds in ({str}, {int}) else cells.numbers)(plain, name, where).reshape(
        len(plain), *([] if kinds == {str} else [-1])
    )


def _form(array: NDArray[Any]) -> Form:
    if array.ndim == 1:
        return Form("texts")
    return Form("numbers") if array.shape[1] == 1 else Form("lists", array.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class _Kept:
    """Where an index keeps its vectors. PRIVATE.

    Attributes:
        index: as it was given.
        base: what keeps vectors, by numbers of its own.
        own_ids: the ids of those numbers; None if they are the ids.
        count: how many there were at first.
    """

    index: Any
    base: Any
    own_ids: Integers | None
    count: int

    @classmethod
    def of(cls, given: Vectors) -> "_Kept":
        """Return where an index keeps its vectors, if that can be read."""
        import faiss

        base, own_ids = given.index, None
        if type(base).__name__ in _WITH_IDS:
            own_ids = faiss.vector_to_array(base.id_map).astype(np.int64)
            base = faiss.downcast_index(base.index)
        kind = type(base).__name__
        if kind in _AS_CODES and not given.trained_on_public:
            raise InvalidInput(
                f"Expected an index that keeps vectors as they are, and {kind} keeps codes, by a "
                "table that was trained on vectors: if those were private, each row would depend "
                "on all. Vectors(index, ..., trained_on_public=True) says that they were not."
            )
        if kind not in _AS_THEY_ARE | _AS_CODES:
            known = listed(_AS_THEY_ARE | _AS_CODES)
            raise InvalidInput(f"Expected one of {known}, and the index is a {kind}.")
        return cls(given.index, base, own_ids, int(given.index.ntotal))

    @property
    def dim(self) -> int:
        """The width of its vectors."""
        return int(self.index.d)

    def chunks(self) -> Iterator[tuple[NDArray[Any], Integers]]:
        """Yield vectors and their ids, some at a time."""
        if int(self.index.ntotal) != self.count:
            raise InvalidInput("Expected the same rows whenever they are read: they have changed.")
        most = max(1, _NUMBERS_AT_ONCE // self.dim)
        lists = self._in_lists if hasattr(self.base, "invlists") else self._in_order
        for vectors, numbers in lists(most):
            yield vectors, numbers if self.own_ids is None else self.own_ids[numbers]

    def _in_order(self, most: int) -> Iterator[tuple[NDArray[Any], Integers]]:
        for start in range(0, self.count, most):
            end = min(start + most, self.count)
            yield self.base.reconstruct_n(start, end - start), np.arange(start, end)

    def _in_lists(self, most: int) -> Iterator[tuple[NDArray[Any], Integers]]:
        """Yield what inverted lists hold: codes that begin with the number of the list."""
        import faiss

        lists, size = self.base.invlists, self.base.code_size
        before = self.base.sa_code_size() - size
        for number in range(self.base.nlist):
            count = lists.list_size(number)
            if not count:
                continue
            codes = faiss.rev_swig_ptr(lists.get_codes(number), count * size).reshape(count, size)
            ids = faiss.rev_swig_ptr(lists.get_ids(number), count)
            head = np.frombuffer(number.to_bytes(before, "little"), dtype=np.uint8)
            for start in range(0, count, most):
                some = codes[start : start + most]
                whole = np.concatenate([np.broadcast_to(head, (len(some), before)), some], axis=1)
                yield self.base.sa_decode(whole), ids[start : start + most].copy()
