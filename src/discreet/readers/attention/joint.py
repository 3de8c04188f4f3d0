"""Several memories that are read at once, as the heads of one model.

The heads of a model differ in their bounds and temperatures, so each has a kernel of its own. As
long as the kernels are alike but for such numbers, the numbers become arrays with one entry for
each head, and one product answers for all heads.

A model makes linear combinations y = Σ_h W_h·o_h of the answers o_h of all heads. Their standard
errors, given the released states, are post-processing, as everything that a reader does:

- The noise of different heads, and of different columns of values, is independent; the columns of a
  head share the noise of its denominator. With s the standard error of a numerator over the
  denominator, a combination w of one head's answers o has the variance s²·(‖w‖² + ⟨w, o⟩²/τ²).
- Heads may share their random frequencies, so the errors of their kernels are not independent. The
  jackknife leaves a block of frequencies out of all heads at once, and so sees their joint effect.
- A certified error bounds how far an average of numbers within ±‖w‖·value_norm can move, as a share
  of ‖w‖·value_norm. Certified errors of heads are added: that holds whatever they have in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.features.kernel import Evidence, Kernel
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.reader import WITHIN, Reader
from discreet.readers.attention.readout import FOR_ERRORS

# Weights are computed in float32 up to e^this; its range ends at e^88.
_LARGEST_FLOAT32_LOGIT = 40.0


@dataclass(frozen=True)
class Joint:
    """Several states that are read at once; the numbers that are the same for all heads.

    Attributes:
        kernel: whose `read` reads for all heads.
        heads: of all memories together.
        value_dim: d_v.
        in_float64: whether float32 would not do.
    """

    kernel: Kernel
    heads: int
    value_dim: int
    in_float64: bool


def join(memories: Sequence[Memory]) -> tuple[Joint, dict[str, NDArray[Any]]]:
    """Return how to read memories at once, and the arrays for it, in float64 and whole numbers.

    For a query q, in units of its head's bound (`query_norm`) and shortened to length one:
    `kernel.read(q·query_unit, arrays)` are numerators and, last, denominators over
    e^(exponent·‖q‖²); denominators are within least·e^(-exponent·‖q‖²) and most; answers no longer
    than `value_norm`. Each of these is an array of shape (heads, 1, 1).

    Args:
        memories: of the same widths, whose kernels are of one kind with as many features; heads
            follow each other in their order.
    """
    for each in memories:
        _validate.instance("memories", each, Memory)
    kernel, width = memories[0].kernel, memories[0].released.layout.value_dim
    if not all(
        kernel.reads_like(each.kernel) and each.released.layout.value_dim == width
        for each in memories
    ):
        raise InvalidInput("Expected memories with kernels of one kind and the same widths.")
    counts = [each.released.layout.head_count for each in memories]
    own = [each.reader.arrays for each in memories]
    arrays = {
        name: _joined([part[name] for part in own], counts)
        for name in own[0]
        if name not in kernel.for_errors | FOR_ERRORS
    }

    def by_head(numbers: Sequence[float]) -> NDArray[Any]:
        return np.repeat(np.array(numbers), counts)[:, None, None]

    kernels = [each.kernel for each in memories]
    arrays |= {
        "query_norm": by_head([each.query_norm for each in kernels]),
        "query_unit": by_head(
            [each.query_norm * each.query_unit / kernel.query_unit for each in kernels]
        ),
        "exponent": by_head([each.query_exponent for each in kernels]),
        "value_norm": by_head([each.released.layout.value_norm for each in memories]),
    }
    sharp = max(each.largest_logit for each in kernels) > _LARGEST_FLOAT32_LOGIT
    return Joint(kernel, sum(counts), width, in_float64=sharp), arrays


def _joined(parts: Sequence[NDArray[Any]], counts: Sequence[int]) -> NDArray[Any]:
    """Return one array for all heads; what is the same for all is kept once."""
    first = parts[0]
    if first.ndim < 3 and all(np.array_equal(first, part) for part in parts):
        return first
    return np.concatenate(
        [
            part if part.ndim == 3 else np.broadcast_to(part, (count, *part.shape))
            for part, count in zip(parts, counts, strict=True)
        ]
    )


class _Sum(NamedTuple):
    """A combination over some heads, and what its error is made of. Sums of heads add up.

    Attributes:
        answers: shape (m, e).
        variance: of the noise, likewise.
        variance_of_rest: of the part of it that blocks of draws have.
        left_out: what answers are without each block of draws, shape (blocks, m, e).
        doubt: the mean square of what is lost near reference points, shape (m, e).
        bound: of all else that can be wrong, in standard errors, shape (m, e).
        longest: no number of exact attention is larger, shape (1, e).
    """

    answers: Array
    variance: Array
    variance_of_rest: Array
    left_out: Array
    doubt: Array
    bound: Array
    longest: Array


def combined_stderr(
    readers: Sequence[Reader],
    arrays: Sequence[Mapping[str, Array]],
    rows: Array,
    weights: Array,
) -> Array:
    """Return the standard error of each number of Σ W·(answers) against exact attention, (m, e).

    Noise and kernels together; 1.96 of them hold 95% of the time (`docs/errors.md`).

    Args:
        readers: of the memories, whose kernels are of one kind; heads follow each other.
        arrays: those of each reader, in the library and on the device of the queries.
        rows: queries, finite, shape (heads, repeats, m, d): so many ask one head, for one number.
        weights: W, shape (heads, repeats, e, d_v).
    """
    parts, start = [], 0
    for reader, own in zip(readers, arrays, strict=True):
        end = start + reader.layout.head_count
        parts.append(_of_reader(reader, rows[start:end], weights[start:end], own))
        start = end
    total = _Sum(*(sum(some[1:], start=some[0]) for some in zip(*parts, strict=True)))
    xp = namespace(rows)
    apart = total.left_out - xp.mean(total.left_out, axis=0, keepdims=True)
    jackknife = xp.sum(apart * apart, axis=0) * ((len(apart) - 1) / len(apart))
    beyond = jackknife - total.variance_of_rest
    kernel = xp.maximum(beyond, xp.zeros_like(beyond)) + total.doubt
    error = xp.sqrt(total.variance + kernel * readers[0].widening ** 2) + total.bound
    return xp.minimum(error, (xp.abs(total.answers) + total.longest) / WITHIN)


def _of_reader(reader: Reader, rows: Array, weights: Array, arrays: Mapping[str, Array]) -> _Sum:
    """Return what the heads of one memory add."""
    xp, norm = namespace(rows), reader.layout.value_norm
    heads, repeats, count, dim = rows.shape
    flat = xp.reshape(rows, (heads, repeats * count, dim))
    turned = xp.permute_dims(weights, (0, 1, 3, 2))  # (heads, repeats, d_v, e)
    lengths = xp.sqrt(xp.sum(turned * turned, axis=-2, keepdims=True))
    longest = xp.sum(lengths, axis=(0, 1)) * norm

    def by_repeat(numbers: Array) -> Array:
        return xp.reshape(numbers, (heads, repeats, count, numbers.shape[-1]))

    if reader.kernel.evidence is Evidence.RESIDUAL:
        # All that is known is of single numbers: as if all were wrong together.
        answers, error = (by_repeat(each) for each in reader.answers_with_stderr(flat, arrays))
        answers, bound = (
            xp.sum(each @ by, axis=(0, 1))
            for each, by in ((answers, turned), (error, xp.abs(turned)))
        )
        none = xp.zeros_like(answers)
        return _Sum(answers, none, none, none[None], none, bound, longest)
    known = reader.known(flat, arrays)
    answers, tau = by_repeat(known.answers) @ turned, reader.layout.real_tau / norm

    def together(deviations: Array) -> Array:
        """Return the variance: what several queries ask of one head is wrong together."""
        return xp.sum(xp.sum(deviations, axis=1) ** 2, axis=0) * norm**2

    def variance(noise: Array) -> Array:
        each = noise * lengths
        # The square of an answer is larger than the truth's, by the variance of its noise.
        true = xp.maximum((answers / norm) ** 2 - each * each, xp.zeros_like(answers))
        return together(xp.sqrt(each * each + (noise / tau) ** 2 * true))

    blocks = known.left_out.shape[1]
    left_out = xp.reshape(known.left_out, (heads, blocks, repeats, count, -1))
    left_out = xp.sum(left_out @ turned[:, None], axis=(0, 2)) * norm
    return _Sum(
        xp.sum(answers, axis=(0, 1)),
        variance(by_repeat(known.noise)),
        variance(by_repeat(known.noise_of_rest)),
        left_out,
        together(xp.sqrt(by_repeat(known.doubt) @ (turned * turned))),
        xp.sum(by_repeat(known.certified) * lengths, axis=(0, 1)),
        longest,
    )
