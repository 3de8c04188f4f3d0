"""Files that were changed by somebody who also wrote a new checksum."""

import json

from safetensors import numpy as safetensors

from discreet import _files


def contents(data):
    """The settings and tensors of a file."""
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    return json.loads(metadata["settings"]), dict(safetensors.load(data))


def resealed(data, change):
    """The file after change(settings, tensors), with a checksum that is right."""
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    settings, tensors = contents(data)
    change(settings, tensors)
    return _files.pack(
        tensors, name=metadata["format"], settings=settings, card=json.loads(metadata["card"])
    )
