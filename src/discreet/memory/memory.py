"""Answering from a released state: post-processing only, so it costs no privacy, ever."""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, overload

from discreet import _validate
from discreet._typing import Array
from discreet._warn import warn
from discreet.accounting import Receipt
from discreet.errors import NotCoveredWarning
from discreet.kernels import Kernel
from discreet.kernels.base import Evidence
from discreet.memory.asking import Question, ask
from discreet.memory.card import Card
from discreet.memory.layout import Layout
from discreet.memory.placed import Placed
from discreet.memory.reader import Reader
from discreet.memory.release import Released
from discreet.privacy import NOT_PRIVATE, Guarantee, rounded_up

# Weights are computed in float32 up to e^this; its range ends at e^88.
_LARGEST_FLOAT32_LOGIT = 40.0


# So many queries of a batch, or a few more, tell whether the kernel was made for such.
_LOOKED_AT = 16

_STRANGERS = (
    "Most of these queries are unlike the public rows that this memory was built with, so answers "
    "may be far off; their standard errors say how far. Other public rows, or a Fourier kernel, "
    "would do better."
)


class Memory:
    """Private attention: softmax(scale·QKᵀ)·V over keys and values that nobody can get out again.

    Made by `discreet.build` or `discreet.load`. (ε, δ)-private as `guarantee` says, for any number
    of adaptive queries, and for giving the whole object away. `docs/privacy.md`, "Memory".

    Queries are numpy arrays or torch tensors of shape (..., d), or (..., *heads, m, d) for a memory
    with heads; answers have the same kind, dtype and device, and torch differentiates through
    them. Queries longer than the public `query_norm` are clipped to it.
    """

    def __init__(self, released: Released[Layout]) -> None:
        _validate.instance("released", released, Released)
        _validate.instance("released.layout", released.layout, Layout)
        self._released = released

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        return f"<Memory{mark}, {self.nbytes:,} bytes, ε = {epsilon}>"

    @property
    def released(self) -> Released[Layout]:
        """The noisy state and its public settings."""
        return self._released

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for the whole release that this memory belongs to."""
        return self._released.guarantee

    @property
    def receipt(self) -> Receipt:
        """What was spent, made before the noise; `discreet.combine` adds receipts up."""
        return self._released.receipt

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
    def reader(self) -> Reader:
        """How to answer, as pure functions: for models that are compiled or exported."""
        return Reader.of(self._released)

    @cached_property
    def _placed(self) -> Placed:
        return Placed(self.reader.arrays)

    @cached_property
    def card(self) -> Card:
        """What is protected, how much, and from what. `str(card)`, `card.to_dict()`."""
        return Card.of(self._released)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file that answers queries anywhere, atomically; never pickle."""
        from discreet.memory.file import save

        save(self._released, path)

    @overload
    def attend(self, queries: Array, *, stderr: Literal[False] = False) -> Array: ...
    @overload
    def attend(self, queries: Array, *, stderr: Literal[True]) -> tuple[Array, Array]: ...

    def attend(self, queries: Array, *, stderr: bool = False) -> Array:
        """Return private attention, and how far each number is from exact attention.

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
            stderr: whether to return standard errors, too: of each number against exact attention
                over the rows at the same temperature, noise and kernel together. 1.96 of them hold
                95% of the time. (`noise_stderr` has the noise alone.) `docs/errors.md`.

        Returns:
            Shape (..., d_v), clamped to the ball of values. With `stderr`, a pair of arrays of that
            shape.

        Warns with `NotCoveredWarning` if most queries are unlike the public rows of a memory that
        was built with `public_rows`.
        """
        if stderr:
            return self._ask(self._watching(self.reader.answers_with_stderr), queries)
        return self._ask(self._watching(self.reader.answers), queries)[0]

    def _watching(self, question: Question) -> Question:
        """Return a question that warns if most queries are unlike what the kernel knows."""
        if self.kernel.evidence is not Evidence.RESIDUAL:
            return question

        def asked(rows: Array, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
            count = rows.shape[1]
            some = rows[:, :: max(count // _LOOKED_AT, 1)]
            if hasattr(some, "detach"):
                some = some.detach()
            if count and not bool(self.kernel.knows(some, arrays)):
                warn(_STRANGERS, NotCoveredWarning)
            return question(rows, arrays)

        return asked

    def noise_stderr(self, queries: Array) -> Array:
        """Return the standard error of the noise in each number of `attend`, without the kernel."""
        return self._ask(self.reader.answers_with_noise, queries)[1]

    def sums(self, queries: Array) -> tuple[Array, Array]:
        """Return AV, shape (..., d_v), and D, shape (...), before normalisation and clamping.

        AV = Σ_i exp(scale·⟨q, k_i⟩)·v_i and D = Σ_i exp(scale·⟨q, k_i⟩), with the noise.
        """
        [both] = self._ask(self.reader.sums, queries)
        return both[..., :-1], both[..., -1]

    def sums_stderr(self, queries: Array) -> tuple[Array, Array]:
        """Return the standard error of each entry of AV, and of D, both of shape (...)."""
        [noise] = self._ask(self.reader.noise, queries)
        return noise[..., 0], noise[..., 0] / self._released.layout.real_tau

    def _ask(self, question: Question, queries: Array) -> tuple[Array, ...]:
        """Return what a reader answers, in the shape and dtype of the queries."""
        sharp = self.kernel.largest_logit > _LARGEST_FLOAT32_LOGIT
        norm = self.kernel.query_norm
        return ask(
            question, queries, self._released.layout, self._placed, norm=norm, in_float64=sharp
        )
