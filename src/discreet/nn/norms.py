"""What a norm layer does, found by trying it: of whatever library, under whatever name."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from discreet import _validate
from discreet._typing import Floats


@dataclass(frozen=True, eq=False)
class Norm:
    """A layer that makes gain·z + bias of x, where z is x over its root mean square.

    Attributes:
        gain: shape (width,).
        bias: likewise.
        centred: whether the mean of the coordinates is taken out of x first.
    """

    gain: Floats
    bias: Floats
    centred: bool

    @classmethod
    def of(cls, layer: nn.Module, width: int) -> "Norm":
        """Return what a LayerNorm or RMSNorm of that width does, or raise `InvalidInput`."""
        name = type(layer).__name__
        if "norm" not in name.lower():
            _validate.reject("norm layer", name, "a LayerNorm, an RMSNorm or a radius")
        tried = copy.deepcopy(layer).float().cpu().eval()
        signs = torch.ones(width)
        signs[1::2] = -1  # of mean zero, but for a coordinate, and of root mean square one
        try:
            with torch.no_grad():
                ups, downs = tried(torch.stack([signs, -signs]) * 64).double().numpy()
        except (RuntimeError, TypeError, ValueError):
            ups = downs = np.zeros(0)
        if ups.shape != (width,):
            _validate.reject("norm layer", name, f"a norm layer of width {width}")
        gain, bias = (ups - downs) / 2 / signs.numpy(), (ups + downs) / 2
        for centred in (False, True):
            found = cls(gain, bias, centred=centred)
            if found.explains(tried, width):
                return found
        return _validate.reject("norm layer", name, "a LayerNorm or an RMSNorm")

    def explains(self, layer: nn.Module, width: int) -> bool:
        """Return whether a layer does this to an input that it has not been tried on."""
        given = torch.linspace(-3, 5, width) ** 2
        vector = given.double().numpy()
        vector = vector - np.mean(vector) if self.centred else vector
        with torch.no_grad():
            made = layer(given[None])[0].double().numpy()
        wanted = vector / np.sqrt(np.mean(vector**2)) * self.gain + self.bias
        return bool(np.allclose(made, wanted, atol=2e-2 * (1 + np.max(np.abs(wanted)))))
