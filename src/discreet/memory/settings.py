"""From the caller's options to public settings: kernel, temperature, τ, lattice, noise.

Pure functions of public numbers. Nothing here ever sees a row, or how many there are: a builder
who needs a size gives a public `rows_hint`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from discreet import _validate
from discreet.errors import InvalidInput
from discreet.kernels import Fourier, Kernel, Minimax, Taylor
from discreet.memory.joint import Joint, Unit, crude_multiplier, value_resolution
from discreet.memory.layout import Layout
from discreet.memory.temperature import FREQUENCIES, Spread
from discreet.privacy import Neighbours, Privacy

MOST_FEATURES = 4096

# A sum this many standard errors above zero is clear of the noise.
CLEAR = 5.0

_LEAST_NORM = 1e-30

PerLayer = float | Sequence[float]


class KernelName(StrEnum):
    """Kernels that can be asked for by name."""

    AUTO = "auto"
    TAYLOR = "taylor"
    MINIMAX = "minimax"
    FOURIER = "fourier"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What one layer looks like, without its number of rows."""

    heads: tuple[int, ...]
    key_dim: int
    value_dim: int

    def __post_init__(self) -> None:
        for name in ("key_dim", "value_dim"):
            _validate.whole(name, getattr(self, name), at_least=1)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a caller of `build`, `build_many` or `plan` asks for; the same names as there."""

    epsilon: float
    delta: float
    neighbours: str
    key_norm: PerLayer
    query_norm: PerLayer
    value_norm: PerLayer
    scale: PerLayer | None
    rows_hint: int | None
    kernel: str | Kernel
    eps_s: float
    tau: PerLayer | None
    by_record: bool
    group_rows: float

    @property
    def privacy(self) -> Privacy:
        """ε, δ and the neighbouring relation, checked."""
        return Privacy(
            _validate.real("epsilon", self.epsilon, above=0),
            _validate.real("delta", self.delta, above=0, below=1),
            Neighbours.parse(self.neighbours),
        )

    def of_layer(self, index: int, count: int) -> "Layer":
        """Return the options of one of so many layers."""

        def own(name: str) -> float:
            return _own(name, getattr(self, name), index, count)

        return Layer(
            key_norm=own("key_norm"),
            query_norm=own("query_norm"),
            value_norm=own("value_norm"),
            scale=None if self.scale is None else own("scale"),
            tau=None if self.tau is None else own("tau"),
            rows_hint=self.rows_hint,
            kernel=self.kernel,
            eps_s=self.eps_s,
        )


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The options that hold for one layer."""

    key_norm: float
    query_norm: float
    value_norm: float
    scale: float | None
    tau: float | None
    rows_hint: int | None
    kernel: str | Kernel
    eps_s: float


def settle(shapes: Sequence[Shape], options: Options) -> Joint:
    """Return the settings of a build. The same options and shapes always give the same settings."""
    privacy = options.privacy
    hint = options.rows_hint
    if hint is not None:
        hint = _validate.whole("rows_hint", hint, at_least=1, at_most=2**40)
    group_rows = _validate.real("group_rows", options.group_rows, at_least=1e-3, at_most=1e6)
    heads = sum(math.prod(shape.heads) for shape in shapes)
    multiplier = crude_multiplier(privacy, heads, group_rows)
    resolution = value_resolution(multiplier, rows_hint=hint)
    layouts = tuple(
        _layout(shape, options.of_layer(index, len(shapes)), multiplier, resolution)
        for index, shape in enumerate(shapes)
    )
    unit = Unit.RECORD if options.by_record else Unit.ROW
    return Joint(layouts=layouts, privacy=privacy, unit=unit, group_rows=group_rows)


