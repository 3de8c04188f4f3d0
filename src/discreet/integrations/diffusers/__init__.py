"""Private context for diffusion models of diffusers. Needs the extra `diffusers`.

Texts or images are encoded each by itself; one release of all layers and heads then takes the place
of the context.
"""

from discreet.integrations.diffusers.context import (
    attach,
    calibrate,
    encode_contexts,
    layer_stderr,
    privatize,
    release,
)

__all__ = ["attach", "calibrate", "encode_contexts", "layer_stderr", "privatize", "release"]
