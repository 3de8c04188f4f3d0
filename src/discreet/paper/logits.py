"""What is public about the logits of a softmax: where keys and queries lie, and the kernel."""

import math
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.features.taylor import Taylor
from discreet.paper.box import Box
from discreet.paper.net import Net
from discreet.paper.structure import public_bound

# How far snapping may move a logit: a finer net would cost copies and bring nothing, and a coarser
# one would answer many queries alike.
_MOVES = 0.01, 0.1
# e to a larger power leaves float64.
_MOST_MOVE = 700.0

# The logarithm of the smallest range of a feature, squared twice, that is still a normal number.
_LEAST_LOG_RANGE = -170.0


@dataclass(frozen=True)
class Logits:
    """Keys in a box, queries in [0, upper]^d, and the kernel for them.

    Keys lie in the box, which is shifted to begin at zero: that multiplies the weights of a query
    by exp(-scale·lower·Σ_j y_j), all alike, which softmax does not see and sums are divided by.

    Attributes:
        box: of the keys; its lower end is at most zero.
        kernel: P, on [0, side]^d.
        reach: how far a logit moves if each coordinate of the query moves by one: scale·d·side.
    """

    box: Box
    kernel: Taylor
    reach: float

    @classmethod
    def of(
        cls,
        dim: int,
        box: Box,
        *,
        eps_s: float | None,
        degree: int | None,
        scale: float | None,
    ) -> "Logits":
        """Return the logits of the paper, scale 1/d, or of another scale or degree."""
        _validate.real("lower", box.lower, at_most=0)  # queries are not shifted
        public_bound("upper", box.upper)
        kernel = Taylor.on_box(
            dim,
            upper=box.side,
            eps_s=eps_s,
            degree=degree,
            scale=scale,
            query_upper=box.upper,
        )
        _check_features(kernel, box.side)
        return cls(box, kernel, box.side if scale is None else scale * dim * box.side)

    def net(self, eps_0: float | None) -> Net:
        """Return the net on [0, upper]^d; by default, snapping moves a logit by at most ε_s.

        If there is a degree and no ε_s: by the kernel's error, but not less than a hundredth nor
        more than a tenth.
        """
        error = self.kernel.eps_s
        if eps_0 is None:
            least, most = _MOVES
            moved = min(max(self.kernel.error, least), most) if error is None else error
            eps_0 = moved / self.reach
        return Net(self.box.upper, eps_0, self.kernel.dim)

    def snapped_error(self, net: Net) -> float:
        """Return (1 + ε_s)·e^(reach·ε_0) - 1: snapping moves a logit that far; errors multiply."""
        moved = self.reach * net.radius
        if moved > _MOST_MOVE:
            return math.inf
        return (1 + self.kernel.error) * math.exp(moved) - 1

    def inside(self, queries: Floats) -> Floats:
        """Return queries, clipped to [0, upper]."""
        return np.clip(queries, 0.0, self.box.upper)

    def unshifted(self, queries: Floats) -> Floats:
        """Return exp(scale·lower·Σ_j y_j) for each query: what shifted sums are multiplied by."""
        total = self.inside(queries).sum(axis=-1)
        return np.asarray(np.exp(self.kernel.scale * self.box.lower * total))


def _check_features(kernel: Taylor, side: float) -> None:
    """Raise `InvalidInput` if a feature's range would vanish in float64.

    Without making features, of which there may be more than fit in memory: the smallest range of
    degree j is that of a single coordinate's power, (R·√scale)^j/√j!.
    """
    base = math.log(side) + 0.5 * math.log(kernel.scale)
    degree = kernel.degree or 0
    smallest = min(j * base - 0.5 * math.lgamma(j + 1) for j in range(degree + 1))
    if smallest < _LEAST_LOG_RANGE:
        _validate.reject("degree", degree, "smaller for logits as small as these: features vanish")
