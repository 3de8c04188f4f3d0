"""The private rows that a model attends to, and the record that each belongs to.

An encoder makes rows of records one by one (`encode_alone`), so that no record's rows depend on
another record.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from discreet._arrays import float64, has_mask, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.sums.source import Records, progress_bar

_Record = TypeVar("_Record")


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """Records that were encoded each alone: a context, with the record of each row. PRIVATE.

    Attributes:
        rows: what an encoder made of all of them, shape (n, D), without padding.
        groups: the record of each row, shape (n,).
    """

    rows: torch.Tensor
    groups: torch.Tensor

    def __repr__(self) -> str:
        return "<Encoded: private rows>"

    @classmethod
    def of(cls, made: Iterable[torch.Tensor | None], *, progress: bool = False) -> "Encoded | None":
        """Return the rows of one record after the other; None if there are none at all.

        Args:
            made: rows (k, D), or one row (D,), of each record; None for a record of no rows. All of
                one width, dtype and device: torch would give all records the dtype that fits all
                of them, so one record of another dtype could round the rows of others.
            progress: whether to show a progress bar.
        """
        rows: list[torch.Tensor] = []
        groups = []
        with torch.no_grad(), progress_bar("encoding records", rows=None, show=progress) as step:
            for index, each in enumerate(made):
                step(1)
                if each is None:
                    continue
                if not _alike(each, rows[0] if rows else None):
                    raise InvalidInput(
                        "Expected the encoder to make rows of one kind of each record: tensors of "
                        "shape (D,) or (rows, D), all of one width, dtype and device."
                    )
                # A copy: an encoder may write its next result to the same place.
                rows.append((each if each.dim() == 2 else each[None]).clone())
                groups.append(torch.full((len(rows[-1]),), index))
        return cls(torch.cat(rows), torch.cat(groups)) if rows else None


def _alike(rows: object, first: torch.Tensor | None) -> bool:
    """Return whether rows of a record can stand beside those of the first one as they are."""
    if not isinstance(rows, torch.Tensor) or rows.dim() not in {1, 2}:
        return False
    kinds = [
        (each.shape[-1], each.dtype, each.device) for each in (rows, first) if each is not None
    ]
    return kinds[0] == kinds[-1]


def encode_alone(
    encoder: Callable[[torch.Tensor], torch.Tensor],
    records: Iterable[torch.Tensor],
    *,
    progress: bool = False,
) -> Encoded:
    """Return what an encoder makes of records, each as a batch of one: a context for a module.

    In a batch of several, the last bits of one record's rows may depend on how many others there
    are: then removing a person would move other people's rows, and no promise holds to the bit.
    For the same reason modules run as in evaluation (no dropout, no statistics of batches; their
    modes are put back afterwards), and as they are written, not compiled: compiled code changes
    with the lengths that it has seen. The first record is encoded again at the end, and an encoder
    that makes other rows of it is refused. Build on one machine.

    Args:
        encoder: takes a batch of one, (1, ...), and returns (1, D), or (1, rows, D).
        records: one tensor each, without a batch axis.
        progress: whether to show a progress bar.

    Returns:
        The rows of all records, and the record of each: PRIVATE.

    Raises:
        InvalidInput: there is no record; or rows are not alike, or not the same each time.
    """
    found = each_alone(
        lambda record: encoder(record[None])[0], records, encoder=encoder, progress=progress
    )
    if found is None:
        raise InvalidInput("Expected at least one record; give from_multihead an array of no rows.")
    return found


def each_alone(
    encode: Callable[[_Record], torch.Tensor | None],
    records: Iterable[_Record],
    *,
    encoder: object,
    progress: bool = False,
) -> Encoded | None:
    """Return what is made of records, each alone and the same each time; None if there are none.

    Args:
        encode: makes rows of one record; None for no rows.
        records: one after the other.
        encoder: what encodes: a module, or a function that calls some.
        progress: whether to show a progress bar.
    """
    first: list[tuple[_Record, torch.Tensor]] = []

    def made(record: _Record) -> torch.Tensor | None:
        rows = encode(record)
        if rows is not None and not first:
            first.append((record, rows.clone() if isinstance(rows, torch.Tensor) else rows))
        return rows

    with in_evaluation(encoder), torch.compiler.set_stance("force_eager"):
        found = Encoded.of(map(made, records), progress=progress)
        with torch.no_grad():
            same = all(_equal(encode(record), rows) for record, rows in first)
    if not same:
        raise InvalidInput(
            "Expected the encoder to make the same rows each time, and it made others of the first "
            "record when it was asked again. Switch off whatever is random, or remembers records."
        )
    return found


def _equal(one: torch.Tensor | None, other: torch.Tensor) -> bool:
    """Return whether rows are the same; NaN is refused later, and is no difference."""
    if one is None or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return bool(torch.all((one == other) | (one.isnan() & other.isnan())))


@contextmanager
def in_evaluation(encoder: object) -> Iterator[None]:
    """Let an encoder run as in evaluation for a while: no dropout, no statistics of batches.

    Afterwards every module is in the mode that it was in before.

    Args:
        encoder: a module with all of its parts; or a function, with all modules that it calls.
    """
    switched: list[nn.Module] = []
    thread = threading.get_ident()

    def switch(module: nn.Module, _inputs: Any = None) -> None:  # noqa: ANN401 (torch's signature)
        if module.training and threading.get_ident() == thread:
            switched.append(module)
            module.training = False

    parts = list(encoder.modules()) if isinstance(encoder, nn.Module) else []
    hook = None if parts else register_module_forward_pre_hook(switch)
    try:
        for each in parts:
            switch(each)
        yield
    finally:
        if hook is not None:
            hook.remove()
        for each in switched:
            each.training = True


@dataclass(frozen=True, eq=False, repr=False)
class Context:
    """The rows that a model attends to. PRIVATE.

    Attributes:
        rows: what keys are made of, shape (n, D).
        value_rows: what values are made of, shape (n, D_v); usually the same.
        groups: a number for the record of each row, shape (n,); None if each row is its own.
    """

    rows: Floats
    value_rows: Floats
    groups: Integers | None = None

    @classmethod
    def of(cls, context: Array, groups: Array = None, *, mask: Array = None) -> "Context":
        """Return rows of any library, or a pair of them, as float64; in their order.

        Args:
            context: rows of shape (n, D), or of a batch, (records, n, D); or a pair of such; or
                records that were encoded each alone.
            groups: the record of each row, in that shape but for D.
            mask: which rows there are, likewise; the others are padding, and dropped.
        """
        if isinstance(context, Encoded):
            groups = context.groups if groups is None else groups
            context = context.rows
        pair = context if isinstance(context, tuple) else (context, context)
        if len(pair) != 2:
            raise InvalidInput("Expected context to be rows, or a pair (key rows, value rows).")
        first = _rows(pair[0])
        second = first if pair[1] is pair[0] else _rows(pair[1])
        shape = first.shape[:-1]
        if second.shape[:-1] != shape:
            raise InvalidInput("Expected as many key rows as value rows, in the same order.")
        # One text among the numbers of a mask would make texts of all, and "0" is true.
        given = np.ones(shape) if mask is None else plain_numbers("attention_mask", mask)
        keep = float64(given).astype(bool)
        if keep.shape != shape:
            raise InvalidInput(
                "Expected attention_mask to have the shape of the context, but for D."
            )
        codes = None if groups is None else _codes(groups, shape)[keep]
        return cls(first[keep], second[keep], codes)

    def chunks(self, most: int) -> Iterator["Context"]:
        """Yield at most so many rows at a time, each record whole; at least one chunk."""
        count = len(self.rows)
        if not count:
            yield self
        elif self.groups is None:
            for start in range(0, count, most):
                yield self._some(slice(start, start + most))
        else:
            order = np.argsort(self.groups, kind="stable")
            ends = np.cumsum(np.unique(self.groups, return_counts=True)[1])
            start = 0
            while start < count:
                # As many records as fit; a record that is too large by itself.
                fitting = np.searchsorted(ends, start + most, side="right")
                first = np.searchsorted(ends, start, side="right") + 1
                end = int(ends[max(fitting, first) - 1])
                yield self._some(order[start:end])
                start = end

    def _some(self, part: slice | Integers) -> "Context":
        groups = None if self.groups is None else self.groups[part]
        return Context(self.rows[part], self.value_rows[part], groups)


def _rows(array: Array) -> Floats:
    if has_mask(array):
        raise InvalidInput("Expected context without a mask: leave rows out instead.")
    try:
        rows = float64(plain_numbers("context", array))
    except InvalidInput:
        rows = np.empty(0)
    if rows.ndim < 2:
        raise InvalidInput("Expected context to be rows of real numbers, shape (n, D).") from None
    if not np.all(np.isfinite(rows)):
        raise InvalidInput("Expected context to have no NaN and no infinity.")
    return rows


def _codes(groups: Array, shape: tuple[int, ...]) -> Integers:
    """Return a whole number for each row, the same for rows of one record."""
    if hasattr(groups, "shape") and len(groups.shape) > 1 and tuple(groups.shape) == shape:
        groups = groups.reshape(-1)
    return Records.of(groups, int(np.prod(shape))).of_row.reshape(shape)
