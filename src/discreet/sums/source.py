"""Private rows: arrays, chunks and streams, read a few rows at a time.

`RowSource` is what every build reads from; `Table` is a chunk of one layer, `Records` says which
record each row belongs to. Messages carry shapes and types, never a value. They reach the trusted
builder only, and so does the progress bar, which is told how many rows have been read.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet._arrays import float64, is_torch, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.privacy import Neighbours
from discreet.sums.layout import RowLayout
from discreet.sums.settings import Shape, Unit

Index = slice | Integers

# Told how many rows more have been read.
Advance = Callable[[int], None]

# Keys and values of each layer.
Layers = Sequence[tuple[Array, Array]]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Keys and values of one layer, not yet read. PRIVATE.

    Attributes:
        keys: shape (*heads, n, d).
        values: shape (*heads, n, d_v).
    """

    keys: Array
    values: Array

    def __post_init__(self) -> None:
        keys, values = plain_numbers("keys", self.keys), plain_numbers("values", self.values)
        if keys.ndim < 2 or values.ndim < 2 or keys.shape[:-2] != values.shape[:-2]:
            raise InvalidInput(
                "Expected keys of shape (*heads, n, d) and values of shape (*heads, n, d_v), got "
                f"{_without_rows(keys)} and {_without_rows(values)}."
            )
        if keys.shape[-2] != values.shape[-2]:
            raise InvalidInput("Expected as many rows of values as of keys.")
        if 0 in keys.shape[:-2] or keys.shape[-1] == 0 or values.shape[-1] == 0:
            raise InvalidInput("Expected keys and values to have at least one head and column.")
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        return "<Table: private>"

    @property
    def rows(self) -> int:
        """The number of rows n."""
        return int(self.keys.shape[-2])

    @cached_property
    def shape(self) -> Shape:
        """Heads and widths, without the number of rows."""
        return Shape(
            heads=tuple(self.keys.shape[:-2]),
            key_dim=int(self.keys.shape[-1]),
            value_dim=int(self.values.shape[-1]),
        )

    def read(self, index: Index) -> tuple[Floats, Floats]:
        """Return some rows of all heads, shapes (heads·m, d) and (heads·m, d_v): head by head.

        Copies: what another process writes into a mapped file meanwhile changes none of them.

        Args:
            index: a slice, or row numbers.
        """
        return _rows("keys", self.keys, index), _rows("values", self.values, index)

    def features(
        self, layout: RowLayout, keys: Floats, memory: Floats
    ) -> tuple[Floats, Floats | None]:
        """Return the integer features of keys that were read, and the weights of the rows.

        Args:
            layout: with the map.
            keys: of `read`, shape (heads·m, d).
            memory: for at least heads·m·r numbers, to be used again.

        Returns:
            Shape (heads, m, r), and (heads·m,), or None if all weights are one.
        """
        mapped = layout.kernel.key_features(keys, out=memory)
        shape = (layout.head_count, -1, layout.kernel.features)
        return mapped.features.reshape(shape), mapped.weights


# The tables of all layers, and the record of each row (None if each row is its own).
Chunk = tuple[Sequence[Table], Array]


def tables_of(layers: Layers) -> list[Table]:
    """Return keys and values of each layer as tables, if there are any.

    Args:
        layers: pairs (keys, values), at least one.

    Raises:
        InvalidInput: they are not, or shapes do not fit.
    """
    pairs = [tuple(layer) for layer in layers]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput("Expected layers to be pairs (keys, values), at least one.")
    return [Table(*pair) for pair in pairs]


def value_chunk(keys: Array, values: Array, groups: Array) -> Chunk:
    """Return the chunk of one layer whose values are numbers.

    Args:
        keys: shape (*heads, n, d).
        values: shape (*heads, n, d_v).
        groups: the record of each row, shape (n,); None if each row is its own.
    """
    return tables_of([(keys, values)]), groups


@dataclass(frozen=True)
class Form:
    """What the rows of one reader consist of.

    Attributes:
        values: what comes with the keys, in a caller's words.
        chunk: makes a checked chunk of keys, values and groups.
        passes: whether rows are read more than once.
    """

    values: str = "values"
    chunk: Callable[[Array, Array, Array], Chunk] = value_chunk
    passes: bool = False

    @property
    def parts(self) -> str:
        """What a chunk may be, in words."""
        return f"(keys, {self.values}) or (keys, {self.values}, groups)"

    @property
    def read_once(self) -> str:
        """What is wrong with an iterator, where rows are read more than once."""
        return (
            "Expected rows that can be read again, and an iterator is read once: there are several "
            "rounds, and each reads all rows. Give arrays, or a function without arguments that "
            f"returns a new iterator of chunks {self.parts}."
        )


