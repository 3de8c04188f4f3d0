"""Which kernel, and which temperature: from public numbers, and public rows if there are any."""

from dataclasses import dataclass, replace

from discreet.errors import InvalidInput
from discreet.kernels import Kernel, Landmarks, registry
from discreet.kernels.base import Wanted
from discreet.kernels.fourier import doublings, random_error
from discreet.kernels.public_rows import PublicRows
from discreet.kernels.trial import error_on
from discreet.memory.temperature import Goal, Spread

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
                "rows; or give a scale."
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
