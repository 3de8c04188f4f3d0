"""Private context for diffusion models of diffusers. Needs the extra `diffusers`.

`privatize` in `door` is the front door: `encode_contexts` (texts or images, each alone) → `places`
(where the model attends to them) → `discreet.nn.model` (one release for all layers and heads) →
`processor` (the release in place of the context).
"""

from discreet.integrations.diffusers.door import (
    attach,
    calibrate,
    encode_contexts,
    layer_stderr,
    privatize,
    release,
)

__all__ = ["attach", "calibrate", "encode_contexts", "layer_stderr", "privatize", "release"]
