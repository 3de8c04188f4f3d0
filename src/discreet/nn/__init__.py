"""Private cross-attention for PyTorch. Needs the extra `torch`.

Follow a row of the context: `records` (each encoded alone) → `attention` (the front door; `model`
for all layers of somebody else's model) → `heads` (the public weights, which make keys and values
of rows, exactly and one by one) → `bounds` (public) → `building` → `discreet.sums`. A query goes
through `attention` → `reading`. `bounded` has an attention layer to train for it.
"""

from discreet.nn.attention import (
    PrivateCrossAttention,
    attach,
    from_multihead,
    from_multiheads,
)
from discreet.nn.bounded import BoundedAttention, Rehearsal
from discreet.nn.bounds import Bounds, bounds_of, calibrate
from discreet.nn.records import Encoded, encode_alone

__all__ = [
    "BoundedAttention",
    "Bounds",
    "Encoded",
    "PrivateCrossAttention",
    "Rehearsal",
    "attach",
    "bounds_of",
    "calibrate",
    "encode_alone",
    "from_multihead",
    "from_multiheads",
]
