"""Answering from a released state, and its card: post-processing, so it costs no privacy, ever."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Literal, overload

from discreet._typing import Array
from discreet._validate import warn
from discreet.errors import MostlyNoiseWarning, NotCoveredWarning
from discreet.features.kernel import Evidence, Kernel
from discreet.features.public_rows import PublicRows
from discreet.privacy import Card
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.prediction import (
    matching_rows,
    mostly_noise,
    noise_of_sums,
    planned,
    rows_needed,
)
from discreet.readers.attention.reader import Reader
from discreet.readers.attention.reference import usual_points
from discreet.sums.asking import Placed, Question, ask
from discreet.sums.forecast import drawing, protection, protection_facts
from discreet.sums.release import Release, Released

MOSTLY_NOISE = "MOSTLY NOISE"


def card_of(released: Released[Layout]) -> Card:
    """Return the card of a memory.

    Args:
        released: the noisy sums, with what is public about them.
    """
    facts = _facts(released)
    return Card(tuple(facts.items()), tuple(_sentences(released, facts)))


def _facts(released: Released[Layout]) -> dict[str, object]:
    layout = released.layout
    kernel = layout.kernel
    noise = released.sigma * layout.real_unit
    facts: dict[str, object] = {
        **protection_facts(released),
        "noise_sigma": noise,
        "noise_sigma_lattice": released.sigma,
        "noise_multiplier": released.noise_multiplier,
        "key_norm": kernel.key_norm,
        "query_norm": kernel.query_norm,
        "value_norm": layout.value_norm,
        "tau": layout.real_tau,
        "scale": kernel.scale,
        "largest_logit": kernel.largest_logit,
        "kernel": kernel.describe(),
        "kernel_error": kernel.error,
        "kernel_error_meaning": kernel.error_meaning,
        **_points(layout),
        "worst_numerator_stderr": noise * kernel.bound,
        "worst_denominator_stderr": noise * kernel.bound / layout.real_tau,
        "rows_needed": rows_needed(layout, sigma=released.sigma),
        **_predicted(released),
        "heads": list(layout.heads),
        "key_dim": kernel.dim,
        "value_dim": layout.value_dim,
        "state_bytes": released.state.nbytes,
        "rows": released.rows,
        "rows_hint": released.rows_hint,
        "entropy": released.source,
        "version": released.version,
    }
    return facts


def _points(layout: Layout) -> dict[str, object]:
    """Return how many points of its builder's a memory is read near; nothing if it has no draws."""
    if not usual_points(layout.kernel):
        return {}
    return {"reference_points": 0 if layout.reference is None else len(layout.reference.rows)}


def _readout(layout: Layout) -> list[tuple[str, str]]:
    """Return the line that says near which points answers are read; none without draws."""
    if not usual_points(layout.kernel):
        return []
    own = "" if layout.reference is None else f"{len(layout.reference.rows):,} public points in "
    own += "this file, and " if own else ""
    return [("readout", f"random features; more exactly near {own}points that are spread evenly")]


def _predicted(released: Released[Layout]) -> dict[str, object]:
    said = planned(released)
    if said is None:
        return {}
    names = (
        "signal",
        "signal_to_error",
        "stderr",
        "noise_stderr",
        "kernel_stderr",
        "doubled_stderr",
    )
    return {f"predicted_{name}": getattr(said, name) for name in names}


