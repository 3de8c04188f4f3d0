"""Private context for encoder-decoder models of transformers. Needs the extra `transformers`.

`privatize` is the front door: `context` (passages, each encoded alone) → `places` (where the model
attends to them) → `discreet.nn.model` (one release for all layers and heads) → `serving` (the
release in place of the context).
"""

from discreet.integrations.transformers.context import encode_passages
from discreet.integrations.transformers.door import (
    attach,
    calibrate,
    layer_stderr,
    privatize,
    release,
)

__all__ = ["attach", "calibrate", "encode_passages", "layer_stderr", "privatize", "release"]
