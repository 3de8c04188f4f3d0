"""Public arrays that live where a caller's arrays live."""

import sys
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from discreet._arrays import namespace
from discreet._typing import Array


class Placed:
    """Public arrays in the library, dtype and device of a caller's, converted once for each."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._copies: dict[tuple[Any, Any, bool], dict[str, Array]] = {}

    def like(self, array: Array) -> dict[str, Array]:
        """Return the arrays where this one is: floats in its dtype, whole numbers as they are."""
        # What torch makes in inference mode cannot be used outside of it.
        torch = sys.modules.get("torch")
        inference = torch is not None and torch.is_inference_mode_enabled()
        place = (array.dtype, array.device, inference)
        if place not in self._copies:
            xp = namespace(array)
            self._copies[place] = {
                name: xp.asarray(
                    values,
                    dtype=array.dtype if values.dtype.kind == "f" else None,
                    device=array.device,
                )
                for name, values in self._arrays.items()
            }
        return self._copies[place]
