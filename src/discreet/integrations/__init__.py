"""Private context inside other people's models: `transformers` and `diffusers`.

Each needs the extra of its name. Post-processing only, but for the call that builds.
"""