def _layout(shape: Shape, layer: "Layer", multiplier: float, resolution: int) -> Layout:
    for name in ("key_norm", "query_norm", "value_norm"):
        _validate.real(name, getattr(layer, name), at_least=_LEAST_NORM, at_most=1 / _LEAST_NORM)
    tau = layer.tau
    if tau is None:
        tau = default_tau(layer.value_norm, shape.value_dim)
    kernel = layer.kernel
    if isinstance(kernel, Kernel):
        _check_kernel(kernel, shape, layer)
    else:
        scale = layer.scale
        if scale is None:
            if layer.rows_hint is None:
                raise InvalidInput(
                    "Expected scale=None to come with rows_hint, a public (rounded) number of "
                    "rows; or give a scale."
                )
            scale = Spread(
                rows=_validate.whole("rows_hint", layer.rows_hint, at_least=1),
                dim=shape.key_dim,
                value_dim=shape.value_dim,
                tau=tau / layer.value_norm,
                multiplier=multiplier,
            ).recommended_scale(layer.key_norm * layer.query_norm)
        kernel = choose_kernel(
            shape.key_dim,
            name=kernel,
            eps_s=layer.eps_s,
            scale=scale,
            key_norm=layer.key_norm,
            query_norm=layer.query_norm,
        )
    return Layout(
        kernel=kernel,
        heads=shape.heads,
        value_dim=shape.value_dim,
        value_norm=layer.value_norm,
        tau=tau,
        resolution=resolution,
    )


def default_tau(value_norm: float, value_dim: int) -> float:
    """Return τ = value_norm/(4·d_v^¼).

    The error of an answer o is, per coordinate, proportional to √(B² + τ²)·√(1 + o²/τ²); summed
    over coordinates it is least at τ² = B·‖o‖/√d_v. This is the least for ‖o‖ = B/16, which
    averages over many rows come to; larger answers lose little, and numerators alone gain.
    """
    return value_norm / (4 * math.sqrt(math.sqrt(value_dim)))


def choose_kernel(
    dim: int, *, name: str, eps_s: float, scale: float, key_norm: float, query_norm: float
) -> Kernel:
    """Return the kernel of that name.

    "auto" is Minimax if at most 4,096 features reach eps_s, else Fourier with 1,024 frequencies.
    """
    wanted = _validate.choice("kernel", name, KernelName)
    eps_s = _validate.real("eps_s", eps_s, above=0, below=1)
    fourier = Fourier(
        dim, frequencies=FREQUENCIES, scale=scale, key_norm=key_norm, query_norm=query_norm
    )
    if wanted is KernelName.FOURIER:
        return fourier
    if wanted is KernelName.AUTO:
        return _cheapest_minimax(fourier, eps_s) or fourier
    polynomial = Taylor if wanted is KernelName.TAYLOR else Minimax
    return polynomial(dim, eps_s=eps_s, scale=scale, key_norm=key_norm, query_norm=query_norm)


def _cheapest_minimax(bounds: Kernel, eps_s: float) -> Minimax | None:
    """Return the minimax kernel of the lowest degree that meets eps_s, if it is small enough."""
    for degree in range(60):
        if math.comb(bounds.dim + degree, degree) > MOST_FEATURES:
            return None
        kernel = Minimax(
            bounds.dim,
            degree=degree,
            scale=bounds.scale,
            key_norm=bounds.key_norm,
            query_norm=bounds.query_norm,
        )
        if kernel.error <= eps_s:
            return kernel
    return None


def explain_kernel(kernel: Kernel, eps_s: float) -> str:
    """Return why "auto" chooses this kernel."""
    if isinstance(kernel, Minimax):
        return (
            f"a polynomial of degree {kernel.degree} reaches eps_s = {eps_s:g} with at most "
            f"{MOST_FEATURES:,} features"
        )
    return (
        f"no polynomial with at most {MOST_FEATURES:,} features reaches eps_s = {eps_s:g} for "
        f"logits up to {kernel.largest_logit:.3g} in {kernel.dim} dimensions"
    )


def _check_kernel(kernel: Kernel, shape: Shape, layer: "Layer") -> None:
    """Raise `InvalidInput` if a ready-made kernel contradicts the data's width or other options."""
    if kernel.dim != shape.key_dim:
        _validate.reject("kernel.dim", kernel.dim, f"the width of keys, {shape.key_dim}")
    for name, default in (("scale", None), ("key_norm", 1.0), ("query_norm", 1.0)):
        given = getattr(layer, name)
        if given not in (default, getattr(kernel, name)):
            _validate.reject(name, given, f"left out, or the kernel's own {getattr(kernel, name)}")


def _own(name: str, value: PerLayer, index: int, count: int) -> float:
    """Return the number for one layer: one for all, or a sequence with one for each."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != count:
            _validate.reject(f"len({name})", len(value), f"one for each of {count} layers")
        value = value[index]
    return _validate.real(name, value, above=0)
