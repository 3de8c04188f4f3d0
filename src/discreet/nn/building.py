"""From the private rows that a model attends to, to memories: the one place that sees them.

A row x becomes the keys M·(W_k·x + b_k - centre) and the values W_v·x + b_v - centre of all heads
of all layers, exactly and row by row (`projection`); `discreet.sums` adds them up and releases
them, all heads and layers in one Gaussian mechanism.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict, cast

import numpy as np

from discreet import _validate
from discreet._api import Builder
from discreet._arrays import float64, has_mask, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput, MostlyNoiseWarning
from discreet.features.fourier import Fourier, random_error
from discreet.features.kernel import LARGEST_LOGIT, Evidence, Kernel
from discreet.nn.alone import Encoded
from discreet.nn.bounds import Bounds
from discreet.nn.heads import Heads
from discreet.nn.projection import ExactLinear, normalised
from discreet.noise import Entropy
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.sums.progress import progress_bar
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import Records, tables_of

# "auto" takes the best polynomial that fits: features cost time, and no noise. The last are taken
# only where random features would do worse.
_ERRORS, _USUAL_ERROR = (1e-3, 1e-2, 5e-2, 0.1, 0.2, 0.4), 5e-2

# Unless others are asked for: the most features whose states are no larger than this together, but
# for 2^11 of them, which are always allowed, and no more than 2^14.
_STATE_BYTES, _FEWEST, _MOST = 2**26, 11, 14

# So many bytes of keys and values are made at a time.
_AT_ONCE = 2**26


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
    def _key_map(self) -> ExactLinear:
        """Keys of all heads, one after the other; balanced at once unless they are normalised."""
        maps, bounds = self.heads.key, self.bounds
        if maps.gain is not None:
            return _flat(maps.weight, maps.bias)
        shift = np.einsum("hij,hj->hi", bounds.key_map, maps.bias - bounds.key_centre)
        return _flat(bounds.key_map @ maps.weight, shift)

    @cached_property
    def _value_map(self) -> ExactLinear:
        maps = self.heads.value
        return _flat(maps.weight, maps.bias - self.bounds.value_centre)

    def project(self, rows: Floats, value_rows: Floats) -> list[tuple[Floats, Floats]]:
        """Return keys (n, d) and values (n, d_v) of each head, row by row to the bit."""
        heads = self.heads.key.heads
        width = self._key_map.weight.shape[0] // heads
        keys = self._key_map(rows).reshape(len(rows), heads, width).swapaxes(0, 1)
        if self.heads.key.gain is not None:
            keys = self._normalised(keys)
        values = self._value_map(value_rows).reshape(len(rows), heads, self.value_dim)
        values = values.swapaxes(0, 1)
        return list(zip(keys, values, strict=True))

    def _normalised(self, keys: Floats) -> Floats:
        """Return keys as the model normalises them; M is one, or diagonal, for such heads."""
        maps, bounds = self.heads.key, self.bounds
        gain = cast("Floats", maps.gain)
        flat = normalised(keys.reshape(-1, maps.dim), gain, maps.epsilon).reshape(keys.shape)
        diagonal = np.einsum("hii->hi", bounds.key_map)[:, None, :]
        return np.asarray((flat - bounds.key_centre[:, None, :]) * diagonal)


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
        if self.groups is None:
            for start in range(0, max(count, 1), most):
                part = slice(start, start + most)
                yield Context(self.rows[part], self.value_rows[part])
            return
        _, record, sizes = np.unique(self.groups, return_inverse=True, return_counts=True)
        order = np.argsort(record, kind="stable")
        ends = np.cumsum(sizes)
        start = 0
        while start < count or start == count == 0:
            at = int(np.searchsorted(ends, start + most, side="right"))
            fitting = int(ends[at - 1]) if at else 0
            end = fitting if fitting > start else int(ends[at]) if count else 0
            some = order[start:end]
            yield Context(self.rows[some], self.value_rows[some], self.groups[some])
            if end == 0:
                return
            start = end


def build_layers(
    layers: Sequence[Layer],
    context: Context,
    *,
    epsilon: float,
    delta: float,
    entropy: Entropy | None = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401 (PrivateOptions)
) -> list[list[Memory]]:
    """Return the memories of each layer, one for each key head; all under one (epsilon, delta).

    Differentially private for one row of the context, or for one record (`Context.groups`):
    `docs/privacy.md`, "Memory".
    """
    unknown = sorted(options.keys() - PrivateOptions.__annotations__.keys())
    if unknown:
        known = ", ".join(PrivateOptions.__annotations__)
        raise InvalidInput(f"Expected options among {known}; {unknown[0]!r} is none of them.")
    for layer in layers:
        for maps, rows in (
            (layer.heads.key, context.rows),
            (layer.heads.value, context.value_rows),
        ):
            if maps.weight.shape[-1] != rows.shape[-1]:
                width = maps.weight.shape[-1]
                _validate.reject("context.shape[-1]", rows.shape[-1], f"the layer's own {width}")
    heads = sum(layer.heads.key.heads for layer in layers)
    unit = Unit.ROW if context.groups is None else Unit.RECORD
    asked = {"epsilon": epsilon, "delta": delta, **options}
    kernel_options = {name: asked.pop(name, None) for name in ("kernel", "eps_s", "features")}
    given = {**asked, **kernel_options}
    kernels = [kernel for layer in layers for kernel in _kernels(layer, heads, unit, given)]
    builder = Builder(
        **asked,
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


def _kernels(layer: Layer, heads: int, unit: Unit, options: dict[str, Any]) -> list[Kernel]:
    """Return one kernel for each head, all of one kind and with as many features.

    They are chosen for the head with the largest logits; each is then made for its own bounds.
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
    of_waves = float(np.exp(np.max(layer.logits))) * random_error(most // 2)
    errors = [each for each in _ERRORS if each <= max(of_waves, _USUAL_ERROR)]
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


def _flat(weight: Floats, bias: Floats) -> ExactLinear:
    return ExactLinear(weight.reshape(-1, weight.shape[-1]), bias.reshape(-1))


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
