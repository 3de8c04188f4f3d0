"""The public shape of one memory: everything that is fixed before a row is read.

Which kernel, and which temperature: from public numbers, and public rows if there are any.

The file of a memory.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.features import kernel_registry as registry
from discreet.features.fourier import FREQUENCIES, doublings, random_error
from discreet.features.kernel import Kernel, Wanted, check_logit
from discreet.features.landmarks import Landmarks
from discreet.features.public_rows import PublicRows
from discreet.readers.attention.error_model import Goal, Sample, Spread
from discreet.readers.attention.options import Options
from discreet.sums.layout import ValueLayout, check_tau
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution


@dataclass(frozen=True, kw_only=True)
class Layout(ValueLayout):
    """Kernel, bounds and lattice of one memory (one layer, with its heads).

    Attributes:
        kernel: the feature map of keys and queries.
        heads: leading axes of keys and values; () for one head.
        value_dim: d_v.
        value_norm: bound on ‖v‖₂; public, enforced by clipping.
        tau: τ, the weight of the denominator's column.
        resolution: `value_norm` is at most 2^resolution lattice units.
    """

    noun: ClassVar[tuple[str, str]] = ("memory", "memories")

    kernel: Kernel

    def __post_init__(self) -> None:
        registry.check_registered(self.kernel)
        super().__post_init__()

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Layout":
        """Return the layout with these `parameters`, and these arrays of its kernel."""
        return cls(
            kernel=registry.restore(parameters["kernel"], arrays),
            heads=tuple(parameters["heads"]),
            **{name: parameters[name] for name in ("value_dim", "value_norm", "tau", "resolution")},
        )


def default_tau(value_norm: float, value_dim: int) -> float:
    """Return τ = value_norm/(4·d_v^¼).

    The error of an answer o is, per coordinate, proportional to √(B² + τ²)·√(1 + o²/τ²); summed
    over coordinates it is least at τ² = B·‖o‖/√d_v. This is the least for ‖o‖ = B/16, which
    averages over many rows come to; larger answers lose little, and numerators alone gain.
    """
    return value_norm / (4 * math.sqrt(math.sqrt(value_dim)))


# With fewer rows kept back nobody can tell which kernel is better.
_ENOUGH = 20


@dataclass(frozen=True, kw_only=True)
class Request:
    """What one layer wants of a kernel, as far as a caller said it.

    Attributes:
        name: of a kind, or "auto".
        dim: width of keys.
        scale: None for the recommended one.
        key_norm: bound on keys.
        query_norm: bound on queries.
        eps_s: relative error of a weight that "auto" asks of a polynomial.
        features: the most that are allowed; None for each kind's own limit.
        goal: what answers are for.
        public_rows: rows like the keys, if there are any.
        spread: what answers will be like; None if the number of rows is not known.
    """

    name: str
    dim: int
    scale: float | None
    key_norm: float
    query_norm: float
    eps_s: float
    features: int | None
    goal: Goal
    public_rows: PublicRows | None
    spread: Spread | None

    def wanted(self, scale: float, weight_error: float | None) -> Wanted:
        """Return what is wanted at a scale, where the noise hides such an error of a weight."""
        return Wanted(
            dim=self.dim,
            scale=scale,
            key_norm=self.key_norm,
            query_norm=self.query_norm,
            eps_s=self.eps_s,
            weight_error=weight_error,
            features=self.features,
            public_rows=self.public_rows,
        )

    def scale_for(self, weight_error: float) -> float:
        """Return the scale that was asked for, or the one recommended for such a kernel."""
        if self.scale is not None:
            return self.scale
        if self.spread is None:
            raise InvalidInput(
                "Expected scale=None to come with rows_hint, a public (rounded) number of "
                "rows; or give a scale.",
                argument="scale",
                wanted="a number, or left out with rows_hint, a public (rounded) number of rows",
                needs="rows_hint",
            )
        reach = self.key_norm * self.query_norm
        return replace(self.spread, weight_error=weight_error).recommended_scale(reach, self.goal)


def choose(request: Request) -> Kernel:
    """Return the kernel, at the temperature that is chosen together with it.

    Random features: the fewest whose error the noise hides, or the most allowed. With public rows
    "auto" tries landmarks, and takes them where they do better on rows that were kept back.
    """
    kernel = registry.choose(request.name, request.wanted(*_at_frequencies(request)))
    if request.name == Landmarks.kind:
        return _at_its_own_scale(request, kernel)
    if request.name != registry.AUTO or request.public_rows is None:
        return kernel
    landmarks = _landmarks(request, kernel.scale)
    held_back = request.public_rows.held_back
    few = len(held_back) < _ENOUGH
    if few or error_on(landmarks, held_back) >= error_on(kernel, held_back):
        return kernel
    return _at_its_own_scale(request, landmarks)


def _at_frequencies(request: Request) -> tuple[float, float | None]:
    """Return the scale, and which error of a weight the noise hides at it (if that is known)."""
    if request.spread is None:
        return request.scale_for(random_error(doublings(request.features)[0])), None
    reach = request.key_norm * request.query_norm
    for frequencies in doublings(request.features):
        scale = request.scale_for(random_error(frequencies))
        hidden = request.spread.hidden(scale * reach)
        if random_error(frequencies) <= hidden:
            break
    return scale, hidden


def _landmarks(request: Request, scale: float) -> Landmarks:
    return Landmarks.named(request.wanted(scale, None))


def _at_its_own_scale(request: Request, kernel: Kernel) -> Kernel:
    """Return the same landmarks at the scale that their own error allows."""
    scale = request.scale_for(kernel.weight_error)
    return kernel if scale == kernel.scale else _landmarks(request, scale)


def settle(shapes: Sequence[Shape], options: Options, *, unit: Unit = Unit.ROW) -> Settings[Layout]:
    """Return the settings of a build. The same options and shapes always give the same settings."""
    heads = sum(math.prod(shape.heads) for shape in shapes)
    multiplier = crude_multiplier(options.privacy, heads, options.group_rows)
    known: dict[Hashable, Kernel] = {}  # layers that want the same share one kernel, and its memory
    layouts = tuple(
        _layout(shape, options, (index, len(shapes)), multiplier, known)
        for index, shape in enumerate(shapes)
    )
    return Settings(
        layouts=layouts,
        privacy=options.privacy,
        unit=unit,
        group_rows=options.group_rows,
        rows_hint=options.rows_hint,
        leaks=options.leaks,
    )


def _layout(
    shape: Shape,
    options: Options,
    layer: tuple[int, int],
    multiplier: float,
    known: dict[Hashable, Kernel],
) -> Layout:
    """Return the layout of one of so many layers, with a kernel that is known if it can be."""
    key_norm, query_norm, value_norm = (
        options.number(name, *layer) for name in ("key_norm", "query_norm", "value_norm")
    )
    scale = None if options.scale is None else options.number("scale", *layer)
    tau = (
        default_tau(value_norm, shape.value_dim)
        if options.tau is None
        else options.number("tau", *layer)
    )
    kernel = options.kernel_of(*layer)
    if isinstance(kernel, Kernel):
        given = {"scale": scale, "key_norm": key_norm, "query_norm": query_norm}
        _check_kernel(kernel, shape, given)
    else:
        if scale is not None:
            check_logit(scale * key_norm * query_norm)
        check_tau(tau, value_norm)
        public_rows = options.public_rows_of(*layer, dim=shape.key_dim)
        norms = (key_norm, query_norm, value_norm)
        same = (kernel, shape.key_dim, shape.value_dim, scale, tau, norms, public_rows)
        if same not in known:
            request = Request(
                name=kernel,
                dim=shape.key_dim,
                scale=scale,
                key_norm=key_norm,
                query_norm=query_norm,
                eps_s=options.eps_s,
                features=options.features,
                goal=Goal(options.goal),
                public_rows=public_rows,
                spread=_spread(
                    options.rows_hint,
                    shape,
                    tau=tau / value_norm,
                    multiplier=multiplier,
                    sample=None if public_rows is None else Sample.of(public_rows.mixed / key_norm),
                ),
            )
            known[same] = choose(request)
        kernel = known[same]
    return Layout(
        kernel=kernel,
        heads=shape.heads,
        value_dim=shape.value_dim,
        value_norm=value_norm,
        tau=tau,
        resolution=value_resolution(multiplier, rows_hint=options.rows_hint),
    )


def _spread(
    rows: int | None, shape: Shape, *, tau: float, multiplier: float, sample: Sample | None
) -> Spread | None:
    """Return what answers will be like with the usual random features; None without a number."""
    if rows is None:
        return None
    return Spread(
        rows=rows,
        dim=shape.key_dim,
        value_dim=shape.value_dim,
        tau=tau,
        multiplier=multiplier,
        weight_error=random_error(FREQUENCIES),
        sample=sample,
    )


def _check_kernel(kernel: Kernel, shape: Shape, given: dict[str, float | None]) -> None:
    """Raise `InvalidInput` if a ready-made kernel contradicts the data's width or other options."""
    if kernel.dim != shape.key_dim:
        _validate.reject("kernel.dim", kernel.dim, f"the width of keys, {shape.key_dim}")
    defaults = {"scale": None, "key_norm": 1.0, "query_norm": 1.0}
    for name, value in given.items():
        own = getattr(kernel, name)
        if value not in (defaults[name], own):
            _validate.reject(name, value, f"left out, or the kernel's own {own}")


