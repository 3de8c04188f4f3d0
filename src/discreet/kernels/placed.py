"""Public arrays that live where a caller's arrays live."""

import sys
from collections.abc import Callable
from typing import Any

import array_api_compat
from numpy.typing import NDArray


class Placed:
    """Public arrays in the library, dtype and device of a caller's, converted once for each."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, Any, Any, bool], Any] = {}

    def get(
        self,
        name: str,
        like: Any,  # noqa: ANN401
        make: Callable[[], NDArray[Any]],
    ) -> Any:  # noqa: ANN401
        """Return the array `make` makes: of floats in the dtype of `like`, of integers as it is."""
        # What torch makes in inference mode cannot be used outside of it.
        torch = sys.modules.get("torch")
        inference = torch is not None and torch.is_inference_mode_enabled()
        place = (name, like.dtype, like.device, inference)
        if place not in self._arrays:
            values = make()
            dtype = like.dtype if values.dtype.kind == "f" else None
            xp = array_api_compat.array_namespace(like)
            self._arrays[place] = xp.asarray(values, dtype=dtype, device=like.device)
        return self._arrays[place]
