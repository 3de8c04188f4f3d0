"""From the private rows that a model attends to, to memories: the one place that sees them.

A row x becomes the keys M·(W_k·x + b_k - centre) and the values W_v·x + b_v - centre of all heads
of all layers, exactly and row by row (`heads`); `discreet.sums` adds them up and releases them, all
heads and layers in one Gaussian mechanism.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from discreet import _validate
from discreet._api import Builder
from discreet._typing import Floats
from discreet.errors import InvalidInput, MostlyNoiseWarning
from discreet.features.fourier import Fourier, random_error
from discreet.features.kernel import LARGEST_LOGIT, Evidence, Kernel
from discreet.ledger import Account
from discreet.nn.bounds import Bounds
from discreet.nn.heads import HeadMap, Heads
from discreet.nn.records import Context
from discreet.noise import Entropy
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import progress_bar, tables_of

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
    _check_options(options)
    for layer in layers:
        _check_width(layer.heads.key, context.rows)
        _check_width(layer.heads.value, context.value_rows)
    heads = sum(layer.heads.key.heads for layer in layers)
    unit = Unit.ROW if context.groups is None else Unit.RECORD
    kernels = [kernel for layer in layers for kernel in _kernels(layer, heads, unit, options)]
    builder = Builder(
        **{name: value for name, value in options.items() if name not in _KERNEL_OPTIONS},
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


def _check_options(options: dict[str, Any]) -> None:
    known = PrivateOptions.__annotations__
    unknown = sorted(options.keys() - known.keys() - {"epsilon", "delta"})
    if unknown:
        listed = ", ".join(known)
        raise InvalidInput(f"Expected options among {listed}; {unknown[0]!r} is none of them.")


def _check_width(maps: HeadMap, rows: Floats) -> None:
    if maps.width != rows.shape[-1]:
        _validate.reject("context.shape[-1]", rows.shape[-1], f"the layer's own {maps.width}")


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
