"""Several memories to be read at once, one head beside the other.

Heads of one model differ in their bounds and temperatures, so each has a kernel of its own. As long
as the kernels are alike but for such numbers, the numbers become arrays with one entry a head, and
one product answers for all heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.errors import InvalidInput
from discreet.kernels import Kernel
from discreet.memory.memory import Memory

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
        if name not in kernel.for_errors
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
