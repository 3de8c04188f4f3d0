"""Private context for diffusion models of diffusers. Needs the extra `diffusers`.

`privatize` in `context` is the front door: texts or images, each encoded alone → `attention` (where
the model attends to them) → `discreet.nn.model` (one release for all layers and heads) →
`attention` again (the release in place of the context).
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
