"""Private context for encoder-decoder models of transformers. Needs the extra `transformers`.

`privatize` in `context` is the front door: passages, each encoded alone → `places` (where the model
attends to them) → `discreet.nn.model` (one release for all layers and heads) → `serving` (the
release in place of the context).
"""

from discreet.integrations.transformers.context import (
    attach,
    calibrate,
    encode_passages,
    layer_stderr,
    privatize,
    release,
)

__all__ = ["attach", "calibrate", "encode_passages", "layer_stderr", "privatize", "release"]
