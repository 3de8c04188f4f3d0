"""The public weights of one attention layer, head by head, and what they make of private rows.

A float matrix product gives the same row other last bits in a batch of another shape, so dropping
one person would move the rows of others. Here rows and weights are whole numbers, and float64 adds
their products exactly in any order: no row's keys and values depend on another row. Each row is
rounded in units of its own largest number.
"""

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput

# A row's largest number is so many bits long.
_ROW_BITS = 22

# Rows beyond 2^this are shortened to it: nothing made of them leaves float64.
_HUGE = 400

# Σ|weight| of one output is at most so many bits long: products add up to less than 2^53.
_WEIGHT_BITS = 30


@dataclass(frozen=True, eq=False)
class ExactLinear:
    """x ↦ W·x + b for private rows x, the same to the bit for a row wherever it stands.

    Attributes:
        weight: public, shape (out, in), float64.
        bias: public, shape (out,).
    """

    weight: Floats
    bias: Floats

    @cached_property
    def _bits(self) -> int:
        largest = float(np.max(np.sum(np.abs(self.weight), axis=1), initial=0.0))
        # Half a unit of rounding for each weight comes on top: far less than another bit.
        return _WEIGHT_BITS - int(np.frexp(largest)[1]) - 1 if largest else 0

    @cached_property
    def _integers(self) -> Floats:
        return np.ascontiguousarray(np.rint(np.ldexp(self.weight, self._bits)).T)

    def __call__(self, rows: Floats) -> Floats:
        """Return the images of finite rows of shape (n, in): (n, out), float64."""
        integers, exponents = _rounded(rows)
        # Exact in any order of summation: Σ|z·w| ≤ 2^22·2^30.
        products = integers @ self._integers
        return np.asarray(np.ldexp(products, exponents - _ROW_BITS - self._bits) + self.bias)


def normalised(rows: Floats, gain: Floats, epsilon: float) -> Floats:
    """Return gain·x/√(mean x² + epsilon) of each row of shape (n, d), row by row to the bit.

    The mean is over whole numbers, so that it does not depend on the order of summation.
    """
    integers, exponents = _rounded(rows)
    squares = np.sum(integers.astype(np.int64) ** 2, axis=1, keepdims=True)
    mean = np.ldexp(squares.astype(np.float64) / rows.shape[1], 2 * (exponents - _ROW_BITS))
    root = np.sqrt(mean + epsilon)
    real = np.ldexp(integers, exponents - _ROW_BITS)
    return np.asarray(real / np.where(root == 0, 1.0, root) * gain)


