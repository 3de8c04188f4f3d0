"""Which library an array belongs to."""

import sys

import array_api_compat
import array_api_compat.numpy
import numpy as np

from discreet._typing import Array


def namespace(array: Array) -> Array:
    """Return the functions of the array's library, under the names of the array API.

    What array_api_compat offers for this keeps a cache, which torch.compile does not follow.
    """
    if isinstance(array, np.ndarray):
        return array_api_compat.numpy
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        from array_api_compat import torch as functions

        return functions
    return array_api_compat.array_namespace(array)
