"""Private cross-attention for PyTorch. Needs the extra `torch`.

Follow a row of the context: `alone` (records, each encoded alone) → `attention` (the front door) →
`heads` (the model's public weights) → `bounds` or `calibration` (public bounds) → `building` with
`projection` (keys and values, exact and row by row) → `discreet.sums`. A query goes through
`attention` → `reading`. `bounded` has an attention layer to train for it, and `rehearsal` the noise
that it will have.
"""

from discreet.nn.alone import Encoded, encode_alone
from discreet.nn.attention import (
    PrivateCrossAttention,
    attach,
    from_multihead,
    from_multiheads,
)
from discreet.nn.bounded import BoundedAttention
from discreet.nn.bounds import Bounds, bounds_of
from discreet.nn.calibration import calibrate
from discreet.nn.rehearsal import Rehearsal

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
