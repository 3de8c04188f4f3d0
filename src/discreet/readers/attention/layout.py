"""The public shape of one memory, and which kernel it has: fixed before a row is read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.features import registry
from discreet.features.fourier import FREQUENCIES, Fourier, doublings, random_error
from discreet.features.kernel import Kernel, Wanted
from discreet.features.landmarks import Landmarks
from discreet.features.public_rows import MOST_POINTS, PublicRows
from discreet.readers.attention import reference
from discreet.readers.attention.error_model import ErrorModel, Goal
from discreet.readers.attention.readout import Readout
from discreet.sums.layout import ValueLayout


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
        reference: public points near which answers are read more exactly; None for the usual ones.
    """

    noun: ClassVar[tuple[str, str]] = ("memory", "memories")

    kernel: Kernel
    reference: PublicRows | None = None

    def __post_init__(self) -> None:
        registry.KERNELS.check_registered(self.kernel)
        super().__post_init__()
        if self.reference is not None:
            if self.reference.dim != self.kernel.dim:
                shape, wanted = self.reference.rows.shape, f"as wide as keys are, {self.kernel.dim}"
                _validate.reject("reference", shape, wanted)
            few = len(self.reference.rows) <= MOST_POINTS
            points = self.reference.rows if few else self.reference.mixed[:MOST_POINTS]
            lengths = np.linalg.norm(points, axis=1, keepdims=True) / self.kernel.key_norm
            # A length that is one but for its last bit differs from machine to machine.
            longer = np.where(lengths > 1 + 1e-9, lengths, 1.0)
            points = (points / longer).astype(np.float32)  # as files keep them
            object.__setattr__(self, "reference", PublicRows(points, name="reference"))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of the kernel, and the reference points if there are some."""
        if self.reference is None:
            return super().arrays()
        return {**super().arrays(), "reference": self.reference.rows.astype(np.float32)}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Layout":
        """Return the layout with these `parameters`, and these arrays of its kernel.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        points = arrays.get("reference")
        return cls(
            kernel=registry.KERNELS.restore(parameters["kernel"], arrays),
            reference=None if points is None else PublicRows(points, name="reference"),
            heads=tuple(parameters["heads"]),
            **{name: parameters[name] for name in ("value_dim", "value_norm", "tau", "resolution")},
        )


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
    spread: ErrorModel | None

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

    def scale_for(self, weight_error: float, *, drawn: bool = True) -> float:
        """Return the scale that was asked for, or the one recommended for such a kernel.

        Args:
            weight_error: of the kernel.
            drawn: whether it has random features, which are read near points.
        """
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
        reach, points = self.key_norm * self.query_norm, self.spread.points if drawn else 0
        spread = replace(self.spread, weight_error=weight_error, points=points)
        return spread.recommended_scale(reach, self.goal)


def choose(request: Request) -> Kernel:
    """Return the kernel, at the temperature that is chosen together with it.

    Random features: the fewest whose error the noise hides, or the most allowed. With public rows
    "auto" tries landmarks, and takes them where they do better on rows that were kept back than
    random features that are read near the other rows.
    """
    kernel = registry.choose(request.name, request.wanted(*_at_frequencies(request)))
    if request.name == Landmarks.kind:
        return _at_its_own_scale(request, kernel)
    if request.name != registry.AUTO or request.public_rows is None:
        return kernel
    landmarks = _landmarks(request, kernel.scale)
    held_back = request.public_rows.held_back
    few = len(held_back) < _ENOUGH
    if few or error_on(landmarks, held_back) >= _error_near(kernel, request.public_rows):
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
    scale = request.scale_for(kernel.weight_error, drawn=False)
    return kernel if scale == kernel.scale else _landmarks(request, scale)


def _error_near(kernel: Kernel, public_rows: PublicRows) -> float:
    """Return the same as `error_on`, read near the rows that are not kept back."""
    rows = public_rows.held_back
    if not isinstance(kernel, Fourier):
        return error_on(kernel, rows)
    # Few frequencies tell what many would do, and do not take as long to fit.
    some = replace(kernel, frequencies=min(kernel.frequencies, FREQUENCIES), stored=None)
    return _error_of(some, public_rows) * math.sqrt(some.frequencies / kernel.frequencies)


@lru_cache(maxsize=16)  # plans for several ε ask the same again
def _error_of(kernel: Fourier, public_rows: PublicRows) -> float:
    """Return the error on rows that are kept back, read near the others."""
    rows = public_rows.held_back
    points = PublicRows(public_rows.mixed[len(rows) :][:MOST_POINTS])
    return error_on(kernel, rows, points)


def error_on(kernel: Kernel, rows: Floats, points: PublicRows | None = None) -> float:
    """Return the error of answers against exact attention, without noise, over the keys' bound.

    Every other row asks. Root mean square over all numbers of all answers; infinite where the
    kernel's sum of weights is not positive.

    Args:
        kernel: any.
        rows: public, shape (n, d), two at least; longer ones are shortened to the bound.
        points: public rows to read random features near; None to read as the kernel has it.
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
    arrays = kernel.reading((features.T @ values)[None])
    if points is not None and isinstance(kernel, Fourier):
        noise = np.zeros(values.shape[1])
        arrays = reference.fit(kernel, arrays, points, noise=noise, value_norm=1.0, heads=1)
    sums = Readout(kernel).sums(clipped[None], arrays)[0]
    if not np.all(sums[:, -1] > 0):
        return math.inf
    logits = kernel.scale * queries @ keys.T
    exact = np.exp(logits - kernel.largest_logit) @ values
    return math.sqrt(
        np.mean(np.square(sums[:, :-1] / sums[:, -1:] - exact[:, :-1] / exact[:, -1:]))
    )
