"""From the caller's options to public settings: kernel, temperature, τ, lattice, noise.

Pure functions of public numbers. Nothing here ever sees a row, or how many there are: a builder
who needs a size gives a public `rows_hint`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy import optimize, special

from discreet import _validate
from discreet.errors import InvalidInput
from discreet.kernels import Fourier, Kernel, Minimax, Taylor
from discreet.memory.joint import Joint, Unit, crude_multiplier, value_resolution
from discreet.memory.layout import Layout
from discreet.privacy import Neighbours, Privacy

MOST_FEATURES = 4096
FREQUENCIES = 1024

# A sum this many standard errors above zero is clear of the noise.
CLEAR = 5.0

# At the recommended temperature rows have so many times the mass of the error.
_BALANCE = 2.0

# Recommended temperatures have logits between these.
_LEAST_LOGIT, _LARGEST_LOGIT = 0.1, 20.0

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
    tau = layer.tau
    if tau is None:
        tau = default_tau(layer.value_norm, shape.value_dim)
    kernel = layer.kernel
    if isinstance(kernel, Kernel):
        _check_kernel(kernel, shape, layer)
    else:
        scale = layer.scale
        if scale is None:
            scale = recommended_scale(
                layer.rows_hint,
                shape.key_dim,
                noise=relative_noise(multiplier, tau, layer.value_norm),
                key_norm=layer.key_norm,
                query_norm=layer.query_norm,
            )
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


def relative_noise(multiplier: float, tau: float, value_norm: float) -> float:
    """Return the noise of a numerator at the longest query, in units of e^t·value_norm."""
    return multiplier * math.hypot(1, tau / value_norm)


def recommended_scale(
    rows_hint: int | None, key_dim: int, *, noise: float, key_norm: float, query_norm: float
) -> float:
    """Return the sharpest scale at which rows that are spread evenly stand clear of the error.

    A query's numerator has noise e^t·noise (in units of value_norm) and, with 1,024 Fourier
    frequencies, a kernel error of up to e^t·√(rows/2048). Rows that are spread evenly over a sphere
    have the mass rows·E[e^(t·cos)]. The largest t at which that is twice the error is recommended.
    The sphere has `usual_directions` dimensions: real rows lie closer to the queries that they
    matter for than points that fill all of space.
    """
    if rows_hint is None:
        raise InvalidInput(
            "Expected scale=None to come with rows_hint, a public (rounded) number of rows; "
            "or give a scale."
        )
    rows = _validate.whole("rows_hint", rows_hint, at_least=1)
    error = _BALANCE * math.hypot(noise, math.sqrt(rows / (2 * FREQUENCIES)))
    directions = usual_directions(key_dim)

    def surplus(logit: float) -> float:
        return math.log(rows / error) + spread_mass(logit, directions) - logit

    if surplus(_LEAST_LOGIT) <= 0:
        logit = _LEAST_LOGIT
    elif surplus(_LARGEST_LOGIT) >= 0:
        logit = _LARGEST_LOGIT
    else:
        logit = float(optimize.brentq(surplus, _LEAST_LOGIT, _LARGEST_LOGIT, xtol=1e-6))
    # Three digits are enough, and look better on a card.
    return float(f"{logit / (key_norm * query_norm):.3g}")


def usual_directions(dim: int) -> float:
    """Return in how many directions rows are taken to vary where nothing is known about them.

    A guess, and the only one: 2·√d, or d if that is less.
    """
    return min(float(dim), 2 * math.sqrt(dim))


def spread_mass(logit: float, dim: float) -> float:
    """Return ln E[e^(t·cos)], the mean weight of keys that are spread evenly over the sphere."""
    order = dim / 2 - 1
    bessel = float(special.ive(order, logit))
    if not bessel > 0 or not math.isfinite(bessel):  # order far above t: the series' first terms
        return logit**2 / (2 * dim)
    return float(special.gammaln(dim / 2) + order * math.log(2 / logit) + math.log(bessel) + logit)


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
