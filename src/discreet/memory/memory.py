"""Answering from a released state: post-processing only, so it costs no privacy, ever."""

import math
import os
from functools import cached_property
from typing import Any, Literal, overload

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.kernels import Kernel
from discreet.kernels.placed import Placed
from discreet.memory.card import Card
from discreet.memory.queries import Queries
from discreet.memory.release import NOT_PRIVATE, Released
from discreet.noise import RoundedGaussian
from discreet.privacy import Guarantee

# So many query features at a time; memory does not grow with the number of queries beyond that.
_FEATURES_AT_ONCE = 2**24

# The number of rows is estimated from the noisy state; the truth is within this many standard
# errors of it 399 times in 400.
_CERTAIN = 3.0


class Memory:
    """Private attention: softmax(scale·QKᵀ)·V over keys and values that nobody can get out again.

    Made by `discreet.build` or `discreet.load`. (ε, δ)-private as `guarantee` says, for any number
    of adaptive queries, and for giving the whole object away. `docs/privacy.md`, "Memory".

    Queries are numpy arrays or torch tensors of shape (..., d), or (..., *heads, m, d) for a memory
    with heads; answers have the same kind, dtype and device, and torch differentiates through
    them. Queries longer than the public `query_norm` are clipped to it.
    """

    def __init__(self, released: Released) -> None:
        _validate.instance("released", released, Released)
        self._released = released
        self._placed = Placed()

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        return f"<Memory{mark}, {self.nbytes:,} bytes, ε = {self.guarantee.epsilon:.4g}>"

    @property
    def released(self) -> Released:
        """The noisy state and its public settings."""
        return self._released

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for the whole release that this memory belongs to."""
        return self._released.guarantee

    @property
    def private(self) -> bool:
        """False if the noise came from a test source."""
        return self._released.private

    @property
    def kernel(self) -> Kernel:
        """The feature map, with its scale, bounds and error."""
        return self._released.layout.kernel

    @property
    def heads(self) -> tuple[int, ...]:
        """Leading axes that queries must have before (m, d); () for one head."""
        return self._released.layout.heads

    @property
    def scale(self) -> float:
        """Logit = scale·⟨q, k⟩; fixed when the memory was built."""
        return self.kernel.scale

    @property
    def nbytes(self) -> int:
        """Bytes of the state; they do not depend on the number of rows."""
        return self._released.state.nbytes

    @cached_property
    def card(self) -> Card:
        """What is protected, how much, and from what. `str(card)`, `card.to_dict()`."""
        return Card.of(self._released)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file that answers queries anywhere, atomically; never pickle."""
        from discreet.memory.file import save

        save(self._released, path)

    @overload
    def attend(self, queries: Any, *, stderr: Literal[False] = False) -> Any: ...  # noqa: ANN401
    @overload
    def attend(self, queries: Any, *, stderr: Literal[True]) -> tuple[Any, Any]: ...  # noqa: ANN401

    def attend(self, queries: Any, *, stderr: bool = False) -> Any:
        """Return private attention, and how far each number is from its noiseless value.

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
            stderr: whether to return the standard error of the noise, too. It does not include the
                kernel's own error (`memory.kernel.error`).

        Returns:
            Shape (..., d_v), clamped to the ball of values. With `stderr`, a pair of arrays of that
            shape.
        """
        flat = Queries.of(queries, self._released.layout)
        xp, (rows, squared) = flat.xp, self.kernel.clip_queries(flat.rows)
        # Numerators and denominators share a factor, which is left out.
        sums = self._reduced_sums(xp, rows)
        den = self._clamped(xp, squared, sums[..., -1:])
        out = sums[..., :-1] / den
        norm = self._released.layout.value_norm
        relative = out if norm == 1 else out * (1 / norm)
        length = xp.sum(relative * relative, axis=-1, keepdims=True)
        one = self._placed.get("one", out, lambda: np.ones(1))
        inside = out / xp.sqrt(xp.maximum(length, one))
        if not stderr:
            return flat.back(inside)
        noise = self._noise(squared) / self._factor(xp, squared) / den
        spread = xp.sqrt(1 + (inside / self._released.layout.real_tau) ** 2)
        return flat.back(inside), flat.back(noise * spread)

    def sums(self, queries: Any) -> tuple[Any, Any]:  # noqa: ANN401
        """Return AV, shape (..., d_v), and D, shape (...), before normalisation and clamping.

        AV = Σ_i exp(scale·⟨q, k_i⟩)·v_i and D = Σ_i exp(scale·⟨q, k_i⟩), with the noise.
        """
        flat = Queries.of(queries, self._released.layout)
        rows, squared = self.kernel.clip_queries(flat.rows)
        reduced = self._reduced_sums(flat.xp, rows)
        sums = flat.back(reduced * self._factor(flat.xp, squared))
        return sums[..., :-1], sums[..., -1]

    def sums_stderr(self, queries: Any) -> tuple[Any, Any]:  # noqa: ANN401
        """Return the standard error of each entry of AV, and of D, both of shape (...)."""
        flat = Queries.of(queries, self._released.layout)
        _, squared = self.kernel.clip_queries(flat.rows)
        noise = flat.back(self._noise(squared))[..., 0]
        return noise, noise / self._released.layout.real_tau

    @cached_property
    def _deviation(self) -> float:
        """The standard deviation of the noise on one entry of the state, in real units."""
        law = RoundedGaussian(sigma=self._released.sigma)
        return math.sqrt(law.variance) * self._released.layout.real_unit

    def _noise(self, squared: Any) -> Any:  # noqa: ANN401
        """Return the standard error of a numerator: σ·‖φ(q)‖."""
        return self.kernel.query_norms(squared) * self._deviation

    def _factor(self, xp: Any, squared: Any) -> Any:  # noqa: ANN401
        """Return what `_reduced_sums` leaves out: e^(s·t/2) for squared lengths s, or one."""
        exponent = self.kernel.largest_logit / 2 if self.kernel.grows else 0.0
        return xp.exp(squared * exponent)

    def _reduced_sums(self, xp: Any, rows: Any) -> Any:  # noqa: ANN401
        """Return numerators and denominators over `_factor`: (heads, m, d) to (..., d_v + 1)."""
        readouts = [
            self._placed.get(f"readout {index}", rows, part.view)
            for index, part in enumerate(self._readouts)
        ]
        at_once = max(_FEATURES_AT_ONCE // (self.kernel.features * rows.shape[0]), 1)
        pieces = [
            self.kernel.read(rows[:, start : start + at_once], readouts)
            for start in range(0, max(rows.shape[1], 1), at_once)
        ]
        return pieces[0] if len(pieces) == 1 else xp.concat(pieces, axis=1)

    @cached_property
    def _readouts(self) -> list[NDArray[np.float64]]:
        """The state in real units, τ divided out, as the kernel reads it."""
        layout = self._released.layout
        real = self._released.state.astype(np.float64) * layout.real_unit
        real[:, -1] /= layout.real_tau
        return self.kernel.readouts(np.asarray(real.swapaxes(1, 2)))

    def _clamped(self, xp: Any, squared: Any, den: Any) -> Any:  # noqa: ANN401
        """Return denominators (over `_factor`) within what n rows can give: n·e^-t to n·e^t.

        The number of rows is public, or estimated from the noisy state.
        """
        edge = math.exp(self.kernel.largest_logit)
        low = self._placed.get("least", den, lambda: self._mass[0][:, None, None] / edge)
        high = self._placed.get("most", den, lambda: self._mass[1][:, None, None] * edge)
        if self.kernel.grows:
            low = low / self._factor(xp, squared)
        return xp.minimum(xp.maximum(den, low), high)

    @cached_property
    def _mass(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds on Σ_i 1 (for records: of their factors) in each head."""
        if self._released.rows is not None:
            rows = np.full(self._released.layout.head_count, float(max(self._released.rows, 1)))
            return rows, rows
        heads = self._released.layout.head_count
        origin, nothing = np.zeros((heads, 1, self.kernel.dim)), np.zeros((heads, 1, 1))
        xp = array_api_compat.array_namespace(origin)
        estimate = self._reduced_sums(xp, origin)[:, 0, -1]
        margin = _CERTAIN * self._noise(nothing)[:, 0, 0] / self._released.layout.real_tau
        return np.maximum(estimate - margin, 1.0), np.maximum(estimate + margin, 1.0)
