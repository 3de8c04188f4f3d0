"""Collections of Chroma: embeddings and metadata, by ids that are fixed when rows are first read.

A collection has no version and no snapshot. So its ids are listed once, and every pass asks for
those, some at a time, which also takes the same time for the last rows as for the first (an offset
is counted off again each time). Rows that are added later are not seen; if one is gone, the pass is
an error. One that changes meanwhile is read as it was or as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.tables.columns import Chunk, Columns, Form, Forms, InMemory, Part, sentences
from discreet.tables.stores import cells

# Chroma's own name for them.
EMBEDDINGS = "embeddings"

# SQLite finds so many ids in the shortest time each.
_ROWS_AT_ONCE = 1000

_Fetched = dict[str, Any]


def part_of(given: Any) -> Part:  # noqa: ANN401
    """Return a collection as a table."""
    return _Collection(given)


@dataclass(frozen=True, eq=False, repr=False)
class _Collection(InMemory, Part):
    """A collection. PRIVATE."""

    given: Any
    name: str = "collection"
    where: str = "the collection"
    ahead: ClassVar[bool] = True

    def own_keys(self) -> str:
        """Return Chroma's name for embeddings."""
        return EMBEDDINGS

    @cached_property
    def ids(self) -> list[str]:
        """The ids that the collection had when they were first asked for. PRIVATE."""
        return list(self.given.get(include=[])["ids"])

    @contextmanager
    def opened(self, columns: Columns) -> Iterator["_Reading"]:
        """Begin a pass."""
        with sentences(self.where, "readable to the end"):
            yield _Reading(self.given, self.ids, columns, self.where)


class _Reading:
    """One pass over the rows of some ids."""

    def __init__(self, given: Any, ids: list[str], columns: Columns, where: str) -> None:  # noqa: ANN401
        self._given, self._ids, self._columns, self._where = given, ids, columns, where
        self._include = [EMBEDDINGS] if EMBEDDINGS in columns.all else []
        self._include += ["metadatas"] if set(columns.all) - {EMBEDDINGS} else []

    @property
    def rows(self) -> int:
        """The number of ids. PRIVATE."""
        return len(self._ids)

    def forms(self) -> Forms:
        """Return what the columns hold, by the first row."""
        columns = self._columns
        if not self._ids:
            nothing = Form("lists", None)
            return Forms(nothing, nothing, None, self._where)
        first = self._fetched(self._ids[:1])
        values = self._form(first, columns.values)
        groups = None if columns.groups is None else self._form(first, (columns.groups,))
        return Forms(self._form(first, columns.keys), values, groups, self._where)

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, some at a time."""
        columns = self._columns
        kinds = set()
        for start in range(0, len(self._ids), _ROWS_AT_ONCE):
            fetched = self._fetched(self._ids[start : start + _ROWS_AT_ONCE])
            if columns.labels:
                name = columns.values[0]
                values = cells.labels(self._cells(fetched, name), name, self._where)
                kinds.add(values.dtype.kind)
                if len(kinds) > 1:  # numpy would make texts of the numbers, once they are joined
                    raise InvalidInput(
                        f"Expected {name} in {self._where} to be numbers, or texts, in every row."
                    )
            else:
                values = self._numbers(fetched, columns.values)
            groups = None
            if columns.groups is not None:
                named = self._cells(fetched, columns.groups)
                groups = cells.ids(named, columns.groups, self._where)
            yield self._numbers(fetched, columns.keys), values, groups

    def _fetched(self, ids: list[str]) -> _Fetched:
        """Return rows in the order of their ids."""
        fetched: _Fetched = self._given.get(ids=ids, include=self._include)
        if fetched["ids"] == ids:
            return fetched
        if sorted(fetched["ids"]) != sorted(ids):
            raise InvalidInput("Expected the same rows whenever they are read: they have changed.")
        places = {each: place for place, each in enumerate(fetched["ids"])}
        order = [places[each] for each in ids]
        for name in self._include:
            fetched[name] = [fetched[name][place] for place in order]
        return fetched

    def _cells(self, fetched: _Fetched, name: str) -> list[Any]:
        return [None if each is None else each.get(name) for each in fetched["metadatas"]]

    def _numbers(self, fetched: _Fetched, names: tuple[str, ...]) -> NDArray[Any]:
        if EMBEDDINGS in names:
            self._check_alone(names)
            return self._embeddings(fetched)
        columns = [cells.numbers(self._cells(fetched, each), each, self._where) for each in names]
        self._check_alone(names, alone=any(each.shape[1] != 1 for each in columns))
        return np.concatenate(columns, axis=1)

    def _embeddings(self, fetched: _Fetched) -> NDArray[Any]:
        array = np.asarray(fetched[EMBEDDINGS])
        if array.ndim != 2 or array.dtype.kind != "f":
            raise InvalidInput(f"Expected every row of {self._where} to have an embedding.")
        return array

    def _form(self, fetched: _Fetched, names: tuple[str, ...]) -> Form:
        if EMBEDDINGS in names:
            return Form("lists", self._embeddings(fetched).shape[1])
        forms = [cells.form_of(self._cells(fetched, each)[0], each, self._where) for each in names]
        lists = any(each.kind == "lists" for each in forms)
        self._check_alone(names, alone=lists)
        return forms[0] if lists or len(forms) == 1 else Form(forms[0].kind, len(forms))

    def _check_alone(self, names: tuple[str, ...], *, alone: bool = True) -> None:
        if alone and len(names) > 1:
            raise InvalidInput(
                f"Expected one column of lists in {self._where}, or many of numbers."
            )
