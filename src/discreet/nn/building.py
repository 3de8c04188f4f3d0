"""From the private rows that a model attends to, to memories: the one place that sees them.

Rows come with the record that each belongs to. An encoder makes rows of records one by one
(`encode_alone`), so that no record's rows depend on another record.

A row x becomes the keys M·(W_k·x + b_k - centre) and the values W_v·x + b_v - centre of all heads
of all layers, exactly and row by row (`heads`); `discreet.sums` adds them up and releases them, all
heads and layers in one Gaussian mechanism.
"""

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from discreet import _validate
from discreet._api import Builder
from discreet._arrays import float64, has_mask, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput, MostlyNoiseWarning
from discreet.features.fourier import Fourier, random_error
from discreet.features.kernel import LARGEST_LOGIT, Evidence, Kernel
from discreet.ledger import Account
from discreet.nn.bounds import Bounds
from discreet.nn.heads import HeadMap, Heads
from discreet.noise import Entropy
from discreet.provenance import Stated
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import Records, progress_bar, tables_of

_Record = TypeVar("_Record")

# "auto" takes the best polynomial that fits: features cost time, and no noise. The last are taken
# only where random features would do worse.
_ERRORS, _USUAL_ERROR = (1e-3, 1e-2, 5e-2, 0.1, 0.2, 0.4), 5e-2

# Unless others are asked for: the most features whose states are no larger than this together, but
# for 2^11 of them, which are always allowed, and no more than 2^14.
_STATE_BYTES, _FEWEST, _MOST = 2**26, 11, 14

# Options of `build` that choose a kernel: here each head gets its own.
_KERNEL_OPTIONS = ("kernel", "eps_s", "features")

# So many bytes of keys and values are made at a time.
_AT_ONCE = 2**26


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


class PrivateOptions(TypedDict, total=False):
    """What a private module can be asked for besides epsilon and delta.

    As for `discreet.build`: `discreet.readers.attention.Options` says what each means.
    """

    neighbours: str
    rows_hint: int | None
    kernel: str
    eps_s: float | None
    features: int | None
    group_rows: float
    stated: Stated | Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
class Layer:
    """One attention layer, and the public bounds that it is built under.

    Attributes:
        heads: its weights.
        bounds: one of each for every key head.
    """

    heads: Heads
    bounds: Bounds

    @property
    def key_dim(self) -> int:
        """The width of balanced keys."""
        return int(self.bounds.key_map.shape[1])

    @property
    def value_dim(self) -> int:
        """The width of one head's values."""
        return self.heads.value.dim

    @property
    def logits(self) -> Floats:
        """The bound on logits of each head."""
        return self.bounds.largest_logits(self.heads.scaling)

    @cached_property
    def _keys(self) -> HeadMap:
        """What makes keys of rows; balanced at once unless they are normalised."""
        maps, bounds = self.heads.key, self.bounds
        if maps.gain is not None:
            return maps
        shift = np.einsum("hij,hj->hi", bounds.key_map, maps.bias - bounds.key_centre)
        return HeadMap(bounds.key_map @ maps.weight, shift)

    @cached_property
    def _values(self) -> HeadMap:
        maps = self.heads.value
        return replace(maps, bias=maps.bias - self.bounds.value_centre)

    def project(self, rows: Floats, value_rows: Floats) -> list[tuple[Floats, Floats]]:
        """Return keys (n, d) and values (n, d_v) of each head, row by row to the bit."""
        keys = self._keys.project(rows)
        if self.heads.key.gain is not None:  # M is one, or diagonal, for such heads
            diagonal = np.einsum("hii->hi", self.bounds.key_map)[:, None, :]
            keys = (keys - self.bounds.key_centre[:, None, :]) * diagonal
        return list(zip(keys, self._values.project(value_rows), strict=True))


