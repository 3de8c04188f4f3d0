"""Reading private rows: arrays, memory maps or torch tensors, a few rows at a time.

Messages carry shapes and types, never a value. They reach the trusted builder only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.kernels.base import Floats

Index = slice | NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Keys and values of one layer, not yet read. PRIVATE.

    Attributes:
        keys: shape (*heads, n, d).
        values: shape (*heads, n, d_v).
    """

    keys: Any
    values: Any

    def __post_init__(self) -> None:
        keys, values = _array("keys", self.keys), _array("values", self.values)
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
        """Return some rows of all heads, shapes (heads·m, d) and (heads·m, d_v): head by head."""
        return _rows("keys", self.keys, index), _rows("values", self.values, index)


def record_ids(groups: object, rows: int) -> NDArray[Any]:
    """Return the record that each row belongs to, if there is one for each."""
    if not isinstance(groups, np.ndarray):
        groups = list(groups) if isinstance(groups, Iterable) else [groups]
        # numpy would make one type of several, and drop zeros at the end of a text.
        same = len({type(each) for each in groups}) <= 1
        if not same or any(isinstance(each, str) and each.endswith("\0") for each in groups):
            raise InvalidInput(
                "Expected groups to be whole numbers, or texts that do not end in 0."
            )
    ids = np.asarray(groups)
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iuUS":
        raise InvalidInput("Expected groups to be whole numbers or texts, shape (n,).")
    if len(ids) != rows:
        raise InvalidInput("Expected groups to name one record for each row.")
    return ids


def _without_rows(array: Any) -> str:  # noqa: ANN401
    """Return a shape without the number of rows, which may be private."""
    sizes = [str(size) for size in array.shape]
    if len(sizes) >= 2:
        sizes[-2] = "n"
    return f"({', '.join(sizes)})"


def _array(name: str, values: object) -> Any:  # noqa: ANN401 (numpy or torch)
    """Return an array whose rows can be sliced: torch tensors stay, everything else is numpy's."""
    if _is_torch(values) and not values.is_complex():  # type: ignore[attr-defined]
        return values
    try:
        array = np.asanyarray(values)  # a memory map stays one
    except (TypeError, ValueError, RuntimeError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iufb" or isinstance(array, np.ma.MaskedArray):
        # `from None`: the original message may quote a value.
        raise InvalidInput(f"Expected {name} to be an array of real numbers.") from None
    return array


def _is_torch(values: object) -> bool:
    return type(values).__module__.split(".")[0] == "torch" and hasattr(values, "detach")


def _rows(name: str, array: Any, index: Index) -> Floats:  # noqa: ANN401
    part = array[..., index, :]
    if _is_torch(part):
        part = part.detach().cpu().double().numpy()
    with np.errstate(all="ignore"):  # what a conversion says about values is nobody's business
        rows = np.asarray(part, dtype=np.float64).reshape(-1, part.shape[-1])
    if not np.all(np.isfinite(rows)):
        raise InvalidInput(f"Expected {name} to have no NaN and no infinity.")
    return rows
