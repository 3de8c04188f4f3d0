"""Reading private rows: arrays, memory maps or torch tensors, a few rows at a time.

Messages carry shapes and types, never a value. They reach the trusted builder only.

From a caller's arrays, or iterators of chunks, into a collector.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from discreet.sums.collector import Collector

from discreet._arrays import float64, is_torch, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.privacy import Neighbours
from discreet.sums.layout import RowLayout
from discreet.sums.progress import progress_bar

Index = slice | Integers

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
    def heads(self) -> tuple[int, ...]:
        """The leading axes."""
        return tuple(self.keys.shape[:-2])

    @property
    def rows(self) -> int:
        """The number of rows n."""
        return int(self.keys.shape[-2])

    @property
    def key_dim(self) -> int:
        """The width of keys, d."""
        return int(self.keys.shape[-1])

    @property
    def value_dim(self) -> int:
        """The width of values, d_v."""
        return int(self.values.shape[-1])

    def read(self, index: Index) -> tuple[Floats, Floats]:
        """Return some rows of all heads, shapes (heads·m, d) and (heads·m, d_v): head by head.

        Copies: what another process writes into a mapped file meanwhile changes none of them.
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
        """Return the record that each row belongs to, if there is one for each."""
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
    """Return a copy of the groups: an array of numbers or fixed texts, or a list of one type."""
    if isinstance(groups, np.ma.MaskedArray):
        raise InvalidInput("Expected groups without a mask: a row without a record has no promise.")
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
        raise InvalidInput("Expected groups to be texts that do not end in 0; hex digits do not.")
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


@dataclass(frozen=True, eq=False, repr=False)
class Feed:
    """Keys and values of all layers, and the record of each row. PRIVATE.

    Attributes:
        chunks: the tables of all layers, and the record of each row; None if each row is its own.
        rows: how many there are, of all layers together, where somebody knows: for a progress bar.
        public_rows: how many there are, if they are arrays and each row is its own record: public
            where rows are replaced.
    """

    chunks: Iterable[tuple[list[Table], Array]]
    rows: Callable[[], int | None]
    public_rows: int | None

    @classmethod
    def of(cls, layers: Layers, groups: Array) -> "Feed":
        """Return rows that have been looked at as far as their shapes go."""
        layers = list(layers)
        if _are_streams(layers):
            return cls(_streamed(layers, groups), lambda: None, None)
        tables = tables_of(layers)
        rows = tables[0].rows
        return cls([(tables, groups)], lambda: rows * len(tables), rows if groups is None else None)

    @classmethod
    def of_one(cls, keys: Array, values: Array, groups: Array) -> "Feed":
        """Return the rows of one layer: keys and values, or chunks of both."""
        if isinstance(keys, str | os.PathLike) or hasattr(keys, "__arrow_c_stream__"):
            raise InvalidInput(
                "Expected arrays, or chunks of them: discreet.tables.Rows reads files and tables."
            )
        if values is not None:
            return cls.of([(keys, values)], groups)
        if not isinstance(keys, Iterable) or hasattr(keys, "__array__"):
            raise InvalidInput(
                "Expected values, one for each row of keys; or chunks (keys, values) instead of "
                "both."
            )
        if groups is not None:
            raise InvalidInput("Expected groups to come with the chunks: (keys, values, groups).")
        return cls(_together(keys), lambda: _count(keys), None)

    def rows_hint(self, given: int | None, neighbours: object) -> int | None:
        """Return the number of rows, where that is public and no other was given."""
        replaced = isinstance(neighbours, str) and neighbours == Neighbours.REPLACE
        if given is None and replaced and self.public_rows is not None:
            return max(self.public_rows, 1)
        return given

    def into(self, collector: "Collector[RowLayout]", *, progress: bool) -> None:
        """Add all rows, with or without a progress bar."""
        total = self.rows() if progress else None
        with progress_bar("adding up rows", rows=total, show=progress) as advance:
            for chunk, of_row in self.chunks:
                collector.add_tables(chunk, of_row, advance=advance)


def _are_streams(layers: Sequence[Array]) -> bool:
    """Return whether keys and values are iterators of chunks; all are, or none."""
    streams = {isinstance(part, Iterator) for layer in layers for part in layer}
    if len(streams) > 1:
        raise InvalidInput("Expected all keys and values to be arrays, or all iterators of chunks.")
    return streams == {True}


def _streamed(layers: Layers, groups: Array) -> Iterator[tuple[list[Table], Array]]:
    """Yield the tables of all layers, and the record of each row, chunk by chunk."""
    columns = [part for layer in layers for part in layer]
    if groups is not None:
        columns.append(iter(groups))
    try:
        for parts in zip(*columns, strict=True):
            pairs = [parts[i : i + 2] for i in range(0, 2 * len(layers), 2)]
            if groups is not None and parts[-1] is None:
                raise InvalidInput(
                    "Expected groups for every chunk, since there are groups at all."
                )
            yield tables_of(pairs), None if groups is None else parts[-1]
    except ValueError as error:
        if isinstance(error, InvalidInput) or "zip()" not in str(error):
            raise
        raise InvalidInput("Expected as many chunks of keys as of values and groups.") from None


def _together(chunks: Iterable[object]) -> Iterator[tuple[list[Table], Array]]:
    """Yield the table of each chunk (keys, values) or (keys, values, groups), and its groups."""
    by_record: bool | None = None
    for chunk in chunks:
        if not isinstance(chunk, tuple) or len(chunk) not in {2, 3}:
            raise InvalidInput("Expected chunks to be (keys, values) or (keys, values, groups).")
        keys, values, of_row = chunk if len(chunk) == 3 else (*chunk, None)
        if by_record is None:
            by_record = of_row is not None
        if by_record is not (of_row is not None):
            raise InvalidInput("Expected groups with every chunk, or with none.")
        yield tables_of([(keys, values)]), of_row


def _count(chunks: object) -> int | None:
    """Return the number of rows, if whoever has them knows it: `count`, which lists have, too."""
    count = getattr(chunks, "count", None)
    return count if isinstance(count, int) else None


def tables_of(layers: Layers) -> list[Table]:
    """Return keys and values of each layer as tables, if there are any."""
    pairs = [tuple(layer) for layer in layers]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput("Expected layers to be pairs (keys, values), at least one.")
    return [Table(*pair) for pair in pairs]
