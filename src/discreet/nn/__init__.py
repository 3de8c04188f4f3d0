"""Private cross-attention for PyTorch. Needs the extra `torch`.

A model's public weights make keys and values of the private rows, and queries are answered from
one release of all layers and heads.
"""

from discreet.nn.attention import (
    PrivateCrossAttention,
    attach,
    from_multihead,
    from_multiheads,
)
from discreet.nn.bounded import BoundedAttention, Rehearsal
from discreet.nn.bounds import Bounds, bounds_of, calibrate
from discreet.nn.building import Encoded, encode_alone
from discreet.nn.causal import CausalBlock, PrivateCausalAttention, PrivateCausalStack

__all__ = [
    "BoundedAttention",
    "Bounds",
    "CausalBlock",
    "Encoded",
    "PrivateCausalAttention",
    "PrivateCausalStack",
    "PrivateCrossAttention",
    "Rehearsal",
    "attach",
    "bounds_of",
    "calibrate",
    "encode_alone",
    "from_multihead",
    "from_multiheads",
]