def _sentences(released: Released[Layout], facts: dict[str, object]) -> list[tuple[str, str]]:
    layout, guarantee = released.layout, released.guarantee
    kernel = layout.kernel
    noise = (
        f"rounded Gaussian, σ = {facts['noise_sigma']:.6g} on each of the sums, "
        f"{drawing(released)}: {released.noise_multiplier:.6g} times what a "
        f"{guarantee.unit} can change in one head"
    )
    bounds = (
        f"‖key‖ ≤ {kernel.key_norm:g}, ‖query‖ ≤ {kernel.query_norm:g}, "
        f"‖value‖ ≤ {layout.value_norm:g}, enforced by clipping"
    )
    temperature = (
        f"logit = {kernel.scale:.6g}·⟨query, key⟩, at most {kernel.largest_logit:.6g}; "
        "fixed when the memory was built"
    )
    numerator = released.sigma * layout.real_unit * kernel.bound
    sums = noise_of_sums(numerator=numerator, denominator=numerator / layout.real_tau)
    said = planned(released)
    size = (
        f"{layout.head_count} head(s), {layout.columns} × {kernel.features:,} integers each, "
        f"{released.state.nbytes:,} bytes"
    )
    own = sum(array.nbytes for array in kernel.arrays().values())
    if own:
        size += f", and {own:,} of the kernel"
    if layout.reference is not None:
        size += f", and {4 * layout.reference.rows.size:,} of public points"
    if said is not None:
        size += f"; {said.of_more_features}"
    return [
        *protection(released),
        ("noise", noise),
        ("bounds", bounds),
        ("temperature", temperature),
        ("kernel", f"{kernel.describe()}; {kernel.error:.3g} {kernel.error_meaning}"),
        *_readout(layout),
        sums,
        matching_rows(rows_needed(layout, sigma=released.sigma)),
        *([] if said is None else [("prediction", said.verdict)]),
        *noise_warning([released]),
        ("size", size),
        ("entropy", released.source),
        ("made by", f"discreet {released.version}"),
    ]


def noise_warning(releases: Iterable[Released[Layout]]) -> list[tuple[str, str]]:
    """Return the line that says that answers are mostly noise, if they are predicted to be.

    No fact of a card: it depends on the noisy sums, and the length of a file does not.
    """
    text = mostly_noise(releases)
    return [] if text is None else [(MOSTLY_NOISE, text)]


# Weights are computed in float32 up to e^this; its range ends at e^88.
_LARGEST_FLOAT32_LOGIT = 40.0


# So many queries of a batch, or a few more, tell whether the kernel was made for such.
_LOOKED_AT = 16

_STRANGERS = (
    "Most of these queries are unlike the public rows that this memory was built with, so answers "
    "may be far off; their standard errors say how far. Other public rows, or a Fourier kernel, "
    "would do better."
)