def error_on(kernel: Kernel, rows: Floats) -> float:
    """Return the error of answers against exact attention, without noise, over the keys' bound.

    Every other row asks. Root mean square over all numbers of all answers; infinite where the
    kernel's sum of weights is not positive.

    Args:
        kernel: any.
        rows: public, shape (n, d), two at least; longer ones are shortened to the bound.
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) / kernel.key_norm
    inside = rows / np.maximum(lengths, 1.0)
    keys, queries = inside[::2], inside[1::2] * (kernel.query_norm / kernel.key_norm)
    mapped = kernel.key_features(keys)
    features = mapped.features / kernel.unit
    if mapped.weights is not None:
        features = features * mapped.weights[:, None]
    values = np.concatenate([keys / kernel.key_norm, np.ones((len(keys), 1))], axis=1)
    clipped, _ = kernel.clip_queries(queries)
    sums = kernel.read(clipped[None], kernel.reading((features.T @ values)[None]))[0]
    if not np.all(sums[:, -1] > 0):
        return math.inf
    logits = kernel.scale * queries @ keys.T
    exact = np.exp(logits - kernel.largest_logit) @ values
    return math.sqrt(
        np.mean(np.square(sums[:, :-1] / sums[:, -1:] - exact[:, :-1] / exact[:, -1:]))
    )
