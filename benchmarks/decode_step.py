"""What one token costs a private attention layer, over its bare arithmetic.

Run: python benchmarks/decode_step.py (half a minute; needs torch). Both are timed in turns, in one
run: a module's call, and the products, cosines and sines (or monomials) that it cannot do without.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from discreet.nn import PrivateCrossAttention, from_multihead
from discreet.testing import Silent

ROUNDS = 600


def layer(width: int, heads: int, logit: float) -> PrivateCrossAttention:
    """Return a private layer with logits up to a bound."""
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(width, heads, batch_first=True)
    options = {"epsilon": 1.0, "delta": 1e-6, "entropy": Silent(), "features": 2048}
    return from_multihead(attention, torch.randn(300, width), largest_logit=logit, **options).eval()


def arithmetic(private: PrivateCrossAttention, query: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Return the bare arithmetic of one call."""
    state = dict(private.heads.named_buffers())
    heads, width = private.num_heads, query.shape[-1]

    def run() -> torch.Tensor:
        rows = private.q_proj(query).reshape(heads, 1, width // heads) @ state["query_map"]
        if "frequencies" in state:
            angles = rows @ state["frequencies"]
            sums = torch.cos(angles) @ state["cosines"] + torch.sin(angles) @ state["sines"]
        else:
            sums = private.heads.joint.kernel.read(rows, state)
        return private.out_proj((sums[..., :-1] / sums[..., -1:]).reshape(1, 1, width))

    return run


def main() -> None:
    """Time both, and print their ratio."""
    torch.set_num_threads(1)
    for width, heads, logit in ((512, 8, 8.0), (64, 8, 1.0)):
        private = layer(width, heads, logit)
        query = torch.randn(1, 1, width)
        calls = (lambda: private(query), arithmetic(private, query))  # noqa: B023 (called here)
        times: list[list[float]] = [[], []]
        with torch.inference_mode():
            for turn in range(ROUNDS + 50):
                for call, spent in zip(calls, times, strict=True):
                    start = time.perf_counter()
                    call()
                    if turn >= 50:
                        spent.append(time.perf_counter() - start)
        whole, bare = (1e3 * float(np.median(each)) for each in times)
        print(
            f"{private.heads.joint.kernel.describe()}, {heads} heads: {whole:.2f} ms, arithmetic "
            f"{bare:.2f} ms, {whole / bare:.2f} times"
        )


if __name__ == "__main__":
    main()
