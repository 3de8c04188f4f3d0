"""Small attention layers and models, with logits that bounds from weights can hold."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

from torch import nn

# Tests run side by side: threads would only get into each other's way.
torch.set_num_threads(1)


def joint_distance(one, other):
    """How far two releases without noise are apart, in units of what is claimed: at most one.

    Exactly, over all heads: √(Σ (‖ΔS‖/s)²/heads), where s is a head's sensitivity.
    """
    squared = 0.0
    for a, b in zip(one, other, strict=True):
        moved = (a.released.state - b.released.state).ravel()
        sensitivity = a.released.sigma / a.released.mechanism.sigma
        squared += sum(int(x) ** 2 for x in moved) / sensitivity**2
    heads = one[0].released.mechanism.sensitivity ** 2
    return math.sqrt(squared / heads)


def multihead(embed=16, heads=2, *, seed=0, shrink=0.6, **options):
    """A `MultiheadAttention` with biases that are not zero."""
    torch.manual_seed(seed)
    mha = nn.MultiheadAttention(embed, heads, batch_first=True, **options)
    with torch.no_grad():
        for name, weight in mha.named_parameters():
            if name.endswith("bias"):
                weight.normal_(0, 0.3)
            elif "in_proj" in name or name[:2] in {"q_", "k_"}:
                weight.mul_(shrink)
    return mha.eval()


def layer_norm(width, *, seed=1):
    """A LayerNorm with weights of its own."""
    torch.manual_seed(seed)
    norm = nn.LayerNorm(width)
    with torch.no_grad():
        norm.weight.normal_(1, 0.2)
        norm.bias.normal_(0, 0.3)
    return norm


def rows(*shape, seed=2):
    """Normal numbers."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).float()