class RowSource:
    """Private rows of all layers, chunk by chunk, as often as they are read. PRIVATE.

    Whether rows come with the record that they belong to is the same in every chunk; and in every
    pass a row belongs to the same record: the influence of a record is bounded in each pass by
    itself, and all passes together protect the same one.
    """

    def __init__(
        self,
        reopen: Callable[[], Iterable[Chunk]],
        *,
        form: Form | None = None,
        rows: Callable[[], int | None] = lambda: None,
        public_rows: int | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            reopen: begins a pass over all chunks.
            form: of the rows; by default keys and values that are read once.
            rows: tells how many there are, where somebody knows before reading them.
            public_rows: the number of rows, if they are arrays and each is its own record: public
                where rows are replaced.
        """
        self.form = Form() if form is None else form
        self.count = rows
        self.public_rows = public_rows
        self._reopen = reopen
        self._opened: object = None
        self._begun: Iterator[Chunk] | None = None
        self._by_record: bool | None = None
        self._ids: list[Array] = []
        self._whole = False

    def __reduce__(self) -> NoReturn:
        raise TypeError("Rows are private and are never pickled or copied.")

    @classmethod
    def of_layers(cls, layers: Layers, groups: Array = None) -> "RowSource":
        """Return the rows of some layers: all of them arrays, or all of them iterators of chunks.

        Args:
            layers: keys and values of each.
            groups: the record of each row, shape (n,), or an iterator of such; None if each row is
                its own.
        """
        layers = list(layers)
        if _are_iterators(layers):
            return cls(lambda: _side_by_side(layers, groups))
        tables = tables_of(layers)
        rows = tables[0].rows
        return cls(
            lambda: [(tables, groups)],
            rows=lambda: rows * len(tables),
            public_rows=rows if groups is None else None,
        )

    @classmethod
    def of(cls, keys: Array, values: Array, groups: Array, form: Form | None = None) -> "RowSource":
        """Return the rows of one layer.

        Args:
            keys: shape (*heads, n, d); or, without values, an iterable of chunks, or a function
                without arguments that returns one.
            values: likewise.
            groups: the record of each row, shape (n,); None if each row is its own.
            form: of the rows.
        """
        form = Form() if form is None else form
        if isinstance(keys, str | os.PathLike) or hasattr(keys, "__arrow_c_stream__"):
            raise InvalidInput(
                "Expected arrays, or chunks of them: discreet.tables.Rows reads files and tables."
            )
        if form.passes and isinstance(keys, Iterator):
            raise InvalidInput(form.read_once)
        opens = callable(keys) and not hasattr(keys, "__array__")
        if values is not None:
            if opens:
                raise InvalidInput(
                    f"Expected {form.values} to come with the chunks: (keys, {form.values})."
                )
            if not form.passes and any(isinstance(each, Iterator) for each in (keys, values)):
                return cls.of_layers([(keys, values)], groups)
            tables, of_row = chunk = form.chunk(keys, values, groups)
            rows = tables[0].rows
            public = rows if of_row is None else None
            return cls(lambda: [chunk], form=form, rows=lambda: rows, public_rows=public)
        if not opens and (not isinstance(keys, Iterable) or hasattr(keys, "__array__")):
            raise InvalidInput(
                f"Expected {form.values}, one for each row of keys; or chunks (keys, "
                f"{form.values}) instead of both."
            )
        if groups is not None:
            raise InvalidInput(
                f"Expected groups to come with the chunks: (keys, {form.values}, groups)."
            )
        reopen = keys if opens else lambda: keys if isinstance(keys, Iterator) else iter(keys)
        source = cls(lambda: source._together(reopen()), form=form, rows=lambda: _count(keys))
        return source

    @property
    def shapes(self) -> list[Shape]:
        """The shape of each layer, as the first chunk has it."""
        return [table.shape for table in self._first()[0]]

    @property
    def unit(self) -> Unit:
        """Whether rows are protected, or records of many rows."""
        return Unit.ROW if self._first()[1] is None else Unit.RECORD

    def chunks(self) -> Iterator[Chunk]:
        """Begin a pass over all rows."""
        begun, self._begun = self._begun, None
        return self._next_pass() if begun is None else begun

    def rows_hint(self, given: int | None, neighbours: object) -> int | None:
        """Return the number of rows, where that is public and no other was given.

        Args:
            given: the hint of the caller, if any.
            neighbours: "add_remove" or "replace".
        """
        replaced = isinstance(neighbours, str) and neighbours == Neighbours.REPLACE
        if given is None and replaced and self.public_rows is not None:
            return max(self.public_rows, 1)
        return given

    def _first(self) -> Chunk:
        """Return the first chunk; the pass that it belongs to goes on with it."""
        chunks = self._next_pass() if self._begun is None else self._begun
        for chunk in chunks:
            self._begun = chain([chunk], chunks)
            return chunk
        raise InvalidInput(
            f"Expected at least one chunk of keys and {self.form.values} (it may have no rows)."
        )

    def _next_pass(self) -> Iterator[Chunk]:
        """Yield all chunks, if rows belong to the records that they belonged to before."""
        for place, (tables, of_row) in enumerate(self._reopen()):
            if self._by_record is None:
                self._by_record = of_row is not None
            if self._by_record is not (of_row is not None):
                raise InvalidInput("Expected groups with every chunk, or with none.")
            if of_row is not None and self.form.passes:
                # A copy: whoever has the caller's own may write other ids into it between passes.
                of_row = names_of(of_row)  # noqa: PLW2901
                self._check_ids(place, of_row)
            yield tables, of_row
        self._whole = True

    def _together(self, opened: object) -> Iterator[Chunk]:
        """Yield checked chunks of what a caller has opened: (keys, values[, groups]) each."""
        if not isinstance(opened, Iterable):
            raise InvalidInput("Expected keys() to return an iterator of chunks.")
        if isinstance(opened, Iterator) and opened is self._opened:
            raise InvalidInput(self.form.read_once)
        self._opened = opened
        for parts in opened:
            if not isinstance(parts, tuple) or len(parts) not in {2, 3}:
                raise InvalidInput(f"Expected chunks to be {self.form.parts}.")
            keys, values, of_row = parts if len(parts) == 3 else (*parts, None)
            yield self.form.chunk(keys, values, of_row)

    def _check_ids(self, place: int, of_row: Array) -> None:
        """Keep the ids of a chunk in the first pass, and compare with them in later ones."""
        if not self._whole and place == len(self._ids):
            self._ids.append(of_row)
        elif place >= len(self._ids) or not _same_ids(self._ids[place], of_row):
            raise InvalidInput("Expected every row to belong to the same record in every pass.")


def _are_iterators(layers: Sequence[Array]) -> bool:
    """Return whether keys and values are iterators of chunks; all are, or none."""
    iterators = {isinstance(part, Iterator) for layer in layers for part in layer}
    if len(iterators) > 1:
        raise InvalidInput("Expected all keys and values to be arrays, or all iterators of chunks.")
    return iterators == {True}


def _side_by_side(layers: Layers, groups: Array) -> Iterator[Chunk]:
    """Yield the chunks of iterators that go side by side."""
    columns = [part for layer in layers for part in layer]
    if groups is not None:
        columns.append(iter(groups))
    try:
        for parts in zip(*columns, strict=True):
            pairs = [parts[i : i + 2] for i in range(0, 2 * len(layers), 2)]
            if groups is not None and parts[-1] is None:
                raise InvalidInput("Expected groups with every chunk, or with none.")
            yield tables_of(pairs), None if groups is None else parts[-1]
    except ValueError as error:
        if isinstance(error, InvalidInput) or "zip()" not in str(error):
            raise
        raise InvalidInput("Expected as many chunks of keys as of values and groups.") from None


def _count(chunks: object) -> int | None:
    """Return the number of rows, if whoever has them knows it: `count`, which lists have, too."""
    count = getattr(chunks, "count", None)
    return count if isinstance(count, int) else None


def _same_ids(one: Array, other: Array) -> bool:
    """Return whether ids are the same; as Python has it, where they are Python's own numbers."""
    if isinstance(one, list) or isinstance(other, list):
        return list(one) == list(other)
    return bool(np.array_equal(one, other))


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Which record each row belongs to. PRIVATE.

    Attributes:
        of_row: the number of each row's record, from 0 on, shape (n,).
        ids: what the caller calls each record: whole numbers, or texts, or bytes.
    """

    of_row: Integers
    ids: list[Any]

    @classmethod
    def of(cls, groups: object, rows: int) -> "Records":
        """Return the record that each row belongs to, if there is one for each.

        Args:
            groups: what the caller calls the record of each row.
            rows: how many there are.

        Raises:
            InvalidInput: groups are not one for each row, or not of one kind.
        """
        names = names_of(groups)
        if len(names) != rows:
            raise InvalidInput("Expected groups to name one record for each row.")
        if isinstance(names, np.ndarray):
            ids, of_row = np.unique(names, return_inverse=True)
            return cls(of_row.astype(np.int64, copy=False), ids.tolist())
        # Python's own equality: numpy would make one type of several, and drop zeros at the end of
        # a text.
        numbers: dict[Any, int] = {}
        codes = [numbers.setdefault(name, len(numbers)) for name in names]
        return cls(np.array(codes, dtype=np.int64), list(numbers))


def names_of(groups: object) -> NDArray[Any] | list[Any]:
    """Return a copy of the groups: an array of numbers or fixed texts, or a list of one type.

    Args:
        groups: whole numbers, texts or bytes, shape (n,).

    Raises:
        InvalidInput: they are something else.
    """
    if isinstance(groups, np.ma.MaskedArray):
        raise InvalidInput(
            "Expected groups without a mask: a row without a record would not be protected."
        )
    if isinstance(groups, str | bytes | Mapping | AbstractSet) or not isinstance(groups, Iterable):
        raise InvalidInput("Expected groups to name one record for each row, in order.")
    names = _fixed(groups) if hasattr(groups, "__array__") else list(groups)
    if isinstance(names, np.ndarray):
        return names
    # numpy's own numbers and texts count as what they stand for.
    names = [each.item() if isinstance(each, np.generic) else each for each in names]
    if not any({type(each) for each in names} <= {kind} for kind in (int, str, bytes)):
        raise InvalidInput(
            "Expected groups to be whole numbers, or texts, of one type, shape (n,)."
        )
    # An array of fixed texts drops zeros at their end: the same id would be two, one in a list and
    # one in an array.
    if any(not isinstance(each, int) and each[-1:] in ("\0", b"\0") for each in names):
        raise InvalidInput(
            "Expected groups to be texts that do not end in a null character: write such ids in "
            "hexadecimal digits."
        )
    return names


def _fixed(groups: Any) -> NDArray[Any] | list[Any]:  # noqa: ANN401
    """Return an array of numbers or fixed texts; an array of Python's objects, as a list."""
    try:
        array = np.array(groups.detach().cpu().numpy() if is_torch(groups) else groups)
    except (TypeError, ValueError, RuntimeError):  # a type that numpy does not know
        array = np.empty((), dtype=object)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuUSO"):
        raise InvalidInput("Expected groups to be whole numbers or texts, shape (n,).") from None
    if array.size == 0:
        return []
    return array.tolist() if array.dtype.kind == "O" else array


def _without_rows(array: Array) -> str:
    """Return a shape without the number of rows, which may be private."""
    sizes = [str(size) for size in array.shape]
    if sizes:
        sizes[max(len(sizes) - 2, 0)] = "n"
    return f"({', '.join(sizes)})"


def _rows(name: str, array: Array, index: Index) -> Floats:
    part = array[..., index, :]
    # Copied before it is looked at: bounds hold for what was checked.
    rows = float64(part).reshape(-1, part.shape[-1])
    if not np.all(np.isfinite(rows)):
        raise InvalidInput(f"Expected {name} to have no NaN and no infinity.")
    return rows


def unseen(_: int) -> None:
    """Show nothing."""


@contextmanager
def progress_bar(text: str, *, rows: int | None, show: bool) -> Iterator[Advance]:
    """Yield what is to be told how many rows more have been read.

    Args:
        text: what is being done.
        rows: how many there are, if that is known.
        show: whether to show anything.
    """
    with passes_bar(1, rows=rows, show=show, text=text) as begin:
        yield begin(1)


@contextmanager
def passes_bar(
    passes: int, *, rows: int | None, show: bool, text: str = "adding up rows"
) -> Iterator[Callable[[int], Advance]]:
    """Yield what is told that a pass begins, from 1 on, and returns what to tell of its rows.

    On standard error, so that results can be piped. It shows no number of rows, just a share of
    them.

    Args:
        passes: how many there will be.
        rows: of each pass, if that is known.
        show: whether to show anything.
        text: what is being done, where there is one pass.
    """
    if not show:
        yield lambda _: unseen
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task(text, total=None if rows is None else passes * max(rows, 1))

        def begin(number: int) -> Advance:
            if passes > 1:
                bars.update(task, description=f"pass {number} of {passes}")
            return lambda count: bars.advance(task, count)

        yield begin
