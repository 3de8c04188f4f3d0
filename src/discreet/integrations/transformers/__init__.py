"""Private context for encoder-decoder models of transformers. Needs the extra `transformers`.

Passages are encoded each by itself; one release of all layers and heads then takes the place of the
context.
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
