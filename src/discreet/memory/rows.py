"""Reading private rows: arrays, memory maps or torch tensors, a few rows at a time.

Messages carry shapes and types, never a value. They reach the trusted builder only.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._arrays import float64, is_torch, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.memory.row_layout import RowLayout

Index = slice | Integers


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