class Memory(Release[Layout]):
    """Private attention: softmax(scale·QKᵀ)·V over keys and values that nobody can get out again.

    Made by `discreet.build` or `discreet.load`. (ε, δ)-private as `guarantee` says, for any number
    of adaptive queries, and for giving the whole object away. `docs/privacy.md`, "Memory".

    Queries are numpy arrays or torch tensors of shape (..., d), or (..., *heads, m, d) for a memory
    with heads; answers have the same kind, dtype and device, and torch differentiates through
    them. Queries longer than the public `query_norm` are clipped to it.

    Args:
        released: the noisy sums, with what is public about them.
    """

    kind = "discreet-memory"
    layout = Layout
    describe = staticmethod(card_of)

    def __init__(self, released: Released[Layout]) -> None:
        super().__init__(released)
        self._judged = False
        self._read: Callable[[Released[Layout]], Reader] = Reader.of

    @classmethod
    def of_release(cls, released: Iterable[Released[Layout]]) -> "list[Memory]":
        """Return the memories of one release, and warn once if their answers are mostly noise.

        Args:
            released: the noisy sums of each layer.
        """
        memories = [cls(each) for each in released]
        with suppress(MostlyNoiseWarning):  # an error to some: what is paid for is not thrown away
            _warn_of_noise(memories)
        return memories

    @property
    def kernel(self) -> Kernel:
        """The feature map, with its scale, bounds and error."""
        return self._released.layout.kernel

    @property
    def scale(self) -> float:
        """Logit = scale·⟨q, k⟩; fixed when the memory was built."""
        return self.kernel.scale

    @cached_property
    def plain(self) -> "Memory":
        """The same release, read without reference points: random features as they are, φ(q)·S.

        Linear in the released state, and unbiased over draws of frequencies; usually less exact.
        Memories with other kernels are read like this anyway.
        """
        other = type(self)(self._released)
        other._judged, other._read = self._judged, Reader.plain  # noqa: SLF001 (part of the class)
        return other

    def with_reference(self, points: Array = None) -> "Memory":
        """Return the same release, read near other public points.

        Random Fourier features are read more exactly near public points; other kernels are read as
        they are. Whoever has the file may do that: it is post-processing, and costs no privacy. A
        file that is saved has the points in it. `docs/errors.md`, "Reading near public points".

        Args:
            points: public rows like the private keys, or example queries like those that will be
                asked, shape (n, d), at least eight; 1,536 of them are taken at the most. Private
                rows must not be among them: points are no part of the guarantee. None for points
                that are spread evenly.
        """
        near = None if points is None else PublicRows(points, name="reference")
        layout = replace(self._released.layout, reference=near)
        return type(self)(replace(self._released, layout=layout))

    @cached_property
    def reader(self) -> Reader:
        """How to answer, as pure functions: for models that are compiled or exported.

        Made when it is first asked for. Of random Fourier features that takes about a second for
        2,048 of them, once (`docs/errors.md`, "Reading near public points").
        """
        return self._read(self._released)

    @cached_property
    def _placed(self) -> Placed:
        return Placed(self.reader.arrays)

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
        was built with `public_rows`; and with `MostlyNoiseWarning`, once, if answers of this memory
        are predicted to be mostly noise and nobody has been told.
        """
        _warn_of_noise([self])
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

    def differences(self, queries: Array) -> tuple[Array, Array]:
        """Return how far answers are from the base rate, and the standard error of each distance.

        The base rate is the answer to the query at the origin: the mean of all values. An answer
        within 1.96 standard errors of it is not clear of the noise: it may be the base rate, and no
        more. Shapes as `attend`. `docs/errors.md`, "Differences from the base rate".

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
        """
        _warn_of_noise([self])
        return self._ask(self._watching(self.reader.differences), queries)

    def noise_stderr(self, queries: Array) -> Array:
        """Return the standard error of the noise in each number of `attend`, without the kernel.

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
        """
        return self._ask(self.reader.answers_with_noise, queries)[1]

    def sums(self, queries: Array) -> tuple[Array, Array]:
        """Return AV, shape (..., d_v), and D, shape (...), before normalisation and clamping.

        AV = Σ_i exp(scale·⟨q, k_i⟩)·v_i and D = Σ_i exp(scale·⟨q, k_i⟩), with the noise.

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
        """
        [both] = self._ask(self.reader.sums, queries)
        return both[..., :-1], both[..., -1]

    def sums_stderr(self, queries: Array) -> tuple[Array, Array]:
        """Return the standard error of each entry of AV, and of D, both of shape (...).

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
        """
        [noise] = self._ask(self.reader.noise, queries)
        return noise[..., 0], noise[..., 0] / self._released.layout.real_tau

    def _ask(self, question: Question, queries: Array) -> tuple[Array, ...]:
        """Return what a reader answers, in the shape and dtype of the queries."""
        sharp = self.kernel.largest_logit > _LARGEST_FLOAT32_LOGIT
        norm = self.kernel.query_norm
        return ask(
            question, queries, self._released.layout, self._placed, norm=norm, in_float64=sharp
        )


def _warn_of_noise(memories: list[Memory]) -> None:
    """Warn if answers are predicted to be mostly noise: once for each memory, whoever asks."""
    new = [each for each in memories if not each._judged]  # noqa: SLF001 (part of the class)
    if new and (text := mostly_noise(each.released for each in new)) is not None:
        warn(text, MostlyNoiseWarning)
    for each in new:
        each._judged = True  # noqa: SLF001