def _rounded(rows: Floats) -> tuple[Floats, Integers]:
    """Return rows as whole numbers up to 2^22, and the power of two that each is in units of.

    x ≈ integers·2^(exponent - 22), but for rows that are huge: they keep their direction.
    """
    exponents = np.frexp(np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0))[1]
    integers = np.rint(np.ldexp(rows, _ROW_BITS - exponents))
    return integers, np.clip(exponents, -_HUGE, _HUGE).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Norm:
    """A norm layer, which makes gain·z + bias of x, where z is x over its root mean square.

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
        """Return what a LayerNorm or RMSNorm of that width does, or raise `InvalidInput`.

        Found by trying it: a layer may come from any library, under any name.
        """
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
            if found._explains(tried, width):
                return found
        return _validate.reject("norm layer", name, "a LayerNorm or an RMSNorm")

    def _explains(self, layer: nn.Module, width: int) -> bool:
        """Return whether a layer does this to an input that it has not been tried on."""
        given = torch.linspace(-3, 5, width) ** 2
        vector = given.double().numpy()
        vector = vector - np.mean(vector) if self.centred else vector
        with torch.no_grad():
            made = layer(given[None])[0].double().numpy()
        wanted = vector / np.sqrt(np.mean(vector**2)) * self.gain + self.bias
        return bool(np.allclose(made, wanted, atol=2e-2 * (1 + np.max(np.abs(wanted)))))


@dataclass(frozen=True, eq=False)
class HeadMap:
    """x ↦ W·x + b for each head, and a normalisation of the result if the model has one.

    Attributes:
        weight: shape (heads, d, in).
        bias: shape (heads, d).
        gain: the result is divided by its root mean square and multiplied by this, shape (d,);
            None if it stays as it is.
        epsilon: what is added to the mean square.
    """

    weight: Floats
    bias: Floats
    gain: Floats | None = None
    epsilon: float = 0.0

    @classmethod
    def of(cls, weight: torch.Tensor, bias: torch.Tensor | None, heads: int) -> "HeadMap":
        """Return the map of a linear layer whose outputs are those of one head after another."""
        rows = _floats(weight)
        shift = np.zeros(len(rows)) if bias is None else _floats(bias)
        if len(rows) % heads:
            _validate.reject("heads", heads, f"a divisor of the width {len(rows)}")
        return cls(rows.reshape(heads, -1, rows.shape[1]), shift.reshape(heads, -1))

    def normalised_by(self, norm: nn.Module | None) -> "HeadMap":
        """Return the same map with the norm layer that follows it in each head, if there is one."""
        if norm is None:
            return self
        found = Norm.of(norm, self.dim)
        if found.centred or np.any(found.bias):
            _validate.reject("norm layer", type(norm).__name__, "an RMSNorm of each head")
        # What a layer adds to the mean square, under whichever name it keeps it.
        epsilons = (getattr(norm, name, None) for name in ("eps", "variance_epsilon"))
        epsilon = next((each for each in epsilons if each is not None), 0.0)
        return replace(self, gain=found.gain, epsilon=float(epsilon))

    @property
    def heads(self) -> int:
        """How many."""
        return len(self.weight)

    @property
    def dim(self) -> int:
        """The width of one head."""
        return int(self.weight.shape[1])

    @property
    def width(self) -> int:
        """The width of the rows that it takes."""
        return int(self.weight.shape[2])

    @property
    def longest(self) -> float | None:
        """The longest that a result can be, if it is normalised: √d·max|gain|."""
        if self.gain is None:
            return None
        return float(np.sqrt(self.dim) * np.max(np.abs(self.gain)))

    @cached_property
    def _linear(self) -> ExactLinear:
        """All heads, one after the other."""
        return ExactLinear(self.weight.reshape(-1, self.width), self.bias.reshape(-1))

    def project(self, rows: Floats) -> Floats:
        """Return what each head makes of rows (n, in): (heads, n, d), row by row to the bit."""
        made = self._linear(rows).reshape(len(rows), self.heads, self.dim).swapaxes(0, 1)
        if self.gain is None:
            return made
        return normalised(made.reshape(-1, self.dim), self.gain, self.epsilon).reshape(made.shape)


@dataclass(frozen=True, eq=False)
class Heads:
    """One attention layer: logit = scaling·⟨query, key⟩.

    Attributes:
        query: one map for each query head.
        key: one map for each key head; queries may have a multiple of them.
        value: likewise.
        scaling: of logits, one for each key head.
        value_limit: the model itself clips values to this length; None if it does not.
    """

    query: HeadMap
    key: HeadMap
    value: HeadMap
    scaling: Floats
    value_limit: float | None = None

    def __post_init__(self) -> None:
        if self.key.heads != self.value.heads or self.query.heads % self.key.heads:
            raise InvalidInput("Expected as many value heads as key heads, and a multiple to ask.")
        scaling = np.broadcast_to(np.asarray(self.scaling, dtype=np.float64), (self.key.heads,))
        object.__setattr__(self, "scaling", scaling)

    @property
    def repeats(self) -> int:
        """How many query heads share one key head."""
        return self.query.heads // self.key.heads

    @classmethod
    def of(cls, module: nn.Module) -> "Heads":
        """Return the heads of an attention module of torch or of this package."""
        if hasattr(module, "public_heads"):
            return module.public_heads()  # type: ignore[no-any-return, operator]
        if isinstance(module, nn.MultiheadAttention):
            return _of_torch(module)
        return _validate.reject(
            "module", type(module).__name__, "torch.nn.MultiheadAttention or BoundedAttention"
        )


def _of_torch(module: nn.MultiheadAttention) -> Heads:
    if module.bias_k is not None or module.bias_v is not None or module.add_zero_attn:
        raise InvalidInput("Expected attention without add_bias_kv and add_zero_attn.")
    count, width = module.num_heads, module.embed_dim
    weights: Any
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases: Any = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    query, key, value = (HeadMap.of(w, b, count) for w, b in zip(weights, biases, strict=True))
    return Heads(query, key, value, scaling=np.array((width // count) ** -0.5))


def _floats(tensor: torch.Tensor) -> Floats:
    """Return public weights as float64, wherever they live."""
    return np.asarray(tensor.detach().to("cpu", torch.float64).numpy())