def build_layers(
    layers: Sequence[Layer],
    context: Context,
    *,
    account: Account | None = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401 (epsilon, delta and PrivateOptions)
) -> list[list[Memory]]:
    """Return the memories of each layer, one for each key head; all under one (epsilon, delta).

    Differentially private for one row of the context, or for one record (`Context.groups`):
    `docs/privacy.md`, "Memory". One release, which is counted once, before its noise is drawn.

    Args:
        layers: which attend to the same rows.
        context: the rows.
        account: on which the release is counted, if on any.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        **options: epsilon, delta and `PrivateOptions`.

    Raises:
        BudgetExceeded: the account leaves no room; nothing was released.
    """
    check_options(options)
    for layer in layers:
        _check_width(layer.heads.key, context.rows)
        _check_width(layer.heads.value, context.value_rows)
    heads = sum(layer.heads.key.heads for layer in layers)
    unit = Unit.ROW if context.groups is None else Unit.RECORD
    kernels = [kernel for layer in layers for kernel in kernels_of(layer, heads, unit, options)]
    builder = Builder(
        **own_options(options),
        account=account,
        kernel=kernels,
        value_norm=[float(norm) for layer in layers for norm in layer.bounds.value_norm],
    )
    width = sum(layer.heads.key.heads * (layer.key_dim + layer.value_dim) for layer in layers)
    with progress_bar("adding up rows", rows=len(context.rows) * heads, show=progress) as advance:
        for chunk in context.chunks(max(_AT_ONCE // (8 * width), 1)):
            pairs = [
                pair for layer in layers for pair in layer.project(chunk.rows, chunk.value_rows)
            ]
            builder.add_tables(tables_of(pairs), chunk.groups, advance=advance)
    with warnings.catch_warnings():
        # Whoever asked for modules is told of these (`warn_of_noise`), not of single heads.
        warnings.simplefilter("ignore", MostlyNoiseWarning)
        memories = iter(builder.release(entropy))
    return [[next(memories) for _ in range(layer.heads.key.heads)] for layer in layers]


def own_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return what is asked for of the release itself: all but what chooses kernels.

    Args:
        options: epsilon, delta and `PrivateOptions`.
    """
    return {name: value for name, value in options.items() if name not in _KERNEL_OPTIONS}


def check_options(options: dict[str, Any]) -> None:
    """Raise `InvalidInput` if there are options that a private module does not have.

    Args:
        options: epsilon, delta and `PrivateOptions`.
    """
    known = PrivateOptions.__annotations__
    unknown = sorted(options.keys() - known.keys() - {"epsilon", "delta"})
    if unknown:
        listed = ", ".join(known)
        raise InvalidInput(f"Expected options among {listed}; {unknown[0]!r} is none of them.")


def _check_width(maps: HeadMap, rows: Floats) -> None:
    if maps.width != rows.shape[-1]:
        _validate.reject("context.shape[-1]", rows.shape[-1], f"the layer's own {maps.width}")


def kernels_of(layer: Layer, heads: int, unit: Unit, options: dict[str, Any]) -> list[Kernel]:
    """Return one kernel for each head, all of one kind and with as many features.

    They are chosen for the head with the largest logits; each is then made for its own bounds.

    Args:
        layer: with its bounds.
        heads: of all layers together.
        unit: whom the guarantee protects.
        options: epsilon, delta and `PrivateOptions`.
    """
    bounds, scaling = layer.bounds, layer.heads.scaling
    if np.max(layer.logits) > LARGEST_LOGIT:
        raise InvalidInput(
            f"Expected logits of at most {LARGEST_LOGIT:g}, and the bounds allow up to "
            f"{np.max(layer.logits):.4g}: the noise grows with e to that power. Calibrate the "
            "bounds on public inputs, or give largest_logit, which clips."
        )
    at = int(np.argmax(layer.logits))
    given = {name: value for name, value in options.items() if value is not None}
    wanted = given.pop("eps_s", None)
    most = given.setdefault("features", _most_features(heads, layer.value_dim))
    shape = Shape(heads=(heads,), key_dim=layer.key_dim, value_dim=layer.value_dim)
    # What random features do to a weight of one.
    fourier_error = float(np.exp(np.max(layer.logits))) * random_error(most // 2)
    errors = [each for each in _ERRORS if each <= max(fourier_error, _USUAL_ERROR)]
    for eps_s in errors if wanted is None else (wanted,):
        asked = Options(
            **given,
            eps_s=eps_s,
            scale=float(scaling[at]),
            key_norm=float(bounds.key_norm[at]),
            query_norm=float(bounds.query_norm[at]),
            value_norm=float(bounds.value_norm[at]),
        )
        [layout] = ATTENTION.resolve([shape], asked, unit=unit).layouts
        if layout.kernel.evidence is Evidence.CERTIFICATE:
            break
    numbers = zip(scaling, bounds.key_norm, bounds.query_norm, strict=True)
    chosen = layout.kernel
    if isinstance(chosen, Fourier) and "rows_hint" not in given:
        # Nobody knows what the noise hides, so as many as there is room for.
        chosen = replace(chosen, frequencies=most // 2)
    return [
        chosen.at(scale=float(scale), key_norm=float(key), query_norm=float(query))
        for scale, key, query in numbers
    ]


def _most_features(heads: int, value_dim: int) -> int:
    """Return how many features a head may have, so that all states fit; a power of two."""
    room = _STATE_BYTES // (8 * heads * (value_dim + 1))
    return int(2 ** min(max(int(np.log2(max(room, 1))), _FEWEST), _MOST))
